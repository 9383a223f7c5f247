#include "gateway/model/hf_config.h"

#include "gateway/model/architecture.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace incipit::gateway {
namespace {

std::string architecture_of(const JsonObject& root) {
  const auto type = root.text("model_type");
  if (!type) root.fail("model_type", "is missing");
  if (*type == "mistral") return "llama";  // the same arithmetic
  if (*type == "gemma3_text") return "gemma3";
  if (is_supported_architecture(*type)) return std::string(*type);
  root.fail("model_type", "is \"" + std::string(*type)
                              + "\", which is not supported; supported are llama, mistral, qwen2,"
                                " qwen3, gemma3, gemma3_text");
}

int count(const JsonObject& object, std::string_view key, std::optional<int> otherwise) {
  const std::optional<std::int64_t> value = object.integer(key);
  if (!value && !otherwise) object.fail(key, "is missing");
  if (!value) return *otherwise;
  if (*value < 0 || *value > std::numeric_limits<int>::max()) {
    object.fail(key, "is " + std::to_string(*value) + ", which is out of range");
  }
  return static_cast<int>(*value);
}

void read_sizes(const JsonObject& root, ModelConfig& config) {
  const bool gemma = config.architecture == "gemma3";
  // Gemma's published files leave out what equals these defaults.
  const auto gemma_default = [&](int value) {
    return gemma ? std::optional<int>(value) : std::nullopt;
  };
  config.layers = count(root, "num_hidden_layers", gemma_default(26));
  config.hidden = count(root, "hidden_size", gemma_default(2304));
  config.feed_forward = count(root, "intermediate_size", gemma_default(9216));
  config.heads = count(root, "num_attention_heads", gemma_default(8));
  config.kv_heads = count(root, "num_key_value_heads", gemma ? 4 : config.heads);
  const int even_share = config.heads > 0 ? config.hidden / config.heads : 0;
  config.head_dim = count(root, "head_dim", gemma ? 256 : even_share);
  config.context = count(root, "max_position_embeddings", gemma ? 131072 : 2048);
  config.norm_epsilon = static_cast<float>(root.number("rms_norm_eps").value_or(1e-6));
  config.tied_embeddings = root.boolean("tie_word_embeddings").value_or(gemma);
}

void read_activation(const JsonObject& root, ModelConfig& config) {
  const bool gemma = config.architecture == "gemma3";
  const std::string_view expected = gemma ? "gelu_pytorch_tanh" : "silu";
  config.activation = gemma ? kernels::Activation::gelu_tanh : kernels::Activation::silu;
  const std::string_view key = gemma ? "hidden_activation" : "hidden_act";
  const std::string_view found = root.text(key).value_or(expected);
  if (found != expected) {
    root.fail(key, "is \"" + std::string(found) + "\"; supported is " + std::string(expected));
  }
}

// One RoPE description: the base and its scaling. `holder` is rope_scaling, rope_parameters, or one
// of the two objects in Gemma's rope_parameters.
void read_rope_scaling(const JsonObject& holder, ModelConfig& config) {
  config.rope_base = holder.number("rope_theta").value_or(config.rope_base);
  const std::string_view type =
      holder.text("rope_type").value_or(holder.text("type").value_or("default"));
  if (type == "default") return;
  if (type == "linear") {
    config.rope_linear_factor = holder.number("factor").value_or(1.0);
    return;
  }
  if (type != "llama3") {
    holder.fail("rope_type",
                "is \"" + std::string(type)
                    + "\", which is not supported; supported are default, linear, llama3");
  }
  Llama3Scaling scaling;
  scaling.factor = holder.number("factor").value_or(scaling.factor);
  scaling.low_frequency_factor =
      holder.number("low_freq_factor").value_or(scaling.low_frequency_factor);
  scaling.high_frequency_factor =
      holder.number("high_freq_factor").value_or(scaling.high_frequency_factor);
  scaling.original_context =
      holder.number("original_max_position_embeddings").value_or(scaling.original_context);
  config.rope_factors = llama3_rope_factors(scaling, config.rope_base, config.head_dim);
}

void read_rope(const JsonObject& root, ModelConfig& config) {
  const bool gemma = config.architecture == "gemma3";
  config.rope_pairing = kernels::RopePairing::halves;
  config.rope_base = root.number("rope_theta").value_or(gemma ? 1e6 : 1e4);
  config.rope_base_local = root.number("rope_local_base_freq").value_or(1e4);
  if (root.number("partial_rotary_factor").value_or(1.0) != 1.0) {
    root.fail("partial_rotary_factor", "is not 1; heads that rotate in part are not supported");
  }
  if (const auto scaling = root.object("rope_scaling")) read_rope_scaling(*scaling, config);
  const auto parameters = root.object("rope_parameters");
  if (!parameters) return;
  if (const auto global = parameters->object("full_attention")) {
    read_rope_scaling(*global, config);
    const auto local = parameters->object("sliding_attention");
    if (local)
      config.rope_base_local = local->number("rope_theta").value_or(config.rope_base_local);
  } else {
    read_rope_scaling(*parameters, config);
  }
}

// layer_types, where present, must say what the window and the pattern say.
void check_layer_types(const JsonObject& root, const ModelConfig& config) {
  const auto types = root.array("layer_types");
  if (!types) return;
  int layer = 0;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    ++layer;
    const bool is_global = config.sliding_window == 0
                           || (config.sliding_pattern > 0 && layer % config.sliding_pattern == 0);
    const std::string_view expected = is_global ? "full_attention" : "sliding_attention";
    if (element.get(type) != simdjson::SUCCESS || type != expected) {
      root.fail("layer_types", "has \"" + std::string(type) + "\" for layer "
                                   + std::to_string(layer - 1) + " where " + std::string(expected)
                                   + " is expected; other layouts are not supported");
    }
  }
}

