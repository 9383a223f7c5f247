// A weight matrix of the cpu backend.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/aligned_memory.h"
#include "kernels/cpu/panel.h"

#include <cstdint>
#include <span>
#include <vector>

namespace incipit::kernels {

class WorkerPool;

class PackedWeight : public Weight {
 public:
  PackedWeight(std::span<const HostTensor> stacked, InputPrecision inputs, WorkerPool& pool);

  [[nodiscard]] int rows() const override { return rows_; }

  [[nodiscard]] int cols() const override { return cols_; }

  [[nodiscard]] std::size_t bytes() const override { return memory_.size(); }

  [[nodiscard]] InputPrecision inputs() const noexcept { return inputs_; }

  [[nodiscard]] int panels() const noexcept { return panels_; }

  // Panel `index` in [0, panels()) and the output row of its first lane.
  [[nodiscard]] Panel panel(int index, int& first_row) const noexcept;

  // Row `row` as float32, exactly as `dequantize_row` gives it (rounded to bf16 for plain floats).
  void read_row(int row, float* out) const noexcept;

 private:
  // The panels of one source tensor.
  struct Segment {
    PanelFormat format = PanelFormat::bf16;
    int first_row = 0;
    int rows = 0;
    int first_panel = 0;
    std::size_t offset = 0;  // in memory_
    std::size_t quant_bytes = 0;
    std::size_t scale_bytes = 0;  // of the scales alone; as many again for mins
    std::size_t panel_bytes = 0;
  };

  [[nodiscard]] const Segment& segment_of_panel(int panel) const noexcept;
  [[nodiscard]] const Segment& segment_of_row(int row) const noexcept;
  void pack_panel(const HostTensor& source, const Segment& segment, int panel);

  int rows_ = 0;
  int cols_ = 0;
  int groups_ = 0;
  int panels_ = 0;
  InputPrecision inputs_;
  std::vector<Segment> segments_;
  AlignedMemory memory_;
};

}  // namespace incipit::kernels
