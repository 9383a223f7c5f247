#include "kernels/tensor.h"

#include "kernels/number.h"
#include "kernels/quant_block.h"

#include <array>
#include <cassert>
#include <cstring>

namespace incipit::kernels {
namespace {

constexpr std::array<DTypeInfo, 11> dtype_table{{
    {"F32", 0, 1, 4},
    {"F16", 1, 1, 2},
    {"BF16", 30, 1, 2},
    {"Q8_0", 8, 32, 34},
    {"Q4_0", 2, 32, 18},
    {"Q4_1", 3, 32, 20},
    {"Q5_0", 6, 32, 22},
    {"Q5_1", 7, 32, 24},
    {"Q4_K", 12, 256, 144},
    {"Q5_K", 13, 256, 176},
    {"Q6_K", 14, 256, 210},
}};

}  // namespace

const DTypeInfo& info(DType dtype) noexcept {
  return dtype_table[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_from_gguf(std::uint32_t gguf_type) noexcept {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    if (static_cast<std::uint32_t>(dtype_table[i].gguf_type) == gguf_type) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

std::size_t row_bytes(DType dtype, std::int64_t cols) noexcept {
  const DTypeInfo& type = info(dtype);
  assert(cols >= 0 && cols % type.block_elements == 0);
  return static_cast<std::size_t>(cols / type.block_elements) * type.block_bytes;
}

void dequantize_row(DType dtype, const void* row, float* out, std::int64_t cols) {
  const auto* bytes = static_cast<const std::uint8_t*>(row);
  switch (dtype) {
    case DType::f32:
      std::memcpy(out, bytes, static_cast<std::size_t>(cols) * sizeof(float));
      return;
    case DType::f16:
      for (std::int64_t i = 0; i < cols; ++i)
        out[i] = float_from_half(read_u16(bytes + 2 * i));
      return;
    case DType::bf16:
      for (std::int64_t i = 0; i < cols; ++i)
        out[i] = float_from_bf16(read_u16(bytes + 2 * i));
      return;
    default:
      break;
  }
  const DTypeInfo& type = info(dtype);
  assert(cols % type.block_elements == 0);
  const int group = quant_group_size(dtype);
  const int groups_per_block = type.block_elements / group;
  const bool has_min = quant_has_min(dtype);
  for (std::int64_t begin = 0; begin < cols; begin += group) {
    const std::int64_t block = begin / type.block_elements;
    const QuantGroup values = decode_group(dtype, bytes + block * type.block_bytes,
                                           static_cast<int>(begin / group % groups_per_block));
    for (int i = 0; i < group; ++i) {
      const float product = values.scale * static_cast<float>(values.quants[i]);
      out[begin + i] = has_min ? product + values.min : product;
    }
  }
}

}  // namespace incipit::kernels
