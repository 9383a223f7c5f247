// The forward pass as the engine sees it: token ids in, logits out, KV in numbered blocks.
#pragma once

#include "kernels/backend.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace incipit::gateway {

using Digest = std::array<std::uint8_t, 16>;

struct ModelInfo {
  std::string name;          // "SmolLM2-135M-Instruct"
  std::string architecture;  // "llama"
  std::int64_t parameters = 0;
  int vocab_size = 0;
  int context = 0;  // positions the model was trained for, or less by --context
  // Identifies everything that KV bytes depend on: weights, RoPE, numerics profile, layout.
  Digest digest{};
};

// What one forward pass computes: runs of rows of several sequences, chunked prefill and decode
// alike. `logits_rows` are the rows (ascending) whose logits are wanted.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::vector<kernels::SequenceSpan> spans;  // cover the rows in order, without gaps
  std::vector<std::int32_t> logits_rows;
};

// One thread at a time. A failing device throws; the model is then unusable.
class Model {
 public:
  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelInfo& info() const = 0;
  [[nodiscard]] virtual std::size_t kv_block_bytes(int block_tokens) const = 0;
  // Called once before the first forward. Throws std::runtime_error that names the sizes when the
  // memory is not to be had.
  virtual void allocate_kv(int blocks, int block_tokens) = 0;
  // logits: [batch.logits_rows.size()][vocab_size], host memory.
  virtual void forward(const Batch& batch, std::span<float> logits) = 0;
  // Copies the first `tokens` positions of a KV block.
  virtual void copy_block(int from, int to, int tokens) = 0;
};

}  // namespace incipit::gateway
