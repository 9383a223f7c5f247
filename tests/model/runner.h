// What the forward-pass tests share: a loaded model with KV memory, and small models to load.
#pragma once

#include "gateway/model/checkpoint.h"
#include "kernels/backend.h"
#include "random_model.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace incipit::test {

using gateway::Batch;
using gateway::Checkpoint;
using Logits = std::vector<float>;
using Tokens = std::vector<std::int32_t>;

inline constexpr int block_tokens = 16;

inline kernels::Backend& backend() {
  static const auto shared = kernels::make_backend("cpu", {2, ""});
  return *shared;
}

// A loaded model with KV memory.
class Runner {
 public:
  explicit Runner(const Checkpoint& checkpoint, int blocks = 256)
      : model_(gateway::load_model(checkpoint, backend(), 0)) {
    model_->allocate_kv(blocks, block_tokens);
  }

  gateway::Model& model() { return *model_; }

  Logits forward(const Batch& batch) {
    Logits logits(batch.logits_rows.size() * static_cast<std::size_t>(model_->info().vocab_size));
    model_->forward(batch, logits);
    return logits;
  }

  // Logits of all `tokens`, placed at positions `context`…
  Logits run(const Tokens& tokens, int context, const std::vector<std::int32_t>& table) {
    Batch batch{tokens, {{0, static_cast<int>(tokens.size()), context, table.data()}}, {}};
    batch.logits_rows.resize(tokens.size());
    std::iota(batch.logits_rows.begin(), batch.logits_rows.end(), 0);
    return forward(batch);
  }

 private:
  std::unique_ptr<gateway::Model> model_;
};

inline std::vector<std::int32_t> blocks_from(int first, int count = 128) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(count));
  std::iota(table.begin(), table.end(), first);
  return table;
}

inline Tokens random_tokens(int count, int vocab, std::uint32_t seed) {
  std::mt19937 generator(seed);
  Tokens tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(generator() % static_cast<std::uint32_t>(vocab)));
  }
  return tokens;
}

inline bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::unique_ptr<Checkpoint> as_gguf(const TemporaryDirectory& directory,
                                           const RandomModel& model) {
  return gateway::open_gguf(directory.write("m.gguf", model.gguf().build()));
}

inline std::unique_ptr<Checkpoint> as_safetensors(const TemporaryDirectory& directory,
                                                  const RandomModel& model) {
  model.write_safetensors(directory);
  return gateway::open_safetensors(directory.path());
}

inline RandomModel model_of(const std::string& architecture) {
  RandomModel model;
  model.architecture = architecture;
  if (architecture == "qwen2") model.qkv_bias = true;
  if (architecture == "qwen3") model.head_dim = 32;  // not hidden / heads
  if (architecture == "gemma3") {
    model.tied = true;
    model.rope_base = 1e6;
    model.sliding_window = 9;
    model.sliding_pattern = 2;
  }
  model.randomise(7);
  return model;
}

}  // namespace incipit::test
