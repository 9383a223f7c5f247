#include "gateway/model/weights.h"

#include "gateway/model/rope.h"

#include <string>
#include <utility>

namespace incipit::gateway {
namespace {

using kernels::HostTensor;

class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, kernels::Backend& backend)
      : checkpoint_(checkpoint), backend_(backend) {}

  std::unique_ptr<kernels::Weight> matrix(const std::string& prefix,
                                          std::initializer_list<std::string_view> names,
                                          kernels::InputPrecision inputs) {
    std::vector<HostTensor> stacked;
    for (const std::string_view name : names) {
      const HostTensor* tensor = checkpoint_.tensor(prefix + std::string(name));
      if (tensor == nullptr) return nullptr;
      stacked.push_back(*tensor);
    }
    return backend_.pack(stacked, inputs);
  }

  // The named vectors one behind the other, in float32; empty when the model has none of them.
  DeviceVector vector(const std::string& prefix, std::initializer_list<std::string_view> names) {
    std::vector<float> values;
    for (const std::string_view name : names) {
      const HostTensor* tensor = checkpoint_.tensor(prefix + std::string(name));
      if (tensor == nullptr) return {};
      const std::size_t old = values.size();
      values.resize(old + static_cast<std::size_t>(tensor->cols));
      kernels::dequantize_row(tensor->dtype, tensor->data, values.data() + old, tensor->cols);
    }
    return upload(values);
  }

  DeviceRope rope(int context, double base, double linear_factor, std::span<const float> divisors) {
    const int head_dim = checkpoint_.config().head_dim;
    const RopeTables tables = rope_tables(context, head_dim, base, linear_factor, divisors);
    return {upload(tables.cos), upload(tables.sin)};
  }

  LayerWeights layer(int index) {
    // Gemma's residual stream has single components thousands of times larger than the rest. With
    // inputs of one bf16 number a token can tip over a threshold and disturb hundreds after it.
    const kernels::InputPrecision inputs = checkpoint_.config().architecture == "gemma3"
                                               ? kernels::InputPrecision::two_bf16
                                               : kernels::InputPrecision::bf16;
    const std::string prefix = "blk." + std::to_string(index) + ".";
    LayerWeights layer;
    layer.attention_norm = vector(prefix, {"attn_norm.weight"});
    layer.qkv = matrix(prefix, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}, inputs);
    layer.qkv_bias = vector(prefix, {"attn_q.bias", "attn_k.bias", "attn_v.bias"});
    layer.q_norm = vector(prefix, {"attn_q_norm.weight"});
    layer.k_norm = vector(prefix, {"attn_k_norm.weight"});
    layer.attention_output = matrix(prefix, {"attn_output.weight"}, inputs);
    layer.attention_output_bias = vector(prefix, {"attn_output.bias"});
    layer.post_attention_norm = vector(prefix, {"post_attention_norm.weight"});
    layer.feed_forward_norm = vector(prefix, {"ffn_norm.weight"});
    layer.gate_up = matrix(prefix, {"ffn_gate.weight", "ffn_up.weight"}, inputs);
    layer.down = matrix(prefix, {"ffn_down.weight"}, inputs);
    layer.post_feed_forward_norm = vector(prefix, {"post_ffw_norm.weight"});
    return layer;
  }

 private:
  DeviceVector upload(const std::vector<float>& values) {
    DeviceVector device{backend_.allocate(values.size() * sizeof(float))};
    backend_.upload(values.data(), device.memory->data(), values.size() * sizeof(float));
    return device;
  }

  const Checkpoint& checkpoint_;
  kernels::Backend& backend_;
};

}  // namespace

Weights load_weights(const Checkpoint& checkpoint, kernels::Backend& backend, int context) {
  const ModelConfig& config = checkpoint.config();
  WeightLoader loader(checkpoint, backend);
  Weights weights;
  weights.embedding = loader.matrix("", {"token_embd.weight"}, kernels::InputPrecision::bf16);
  for (int i = 0; i < config.layers; ++i)
    weights.layers.push_back(loader.layer(i));
  weights.output_norm = loader.vector("", {"output_norm.weight"});
  weights.output = loader.matrix("", {"output.weight"}, kernels::InputPrecision::bf16);
  weights.global_rope =
      loader.rope(context, config.rope_base, config.rope_linear_factor, config.rope_factors);
  // Only Gemma rotates its sliding-window layers by other, unscaled, angles.
  if (config.architecture == "gemma3") {
    weights.local_rope = loader.rope(context, config.rope_base_local, 1.0, {});
  }
  return weights;
}

}  // namespace incipit::gateway
