#include "gateway/model/architecture.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

namespace incipit::gateway {
namespace {

using kernels::DType;
using kernels::HostTensor;

constexpr int max_layers = 4096;
constexpr int max_context = 1 << 24;
constexpr int max_width = 1 << 24;

[[noreturn]] void fail(const CheckpointParts& parts, const std::string& problem) {
  throw std::runtime_error(parts.origin + ": " + problem);
}

void check_range(const CheckpointParts& parts, std::string_view what, int value, int most) {
  if (value >= 1 && value <= most) return;
  fail(parts, std::string(what) + " is " + std::to_string(value) + ", which is not in 1.."
                  + std::to_string(most));
}

void check_positive(const CheckpointParts& parts, std::string_view what, double value) {
  if (std::isfinite(value) && value > 0) return;
  fail(parts, std::string(what) + " is " + std::to_string(value) + ", not a positive number");
}

void check_config(const CheckpointParts& parts) {
  const ModelConfig& config = parts.config;
  if (!is_supported_architecture(config.architecture)) {
    fail(parts, "architecture \"" + config.architecture + "\" is not supported; supported are "
                    + std::string(supported_architectures()));
  }
  check_range(parts, "the number of layers", config.layers, max_layers);
  check_range(parts, "the hidden size", config.hidden, max_width);
  check_range(parts, "the number of attention heads", config.heads, 1 << 14);
  check_range(parts, "the number of key/value heads", config.kv_heads, config.heads);
  check_range(parts, "the head size", config.head_dim, 1024);
  check_range(parts, "the feed-forward size", config.feed_forward, max_width);
  check_range(parts, "the context length", config.context, max_context);
  if (config.heads % config.kv_heads != 0) {
    fail(parts, std::to_string(config.heads) + " attention heads cannot share "
                    + std::to_string(config.kv_heads) + " key/value heads evenly");
  }
  if (config.head_dim % 2 != 0) {
    fail(parts, "the head size " + std::to_string(config.head_dim)
                    + " is odd; rotary positions need pairs");
  }
  check_positive(parts, "the norm epsilon", config.norm_epsilon);
  check_positive(parts, "the RoPE base", config.rope_base);
  check_positive(parts, "the local RoPE base", config.rope_base_local);
  check_positive(parts, "the linear RoPE factor", config.rope_linear_factor);
  check_positive(parts, "the embedding scale", config.embedding_scale);
  if (config.attention_scale != 0) {
    check_positive(parts, "the attention scale", config.attention_scale);
  }
  if (!config.rope_factors.empty()
      && config.rope_factors.size() != static_cast<std::size_t>(config.head_dim / 2)) {
    fail(parts, "there are " + std::to_string(config.rope_factors.size())
                    + " RoPE frequency factors; a head of " + std::to_string(config.head_dim)
                    + " needs " + std::to_string(config.head_dim / 2));
  }
  for (const float factor : config.rope_factors) {
    check_positive(parts, "a RoPE frequency factor", factor);
  }
}

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

bool is_plain_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

void check_tensor(const CheckpointParts& parts, const TensorShape& expected) {
  const auto found = parts.tensors.find(expected.name);
  if (found == parts.tensors.end()) {
    if (!expected.required) return;
    fail(parts, "tensor " + expected.name + " is missing; the " + parts.config.architecture
                    + " architecture needs it (" + shape_text(expected.rows, expected.cols) + ")");
  }
  const HostTensor& tensor = found->second;
  if (tensor.rows != expected.rows || tensor.cols != expected.cols) {
    fail(parts, "tensor " + expected.name + " is " + shape_text(tensor.rows, tensor.cols)
                    + ", but the hyper-parameters ask for "
                    + shape_text(expected.rows, expected.cols));
  }
  if (expected.rows == 1 && !is_plain_float(tensor.dtype)) {
    fail(parts, "tensor " + expected.name + " has type "
                    + std::string(kernels::info(tensor.dtype).name)
                    + "; norm weights and biases must be F32, F16 or BF16");
  }
}

// Stacked projections need the biases of all three or of none.
void check_biases(const CheckpointParts& parts) {
  for (int layer = 0; layer < parts.config.layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto has = [&](std::string_view name) {
      return parts.tensors.count(prefix + std::string(name)) > 0;
    };
    const bool q = has("attn_q.bias");
    if (q != has("attn_k.bias") || q != has("attn_v.bias")) {
      fail(parts, "layer " + std::to_string(layer)
                      + " has biases for some of attn_q, attn_k, attn_v only");
    }
  }
}

void check_tensors(const CheckpointParts& parts) {
  std::set<std::string_view> known;
  const std::vector<TensorShape> expected = tensors_of(parts.config);
  for (const TensorShape& shape : expected) {
    check_tensor(parts, shape);
    known.insert(shape.name);
  }
  // A tensor that we would silently leave out means other arithmetic than the model's.
  for (const auto& [name, tensor] : parts.tensors) {
    if (known.count(name) == 0) {
      fail(parts, "tensor " + name + " does not belong to the " + parts.config.architecture
                      + " architecture with " + std::to_string(parts.config.layers)
                      + " layers as this program runs it");
    }
  }
  check_biases(parts);
}

void check_tokenizer(CheckpointParts& parts) {
  TokenizerSpec& spec = parts.tokenizer;
  const auto vocabulary = static_cast<std::size_t>(parts.config.vocab_size);
  if (spec.pieces.empty()) fail(parts, "the tokenizer has no pieces");
  if (spec.pieces.size() > vocabulary) {
    fail(parts, "the tokenizer has " + std::to_string(spec.pieces.size())
                    + " pieces, but the embedding table has only " + std::to_string(vocabulary)
                    + " rows");
  }
  if (spec.types.size() != spec.pieces.size()) {
    fail(parts, "the tokenizer has " + std::to_string(spec.types.size()) + " token types for "
                    + std::to_string(spec.pieces.size()) + " pieces");
  }
  if (!spec.scores.empty() && spec.scores.size() != spec.pieces.size()) {
    fail(parts, "the tokenizer has " + std::to_string(spec.scores.size()) + " scores for "
                    + std::to_string(spec.pieces.size()) + " pieces");
  }
  const auto size = static_cast<std::int64_t>(spec.pieces.size());
  for (const std::int64_t id : {spec.bos, spec.eos, spec.unknown}) {
    if (id >= size || id < -1) {
      fail(parts, "special token id " + std::to_string(id) + " is outside the vocabulary of "
                      + std::to_string(size));
    }
  }
  // Embedding tables are often rounded up to a round number of rows.
  const bool has_scores = !spec.scores.empty();
  while (spec.pieces.size() < vocabulary) {
    spec.pieces.push_back("[PAD" + std::to_string(spec.pieces.size()) + "]");
    spec.types.push_back(TokenizerSpec::TokenType::unused);
    if (has_scores) spec.scores.push_back(0.0F);
  }
}

}  // namespace

bool is_supported_architecture(std::string_view name) noexcept {
  return name == "llama" || name == "qwen2" || name == "qwen3" || name == "gemma3";
}

std::string_view supported_architectures() noexcept {
  return "llama, qwen2, qwen3, gemma3";
}

std::string supported_dtypes() {
  std::string list;
  for (int i = 0; i <= static_cast<int>(DType::q6_k); ++i) {
    if (!list.empty()) list += ", ";
    list += kernels::info(static_cast<DType>(i)).name;
  }
  return list;
}

std::vector<TensorShape> tensors_of(const ModelConfig& config) {
  const std::int64_t d = config.hidden;
  const std::int64_t q = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t kv = std::int64_t{config.kv_heads} * config.head_dim;
  const std::int64_t f = config.feed_forward;
  const bool gemma = config.architecture == "gemma3";
  const bool head_norms = gemma || config.architecture == "qwen3";
  const bool qkv_bias = config.architecture == "qwen2";
  const bool optional_bias = config.architecture == "llama" || config.architecture == "qwen3";

  std::vector<TensorShape> list;
  list.push_back({"token_embd.weight", config.vocab_size, d});
  for (int layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto add = [&](std::string_view name, std::int64_t rows, std::int64_t cols,
                         bool required = true) {
      list.push_back({prefix + std::string(name), rows, cols, required});
    };
    add("attn_norm.weight", 1, d);
    add("attn_q.weight", q, d);
    add("attn_k.weight", kv, d);
    add("attn_v.weight", kv, d);
    if (qkv_bias || optional_bias) {
      add("attn_q.bias", 1, q, qkv_bias);
      add("attn_k.bias", 1, kv, qkv_bias);
      add("attn_v.bias", 1, kv, qkv_bias);
    }
    if (head_norms) {
      add("attn_q_norm.weight", 1, config.head_dim);
      add("attn_k_norm.weight", 1, config.head_dim);
    }
    add("attn_output.weight", d, q);
    if (optional_bias) add("attn_output.bias", 1, d, false);
    if (gemma) add("post_attention_norm.weight", 1, d);
    add("ffn_norm.weight", 1, d);
    add("ffn_gate.weight", f, d);
    add("ffn_up.weight", f, d);
    add("ffn_down.weight", d, f);
    if (gemma) add("post_ffw_norm.weight", 1, d);
  }
  list.push_back({"output_norm.weight", 1, d});
  if (!config.tied_embeddings) list.push_back({"output.weight", config.vocab_size, d});
  return list;
}

void check_model(CheckpointParts& parts) {
  check_config(parts);
  const auto embedding = parts.tensors.find("token_embd.weight");
  if (embedding == parts.tensors.end()) {
    fail(parts, "tensor token_embd.weight is missing; every architecture needs it");
  }
  if (embedding->second.rows < 1 || embedding->second.rows > max_width) {
    fail(parts, "tensor token_embd.weight has " + std::to_string(embedding->second.rows)
                    + " rows, which is not in 1.." + std::to_string(max_width));
  }
  parts.config.vocab_size = static_cast<int>(embedding->second.rows);
  parts.config.tied_embeddings = parts.tensors.count("output.weight") == 0;
  check_tensors(parts);
  check_tokenizer(parts);
}

}  // namespace incipit::gateway
