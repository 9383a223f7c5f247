// A small random model: real arithmetic, meaningless text, no download.
//
// Weights are integers times a power of two, drawn from an integer generator, so they are the same
// on every machine and exact in bf16. Dimension 0 of the residual stream is kept constant: every
// embedding has the same value there and no layer writes to it. The head uses it as a bias that
// makes everything but printable ASCII practically impossible, special tokens included: a
// generation runs to its token limit and is valid text.
#include "gateway/model/loaded_checkpoint.h"

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

namespace incipit::gateway {
namespace {

constexpr int hidden = 64;
constexpr int layers = 2;
constexpr int heads = 4;
constexpr int kv_heads = 2;
constexpr int head_dim = 16;
constexpr int feed_forward = 128;
constexpr int context = 32768;
constexpr int byte_values = 256;
constexpr const char* specials[] = {"<|end|>", "<|system|>", "<|user|>", "<|assistant|>",
                                    "<|tools|>"};
constexpr int vocabulary = byte_values + static_cast<int>(std::size(specials));

// splitmix64: one multiplication-and-shift mix per draw.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}

  // Uniform in [-128, 127].
  int next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return static_cast<int>(mixed >> 56) - 128;
  }

 private:
  std::uint64_t state_;
};

class TinyBuilder {
 public:
  explicit TinyBuilder(std::uint64_t seed) : generator_(seed) {}

  // Random in [-128, 127] * unit, row by row. The values stay valid until the next call.
  std::vector<float>& random(int rows, int cols, float unit) {
    values_.resize(static_cast<std::size_t>(rows) * cols);
    for (float& value : values_)
      value = static_cast<float>(generator_.next()) * unit;
    return values_;
  }

  std::vector<float>& ones(int count) {
    values_.assign(count, 1.0F);
    return values_;
  }

  void add(const std::string& name, int rows, int cols) {
    std::vector<std::byte>& copy = parts.copies.emplace_back(values_.size() * sizeof(float));
    std::memcpy(copy.data(), values_.data(), copy.size());
    parts.tensors.emplace(name, kernels::HostTensor{copy.data(), kernels::DType::f32, rows, cols});
  }

  CheckpointParts parts;

 private:
  Generator generator_;
  std::vector<float> values_;
};

ModelConfig tiny_config() {
  ModelConfig config;
  config.architecture = "llama";
  config.name = "tiny";
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.kv_heads = kv_heads;
  config.head_dim = head_dim;
  config.feed_forward = feed_forward;
  config.context = context;
  config.rope_pairing = kernels::RopePairing::halves;
  return config;
}

TokenizerSpec tiny_tokenizer() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::bytes;
  for (int value = 0; value < byte_values; ++value) {
    spec.pieces.emplace_back(1, static_cast<char>(value));
    spec.types.push_back(TokenizerSpec::TokenType::normal);
  }
  for (const char* special : specials) {
    spec.pieces.emplace_back(special);
    spec.types.push_back(TokenizerSpec::TokenType::control);
  }
  spec.eos = byte_values;
  return spec;
}

bool is_printable(int token) {
  return token >= ' ' && token <= '~';
}

void add_layer(TinyBuilder& builder, int index) {
  constexpr int q = heads * head_dim;
  constexpr int kv = kv_heads * head_dim;
  const std::string prefix = "blk." + std::to_string(index) + ".";
  // Sharp attention and strong layers: what comes next depends on the whole prompt, not just on the
  // last byte, and greedy text does not fall into a short cycle.
  builder.random(q, hidden, 0x1p-8F);
  builder.add(prefix + "attn_q.weight", q, hidden);
  builder.random(kv, hidden, 0x1p-8F);
  builder.add(prefix + "attn_k.weight", kv, hidden);
  builder.random(kv, hidden, 0x1p-8F);
  builder.add(prefix + "attn_v.weight", kv, hidden);
  std::vector<float>& output = builder.random(hidden, q, 0x1p-8F);
  std::fill_n(output.begin(), q, 0.0F);  // row 0 writes to dimension 0
  builder.add(prefix + "attn_output.weight", hidden, q);
  builder.random(feed_forward, hidden, 0x1p-8F);
  builder.add(prefix + "ffn_gate.weight", feed_forward, hidden);
  builder.random(feed_forward, hidden, 0x1p-8F);
  builder.add(prefix + "ffn_up.weight", feed_forward, hidden);
  std::vector<float>& down = builder.random(hidden, feed_forward, 0x1p-9F);
  std::fill_n(down.begin(), feed_forward, 0.0F);
  builder.add(prefix + "ffn_down.weight", hidden, feed_forward);
  for (const char* norm : {"attn_norm.weight", "ffn_norm.weight"}) {
    builder.ones(hidden);
    builder.add(prefix + norm, 1, hidden);
  }
}

}  // namespace

std::unique_ptr<Checkpoint> make_tiny_checkpoint(std::uint64_t seed, bool thinks) {
  TinyBuilder builder(seed);
  builder.parts.origin = thinks ? "tiny-thinking" : "tiny";
  builder.parts.config = tiny_config();
  builder.parts.config.name = builder.parts.origin;
  builder.parts.tokenizer = tiny_tokenizer();
  if (thinks) builder.parts.tokenizer.chat_template = "<think>";

  std::vector<float>& embedding = builder.random(vocabulary, hidden, 0x1p-7F);
  for (int token = 0; token < vocabulary; ++token)
    embedding[static_cast<std::size_t>(token) * hidden] = 1.0F;
  builder.add("token_embd.weight", vocabulary, hidden);
  for (int layer = 0; layer < layers; ++layer)
    add_layer(builder, layer);
  builder.ones(hidden);
  builder.add("output_norm.weight", 1, hidden);
  std::vector<float>& head = builder.random(vocabulary, hidden, 0x1p-8F);
  for (int token = 0; token < vocabulary; ++token) {
    head[static_cast<std::size_t>(token) * hidden] = is_printable(token) ? 0.0F : -1024.0F;
  }
  builder.add("output.weight", vocabulary, hidden);
  return make_checkpoint(std::move(builder.parts));
}

}  // namespace incipit::gateway
