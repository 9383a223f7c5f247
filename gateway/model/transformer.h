// The forward pass of a decoder-only transformer over kernels::Backend.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/model/weights.h"

#include <memory>
#include <span>
#include <vector>

namespace incipit::gateway {

class Transformer final : public Model {
 public:
  // `context`: positions to provide for, at most the checkpoint's own. The backend outlives the
  // object; the checkpoint need not.
  Transformer(const Checkpoint& checkpoint, kernels::Backend& backend, int context);

  [[nodiscard]] const ModelInfo& info() const override { return info_; }

  [[nodiscard]] std::size_t kv_block_bytes(int block_tokens) const override;
  void allocate_kv(int blocks, int block_tokens) override;
  // Throws std::invalid_argument for a token id outside the vocabulary, positions beyond the
  // context, or a `logits` of the wrong size; the KV pool is then untouched.
  void forward(const Batch& batch, std::span<float> logits) override;
  void copy_block(int from, int to, int tokens) override;

 private:
  // Activations of up to `max_rows_` rows.
  struct Scratch {
    std::unique_ptr<kernels::Buffer> memory;
    float* hidden = nullptr;   // [rows][d] the residual stream
    float* normed = nullptr;   // [rows][d]
    float* qkv = nullptr;      // [rows][(H + 2G) * D]
    float* queries = nullptr;  // [rows][H * D]
    float* mixed = nullptr;    // [rows][H * D] what attention gives
    float* gate_up = nullptr;  // [rows][2F]
    float* gated = nullptr;    // [rows][F]
    float* logits = nullptr;   // [head_rows][V]
  };

  void allocate_scratch();
  void check(const Batch& batch, std::size_t logits) const;
  void run_rows(std::span<const std::int32_t> tokens, std::span<const kernels::SequenceSpan> spans);
  void attend(int index, kernels::Rows hidden, std::span<const kernels::SequenceSpan> spans);
  void feed_forward(const LayerWeights& layer, kernels::Rows hidden);
  void head(int rows, std::span<const std::int32_t> wanted, float* logits);
  [[nodiscard]] bool is_sliding(int layer) const;
  [[nodiscard]] kernels::KvLayout layout(int block_tokens) const;

  kernels::Backend& backend_;
  ModelConfig config_;
  ModelInfo info_;
  Weights weights_;
  Scratch scratch_;
  std::unique_ptr<kernels::Buffer> kv_memory_;
  kernels::KvPool pool_;
};

}  // namespace incipit::gateway
