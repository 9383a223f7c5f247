#include "reference_forward.h"

#include <cmath>
#include <numbers>

namespace incipit::test {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // [position][dimension]

class Reference {
 public:
  explicit Reference(const RandomModel& model) : model_(model) {}

  Matrix logits(const std::vector<std::int32_t>& tokens) const {
    Matrix hidden;
    for (const std::int32_t token : tokens)
      hidden.push_back(embedding(token));
    for (int layer = 0; layer < model_.layers; ++layer)
      run_layer(layer, hidden);
    Matrix result;
    for (const Vector& x : hidden) {
      result.push_back(times(model_.tied ? "embed_tokens" : "lm_head", norm(x, "norm")));
    }
    return result;
  }

 private:
  const std::vector<float>& weight(const std::string& name) const {
    return model_.tensors.at(name);
  }

  Vector embedding(std::int32_t token) const {
    const double scale = model_.is_gemma() ? std::sqrt(static_cast<double>(model_.hidden)) : 1.0;
    Vector x;
    for (int i = 0; i < model_.hidden; ++i) {
      x.push_back(scale
                  * weight("embed_tokens")[static_cast<std::size_t>(token * model_.hidden + i)]);
    }
    return x;
  }

  Vector times(const std::string& name, const Vector& x) const {
    const std::vector<float>& w = weight(name);
    Vector y(w.size() / x.size(), 0.0);
    for (std::size_t row = 0; row < y.size(); ++row) {
      for (std::size_t i = 0; i < x.size(); ++i)
        y[row] += w[row * x.size() + i] * x[i];
    }
    const auto bias = model_.tensors.find(name + ".bias");
    if (bias != model_.tensors.end()) {
      for (std::size_t row = 0; row < y.size(); ++row)
        y[row] += bias->second[row];
    }
    return y;
  }

  Vector norm(const Vector& x, const std::string& name) const {
    const std::vector<float>& w = weight(name);
    double squares = 0;
    for (const double value : x)
      squares += value * value;
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
    Vector y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back(x[i] * factor * (model_.is_gemma() ? 1.0 + w[i] : w[i]));
    }
    return y;
  }

  bool is_sliding(int layer) const {
    if (model_.sliding_window == 0) return false;
    return model_.sliding_pattern == 0 || (layer + 1) % model_.sliding_pattern != 0;
  }

  // Llama 3.1's rule, by wavelengths, with the fixture's constants.
  double scaled(double frequency) const {
    if (!model_.llama3_scaling) return frequency;
    constexpr double original = 64, factor = 8, low = 1, high = 4;
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < original / high) return frequency;
    if (wavelength > original / low) return frequency / factor;
    const double smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * frequency / factor + smooth * frequency;
  }

  Vector rotated(const Vector& head, int position, bool local) const {
    const int half = model_.head_dim / 2;
    Vector y(head.size());
    for (int i = 0; i < half; ++i) {
      const double base = local ? model_.rope_base_local : model_.rope_base;
      const double plain = std::pow(base, -2.0 * i / model_.head_dim);
      const double angle = position * (local ? plain : scaled(plain));
      const auto a = static_cast<std::size_t>(i);
      const auto b = static_cast<std::size_t>(i + half);
      y[a] = head[a] * std::cos(angle) - head[b] * std::sin(angle);
      y[b] = head[b] * std::cos(angle) + head[a] * std::sin(angle);
    }
    return y;
  }

  // The heads of one projection, normalised where the architecture does, and rotated.
  Matrix heads(const std::string& prefix, const std::string& which, const Vector& x, int position,
               bool local) const {
    const Vector all = times(prefix + "self_attn." + which + "_proj", x);
    Matrix result;
    for (auto at = all.begin(); at != all.end(); at += model_.head_dim) {
      Vector head(at, at + model_.head_dim);
      if (which != "v") {
        if (model_.has_head_norms()) head = norm(head, prefix + "self_attn." + which + "_norm");
        head = rotated(head, position, local);
      }
      result.push_back(head);
    }
    return result;
  }

  Vector attend(const Matrix& queries, const std::vector<Matrix>& keys,
                const std::vector<Matrix>& values, int position, bool sliding) const {
    Vector mixed;
    const int first = sliding ? std::max(0, position - model_.sliding_window + 1) : 0;
    for (int h = 0; h < model_.heads; ++h) {
      const auto group = static_cast<std::size_t>(h / (model_.heads / model_.kv_heads));
      Vector weights;
      double total = 0;
      for (int p = first; p <= position; ++p) {
        double dot = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(model_.head_dim); ++i) {
          dot +=
              queries[static_cast<std::size_t>(h)][i] * keys[static_cast<std::size_t>(p)][group][i];
        }
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(model_.head_dim))));
        total += weights.back();
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(model_.head_dim); ++i) {
        double sum = 0;
        for (int p = first; p <= position; ++p) {
          sum += weights[static_cast<std::size_t>(p - first)]
                 * values[static_cast<std::size_t>(p)][group][i];
        }
        mixed.push_back(sum / total);
      }
    }
    return mixed;
  }

  double activation(double x) const {
    if (!model_.is_gemma()) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }

  void run_layer(int layer, Matrix& hidden) const {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const bool sliding = is_sliding(layer);
    const bool local = sliding && model_.is_gemma();
    std::vector<Matrix> keys;
    std::vector<Matrix> values;
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const auto position = static_cast<int>(t);
      Vector& x = hidden[t];
      const Vector normed = norm(x, prefix + "input_layernorm");
      const Matrix queries = heads(prefix, "q", normed, position, local);
      keys.push_back(heads(prefix, "k", normed, position, local));
      values.push_back(heads(prefix, "v", normed, position, local));
      Vector out =
          times(prefix + "self_attn.o_proj", attend(queries, keys, values, position, sliding));
      if (model_.is_gemma()) out = norm(out, prefix + "post_attention_layernorm");
      add(x, out);

      const Vector y = norm(
          x,
          prefix + (model_.is_gemma() ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
      Vector gate = times(prefix + "mlp.gate_proj", y);
      const Vector up = times(prefix + "mlp.up_proj", y);
      for (std::size_t i = 0; i < gate.size(); ++i)
        gate[i] = activation(gate[i]) * up[i];
      Vector down = times(prefix + "mlp.down_proj", gate);
      if (model_.is_gemma()) down = norm(down, prefix + "post_feedforward_layernorm");
      add(x, down);
    }
  }

  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] += y[i];
  }

  const RandomModel& model_;
};

}  // namespace

std::vector<std::vector<double>> reference_logits(const RandomModel& model,
                                                  const std::vector<std::int32_t>& tokens) {
  return Reference(model).logits(tokens);
}

}  // namespace incipit::test
