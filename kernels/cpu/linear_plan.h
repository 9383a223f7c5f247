// Cuts a matrix product into items for the worker threads.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/aligned_memory.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/worker_pool.h"

namespace incipit::kernels {

class LinearPlan {
 public:
  LinearPlan(const KernelTable& kernels, WorkerPool& pool) : kernels_(kernels), pool_(pool) {}

  // See Backend::linear.
  void run(Rows x, const PackedWeight& weight, const float* bias, bool accumulate, Rows y);

 private:
  void run_once(Rows x, const PackedWeight& weight, const float* bias, bool accumulate, Rows y);
  // What rounding the inputs to bf16 leaves over, as rows of their own.
  [[nodiscard]] Rows remainder(Rows x);
  void make_tiles(Rows x, int tile_rows, bool wide);
  void multiply(const PackedWeight& weight, const float* bias, bool accumulate, Rows y, bool wide);

  const KernelTable& kernels_;
  WorkerPool& pool_;
  AlignedMemory remainder_;
  AlignedMemory inputs_;
  AlignedMemory scratch_;
  std::vector<InputTile> tiles_;
};

}  // namespace incipit::kernels
