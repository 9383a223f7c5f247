// Cuts attention into items for the worker threads.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/aligned_memory.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/worker_pool.h"

#include <vector>

namespace incipit::kernels {

// Byte offsets within the blocks of a pool, for one layer.
class PoolView {
 public:
  PoolView(const KvPool& pool, int layer)
      : data_(static_cast<std::uint8_t*>(pool.data)),
        block_bytes_(pool.layout.block_bytes()),
        head_bytes_(std::size_t{2} * pool.layout.head_dim * pool.layout.block_tokens),
        layer_offset_(head_bytes_ * 2 * pool.layout.kv_heads * layer),
        kv_heads_(pool.layout.kv_heads) {}

  [[nodiscard]] std::uint8_t* block(std::int32_t index) const noexcept {
    return data_ + static_cast<std::size_t>(index) * block_bytes_;
  }

  [[nodiscard]] std::size_t head_bytes() const noexcept { return head_bytes_; }

  [[nodiscard]] std::size_t key_offset(int head) const noexcept {
    return layer_offset_ + head_bytes_ * head;
  }

  [[nodiscard]] std::size_t value_offset(int head) const noexcept {
    return key_offset(head) + head_bytes_ * kv_heads_;
  }

 private:
  std::uint8_t* data_;
  std::size_t block_bytes_;
  std::size_t head_bytes_;
  std::size_t layer_offset_;
  int kv_heads_;
};

class AttentionPlan {
 public:
  AttentionPlan(const KernelTable& kernels, WorkerPool& pool) : kernels_(kernels), pool_(pool) {}

  // See Backend::attention.
  void run(const AttentionArguments& arguments, const KvPool& pool, int layer,
           std::span<const SequenceSpan> spans);

 private:
  // Rows of one span under one kv head, and the splits of 1024 positions they see.
  struct Item {
    AttentionBlock block;
    int first_split = 0;
    int splits = 0;
    int states = 0;      // of 16 columns
    int first_part = 0;  // when splits are computed apart
  };

  void plan(const AttentionArguments& arguments, const KvPool& pool, int layer,
            std::span<const SequenceSpan> spans);
  void attend_in_order(const Item& item, int thread);
  void attend_apart();
  [[nodiscard]] bool attend_rows(const AttentionBlock& block, int first_split, int splits,
                                 int thread);

  const KernelTable& kernels_;
  WorkerPool& pool_;
  std::vector<Item> items_;
  int head_dim_ = 0;
  int most_columns_ = 0;
  std::size_t thread_bytes_ = 0;
  AlignedMemory scratch_;  // per thread: total and partial state, then what the kernel wants
  AlignedMemory parts_;    // states of splits that were computed apart
};

}  // namespace incipit::kernels
