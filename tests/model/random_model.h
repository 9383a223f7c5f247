// A small random model of any architecture, in the layout of Hugging Face checkpoints, and the same
// model written in both file formats.
#pragma once

#include "gguf_builder.h"
#include "temporary_directory.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace incipit::test {

struct RandomModel {
  std::string architecture = "llama";
  int layers = 2, hidden = 64, heads = 4, kv_heads = 2, head_dim = 16, feed_forward = 96;
  int vocab = 40, context = 2048;
  double rope_base = 10000.0, rope_base_local = 10000.0;
  int sliding_window = 0, sliding_pattern = 0;
  bool tied = false;
  bool qkv_bias = false;
  bool llama3_scaling = false;  // factor 8, 1 and 4, original context 64

  // By Hugging Face name without "model." and ".weight"; norm weights of gemma3 without the 1.
  std::map<std::string, std::vector<float>> tensors;

  // Fills `tensors` for the sizes above.
  void randomise(std::uint32_t seed);

  [[nodiscard]] std::vector<std::uint64_t> shape(const std::string& name) const;  // outermost first

  [[nodiscard]] bool is_gemma() const { return architecture == "gemma3"; }

  [[nodiscard]] bool has_head_norms() const { return is_gemma() || architecture == "qwen3"; }

  // Everything that this fixture knows, as GGUF: llama's q and k permuted, gemma's norms plus 1.
  [[nodiscard]] GgufBuilder gguf() const;
  // config.json, tokenizer.json and model.safetensors (`shards` = 0) or an index with shards.
  void write_safetensors(const TemporaryDirectory& directory, int shards = 0) const;
  [[nodiscard]] std::string config_json() const;
  [[nodiscard]] std::string tokenizer_json() const;
};

// A .safetensors file with the named F32 tensors.
[[nodiscard]] std::string safetensors_bytes(const RandomModel& model,
                                            const std::vector<std::string>& names);

}  // namespace incipit::test