// Every n-th layer is global: from the number where the file has it, else from the first global
// layer in the list.
int read_sliding_pattern(const JsonObject& root) {
  constexpr int gemma_pattern = 6;
  const auto types = root.array("layer_types");
  if (root.integer("sliding_window_pattern") || !types) {
    return count(root, "sliding_window_pattern", gemma_pattern);
  }
  int layer = 0;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    ++layer;
    if (element.get(type) == simdjson::SUCCESS && type == "full_attention") return layer;
  }
  return 0;
}

void read_window(const JsonObject& root, ModelConfig& config) {
  const bool qwen = config.architecture == "qwen2" || config.architecture == "qwen3";
  if (qwen && root.boolean("use_sliding_window").value_or(false)) {
    root.fail("use_sliding_window", "is true; Qwen models are supported with full attention only");
  }
  if (config.architecture == "gemma3") {
    config.sliding_window = count(root, "sliding_window", 4096);
    config.sliding_pattern = read_sliding_pattern(root);
  } else if (!qwen) {
    config.sliding_window = count(root, "sliding_window", 0);
  }
  check_layer_types(root, config);
}

void read_gemma(const JsonObject& root, ModelConfig& config) {
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  const double scalar = root.number("query_pre_attn_scalar").value_or(256.0);
  config.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
  for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (root.number(key)) root.fail(key, "is set; logit soft-capping is not supported");
  }
}

}  // namespace

std::vector<float> llama3_rope_factors(const Llama3Scaling& scaling, double base, int head_dim) {
  std::vector<float> divisors;
  for (int i = 0; i < head_dim / 2; ++i) {
    const double frequency = std::pow(base, -2.0 * i / head_dim);
    // Turns of this pair within the original context: slow pairs are stretched by the whole
    // factor, fast ones not at all, those between by a mixture.
    const double turns = scaling.original_context * frequency / (2.0 * std::numbers::pi);
    double stretch = 1.0;
    if (turns < scaling.low_frequency_factor) {
      stretch = scaling.factor;
    } else if (turns <= scaling.high_frequency_factor) {
      const double smooth = (turns - scaling.low_frequency_factor)
                            / (scaling.high_frequency_factor - scaling.low_frequency_factor);
      stretch = 1.0 / ((1.0 - smooth) / scaling.factor + smooth);
    }
    divisors.push_back(static_cast<float>(stretch));
  }
  return divisors;
}

ModelConfig read_hf_config(const JsonObject& root) {
  ModelConfig config;
  config.architecture = architecture_of(root);
  if (root.element("quantization_config")) {
    root.fail("quantization_config", "is set; safetensors are supported in F32, F16 and BF16 only");
  }
  const std::optional<JsonObject> nested = root.object("text_config");
  const JsonObject& text = nested ? *nested : root;
  read_sizes(text, config);
  if (nested) {
    // The outer object decides for the whole model.
    config.tied_embeddings = root.boolean("tie_word_embeddings").value_or(config.tied_embeddings);
  }
  if (config.head_dim > 1024) text.fail("head_dim", "is too large; at most 1024 is supported");
  read_activation(text, config);
  read_rope(text, config);
  read_window(text, config);
  if (config.architecture == "gemma3") read_gemma(text, config);
  return config;
}

}  // namespace incipit::gateway
