// A model file, opened: its hyper-parameters, its tokenizer and its tensors, whatever the format.
#pragma once

#include "gateway/model/model.h"
#include "kernels/tensor.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// The tokenizer as the file describes it. `gateway/prompt/tokenizer.h` makes one of it.
struct TokenizerSpec {
  enum class Kind : std::uint8_t {
    byte_bpe,       // GPT-2 style: byte-level pieces, ranked merges, a pre-tokenizer
    sentencepiece,  // pieces with scores, "▁" for blank, <0xNN> byte fallback
    bytes,          // token id = byte value (the tiny model), special tokens after 255
  };
  enum class TokenType : std::uint8_t { normal, control, user_defined, unknown, byte, unused };

  Kind kind = Kind::byte_bpe;
  std::string pre;  // pre-tokenizer name: "smollm", "llama-bpe", "qwen2", "default", …
  std::vector<std::string> pieces;  // as in the file (byte-level alphabet or "▁" kept)
  std::vector<TokenType> types;     // same length as pieces
  std::vector<float> scores;        // sentencepiece only
  std::vector<std::string> merges;  // byte_bpe (and sentencepiece in tokenizer.json): "left right"
  std::int32_t bos = -1, eos = -1, unknown = -1;
  bool add_bos = false;
  bool add_space_prefix = false;
  std::string chat_template;  // Jinja text from the file; used to recognise the family, not run
};

// Hyper-parameters of the transformer family that we run.
struct ModelConfig {
  std::string architecture;  // "llama", "qwen2", "qwen3", "gemma3"
  std::string name;
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0;
  int vocab_size = 0, context = 0;
  float norm_epsilon = 1e-5F;
  double rope_base = 10000.0;
  double rope_base_local = 10000.0;  // gemma3's sliding-window layers
  double rope_linear_factor = 1.0;   // linear scaling (gemma3 4B and up, global layers)
  std::vector<float> rope_factors;   // [head_dim/2] frequency divisors (Llama 3.x), or empty
  kernels::RopePairing rope_pairing = kernels::RopePairing::halves;
  int sliding_window = 0;   // 0 = none
  int sliding_pattern = 0;  // every n-th layer is global (gemma3: 6)
  float embedding_scale = 1.0F;
  float attention_scale = 0.0F;  // 0 = 1/sqrt(head_dim)
  kernels::Activation activation = kernels::Activation::silu;
  bool tied_embeddings = false;
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  [[nodiscard]] virtual const ModelConfig& config() const = 0;
  [[nodiscard]] virtual const TokenizerSpec& tokenizer() const = 0;
  // Tensor by canonical (GGUF) name, "blk.3.attn_q.weight"; nullptr when the file has none.
  // Shapes and extents were checked at opening.
  [[nodiscard]] virtual const kernels::HostTensor* tensor(std::string_view name) const = 0;
  [[nodiscard]] virtual Digest digest() const = 0;  // of weights, hyper-parameters and tokenizer
};

// Opens a GGUF file, a safetensors directory, or "tiny" or "tiny-thinking" (the seeded random
// model). Throws std::runtime_error: one sentence that names file, offset or tensor, the problem,
// and, for something unsupported, what is supported.
[[nodiscard]] std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& directory);
// Random weights from a seed, made in memory: 32k context, byte-level tokenizer whose special
// tokens follow id 255 in the order <|end|> <|system|> <|user|> <|assistant|> <|tools|>. `thinks`:
// with a template of models that think aloud ("tiny-thinking").
[[nodiscard]] std::unique_ptr<Checkpoint> make_tiny_checkpoint(std::uint64_t seed = 1,
                                                               bool thinks = false);

// Loads the weights onto the backend, which must outlive the model. `context` 0 = the file's own.
[[nodiscard]] std::unique_ptr<Model> load_model(const Checkpoint& checkpoint,
                                                kernels::Backend& backend, int context);

}  // namespace incipit::gateway
