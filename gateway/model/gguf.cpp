// GGUF metadata and tensors as a Checkpoint.
#include "gateway/model/architecture.h"
#include "gateway/model/gguf_file.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace incipit::gateway {
namespace {

using TokenType = TokenizerSpec::TokenType;

[[noreturn]] void fail(const GgufFile& file, const std::string& problem) {
  throw std::runtime_error(file.origin() + ": " + problem);
}

// Hyper-parameters, whose keys begin with the architecture's name.
class Hyperparameters {
 public:
  Hyperparameters(const GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  [[nodiscard]] int count(std::string_view name) const {
    const std::optional<std::int64_t> value = file_.integer(key(name));
    if (!value) fail(file_, "metadata entry \"" + key(name) + "\" is missing");
    return narrow(name, *value);
  }

  [[nodiscard]] int count(std::string_view name, int otherwise) const {
    const std::optional<std::int64_t> value = file_.integer(key(name));
    return value ? narrow(name, *value) : otherwise;
  }

  [[nodiscard]] double number(std::string_view name, double otherwise) const {
    return file_.number(key(name)).value_or(otherwise);
  }

  [[nodiscard]] std::string text(std::string_view name) const {
    return file_.text(key(name)).value_or("");
  }

  // Refuses a value that asks for arithmetic that we do not have.
  void must_be(std::string_view name, std::int64_t expected) const {
    const std::optional<std::int64_t> value = file_.integer(key(name));
    if (value && *value != expected) {
      file_.fail(key(name),
                 "is " + std::to_string(*value) + "; supported is " + std::to_string(expected));
    }
  }

 private:
  [[nodiscard]] int narrow(std::string_view name, std::int64_t value) const {
    if (value < 0 || value > std::numeric_limits<int>::max()) {
      file_.fail(key(name), "is " + std::to_string(value) + ", which is out of range");
    }
    return static_cast<int>(value);
  }

  const GgufFile& file_;
  std::string prefix_;
};

void read_rope(const GgufFile& file, const Hyperparameters& parameters, ModelConfig& config) {
  const bool gemma = config.architecture == "gemma3";
  config.rope_base = parameters.number("rope.freq_base", gemma ? 1e6 : 1e4);
  config.rope_base_local = parameters.number("rope.freq_base_swa", 1e4);
  parameters.must_be("rope.dimension_count", config.head_dim);
  const std::string scaling = parameters.text("rope.scaling.type");
  if (scaling == "linear") {
    config.rope_linear_factor = parameters.number("rope.scaling.factor", 1.0);
  } else if (!scaling.empty() && scaling != "none") {
    file.fail(parameters.key("rope.scaling.type"),
              "is \"" + scaling + "\"; supported are none, linear and a rope_freqs.weight tensor");
  }
  // Files of the llama architecture have the rows of attn_q and attn_k permuted.
  config.rope_pairing = config.architecture == "llama" ? kernels::RopePairing::interleaved
                                                       : kernels::RopePairing::halves;
}

// A number n (every n-th layer is global) or a flag per layer (true = sliding).
int read_sliding_pattern(const GgufFile& file, const Hyperparameters& parameters, int layers) {
  constexpr int gemma_pattern = 6;
  const std::string key = parameters.key("attention.sliding_window_pattern");
  if (!file.is_array(key))
    return parameters.count("attention.sliding_window_pattern", gemma_pattern);
  const std::vector<std::int64_t> flags = *file.integers(key);
  int pattern = 0;
  while (pattern < static_cast<int>(flags.size()) && flags[pattern] != 0)
    ++pattern;
  ++pattern;
  for (int layer = 0; layer < static_cast<int>(flags.size()); ++layer) {
    const bool slides = (layer + 1) % pattern != 0;
    if (layers != static_cast<int>(flags.size()) || slides != (flags[layer] != 0)) {
      file.fail(key, "is not a regular pattern with one flag per layer");
    }
  }
  return pattern;
}

void read_attention(const GgufFile& file, const Hyperparameters& parameters, ModelConfig& config) {
  config.heads = parameters.count("attention.head_count");
  config.kv_heads = parameters.count("attention.head_count_kv", config.heads);
  const int even_share = config.heads > 0 ? config.hidden / config.heads : 0;
  config.head_dim = parameters.count("attention.key_length", even_share);
  parameters.must_be("attention.value_length", config.head_dim);
  config.sliding_window = parameters.count("attention.sliding_window", 0);
  if (config.architecture == "gemma3") {
    config.sliding_pattern = read_sliding_pattern(file, parameters, config.layers);
    // The 27B model, alone of its family, scales by hidden/heads instead of by the head size.
    constexpr int layers_27b = 62;
    if (config.layers == layers_27b && even_share > 0) {
      config.attention_scale = 1.0F / std::sqrt(static_cast<float>(even_share));
    }
  }
}

ModelConfig read_config(const GgufFile& file) {
  ModelConfig config;
  const std::optional<std::string> architecture = file.text("general.architecture");
  if (!architecture) fail(file, "metadata entry \"general.architecture\" is missing");
  if (!is_supported_architecture(*architecture)) {
    file.fail("general.architecture", "is \"" + *architecture + "\", which is not supported; "
                                          + "supported are "
                                          + std::string(supported_architectures()));
  }
  config.architecture = *architecture;
  config.name = file.text("general.name").value_or(*architecture);
  const Hyperparameters parameters(file, *architecture);
  parameters.must_be("expert_count", 0);
  config.layers = parameters.count("block_count");
  config.hidden = parameters.count("embedding_length");
  config.feed_forward = parameters.count("feed_forward_length");
  config.context = parameters.count("context_length");
  config.norm_epsilon =
      static_cast<float>(parameters.number("attention.layer_norm_rms_epsilon", 1e-5));
  read_attention(file, parameters, config);
  read_rope(file, parameters, config);
  if (config.architecture == "gemma3") {
    config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
    config.activation = kernels::Activation::gelu_tanh;
  }
  return config;
}

std::vector<TokenType> read_token_types(const GgufFile& file, std::size_t pieces) {
  constexpr std::string_view key = "tokenizer.ggml.token_type";
  const auto numbers = file.integers(key);
  if (!numbers) return std::vector<TokenType>(pieces, TokenType::normal);
  std::vector<TokenType> types;
  types.reserve(numbers->size());
  for (const std::int64_t number : *numbers) {
    switch (number) {
      case 1:
        types.push_back(TokenType::normal);
        break;
      case 2:
        types.push_back(TokenType::unknown);
        break;
      case 3:
        types.push_back(TokenType::control);
        break;
      case 4:
        types.push_back(TokenType::user_defined);
        break;
      case 5:
        types.push_back(TokenType::unused);
        break;
      case 6:
        types.push_back(TokenType::byte);
        break;
      default:
        file.fail(key, "holds " + std::to_string(number) + ", which is no token type");
    }
  }
  return types;
}

std::int32_t read_token_id(const GgufFile& file, std::string_view key) {
  const std::int64_t id = file.integer(key).value_or(-1);
  if (id > std::numeric_limits<std::int32_t>::max() || id < -1) {
    file.fail(key, "is " + std::to_string(id) + ", which is no token id");
  }
  return static_cast<std::int32_t>(id);
}

TokenizerSpec read_tokenizer(const GgufFile& file) {
  TokenizerSpec spec;
  const std::optional<std::string> model = file.text("tokenizer.ggml.model");
  if (!model) fail(file, "metadata entry \"tokenizer.ggml.model\" is missing");
  if (*model == "gpt2") {
    spec.kind = TokenizerSpec::Kind::byte_bpe;
  } else if (*model == "llama") {
    spec.kind = TokenizerSpec::Kind::sentencepiece;
  } else {
    file.fail("tokenizer.ggml.model", "is \"" + *model
                                          + "\", which is not supported; supported are "
                                          + "gpt2 (byte-level BPE) and llama (SentencePiece)");
  }
  const bool is_sentencepiece = spec.kind == TokenizerSpec::Kind::sentencepiece;
  spec.pre = file.text("tokenizer.ggml.pre").value_or("default");
  spec.pieces = file.texts("tokenizer.ggml.tokens").value_or(std::vector<std::string>());
  spec.types = read_token_types(file, spec.pieces.size());
  if (is_sentencepiece) {
    const auto scores = file.floats("tokenizer.ggml.scores");
    if (!scores) fail(file, "metadata entry \"tokenizer.ggml.scores\" is missing");
    spec.scores = *scores;
  } else {
    const auto merges = file.texts("tokenizer.ggml.merges");
    if (!merges) fail(file, "metadata entry \"tokenizer.ggml.merges\" is missing");
    spec.merges = *merges;
  }
  spec.bos = read_token_id(file, "tokenizer.ggml.bos_token_id");
  spec.eos = read_token_id(file, "tokenizer.ggml.eos_token_id");
  spec.unknown = read_token_id(file, "tokenizer.ggml.unknown_token_id");
  // Defaults of files that predate these keys, per tokenizer model.
  const bool llama3 = spec.pre == "llama-bpe" || spec.pre == "llama3" || spec.pre == "llama-v3";
  spec.add_bos = file.boolean("tokenizer.ggml.add_bos_token").value_or(is_sentencepiece || llama3);
  spec.add_space_prefix =
      file.boolean("tokenizer.ggml.add_space_prefix").value_or(is_sentencepiece);
  spec.chat_template = file.text("tokenizer.chat_template").value_or("");
  return spec;
}

// Llama 3.x stores its RoPE frequency divisors as a tensor.
void take_rope_factors(CheckpointParts& parts) {
  const auto found = parts.tensors.find("rope_freqs.weight");
  if (found == parts.tensors.end()) return;
  const kernels::HostTensor& tensor = found->second;
  if (tensor.rows != 1 || tensor.cols != parts.config.head_dim / 2) {
    throw std::runtime_error(parts.origin + ": tensor rope_freqs.weight is "
                             + std::to_string(tensor.rows) + " x " + std::to_string(tensor.cols)
                             + ", but the head size asks for 1 x "
                             + std::to_string(parts.config.head_dim / 2));
  }
  parts.config.rope_factors.resize(static_cast<std::size_t>(tensor.cols));
  kernels::dequantize_row(tensor.dtype, tensor.data, parts.config.rope_factors.data(), tensor.cols);
  parts.tensors.erase(found);
}

}  // namespace

std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path) {
  CheckpointParts parts;
  parts.origin = path.string();
  parts.files.emplace_back(path);
  const GgufFile file(parts.files.front().bytes(), parts.origin);
  parts.config = read_config(file);
  parts.tokenizer = read_tokenizer(file);
  parts.tensors = file.tensors();
  take_rope_factors(parts);
  return make_checkpoint(std::move(parts));
}

}  // namespace incipit::gateway
