// Quantised blocks as integers: value = scale * quant (+ min).
#pragma once

#include "kernels/tensor.h"

#include <array>
#include <cstdint>

namespace incipit::kernels {

// Consecutive elements of a row that share a scale.
struct QuantGroup {
  std::array<std::int8_t, 32> quants{};
  float scale = 0;
  float min = 0;  // 0 for types without one
};

// Elements per scale: 32, or 16 for Q6_K. Quantised types only.
[[nodiscard]] int quant_group_size(DType dtype) noexcept;

// Whether values of this type are `scale * quant + min`.
[[nodiscard]] bool quant_has_min(DType dtype) noexcept;

// Whether scale and min are themselves half-precision numbers of the file. K-quants multiply two
// numbers to get theirs, which needs more bits.
[[nodiscard]] bool quant_scale_is_half(DType dtype) noexcept;

// Decodes group `index` of one block.
[[nodiscard]] QuantGroup decode_group(DType dtype, const std::uint8_t* block, int index) noexcept;

}  // namespace incipit::kernels
