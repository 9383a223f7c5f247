#include "kernels/cpu/packed_weight.h"

#include "kernels/cpu/worker_pool.h"
#include "kernels/number.h"
#include "kernels/quant_block.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace incipit::kernels {
namespace {

constexpr bool is_float(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

PanelFormat format_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::q4_0:
      return PanelFormat::q4_half;
    case DType::q4_1:
      return PanelFormat::q4_half_min;
    case DType::q4_k:
      return PanelFormat::q4_float_min;
    case DType::q8_0:
    case DType::q5_0:
      return PanelFormat::q8_half;
    case DType::q5_1:
      return PanelFormat::q8_half_min;
    case DType::q5_k:
      return PanelFormat::q8_float_min;
    case DType::q6_k:
      return PanelFormat::q8_float_16;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      break;
  }
  return PanelFormat::bf16;
}

struct FormatShape {
  int bits;         // per weight
  int scale_bytes;  // per row and scale group; 0 = none
  bool has_min;
  int group;  // columns per scale
  int zero;   // what to add to a quant to get the stored nibble
};

FormatShape shape_of(PanelFormat format) noexcept {
  switch (format) {
    case PanelFormat::bf16:
      break;
    case PanelFormat::q4_half:
      return {4, 2, false, 32, 8};
    case PanelFormat::q4_half_min:
      return {4, 2, true, 32, 0};
    case PanelFormat::q4_float_min:
      return {4, 4, true, 32, 0};
    case PanelFormat::q8_half:
      return {8, 2, false, 32, 0};
    case PanelFormat::q8_half_min:
      return {8, 2, true, 32, 0};
    case PanelFormat::q8_float_min:
      return {8, 4, true, 32, 0};
    case PanelFormat::q8_float_16:
      return {8, 4, false, 16, 0};
  }
  return {16, 0, false, 32, 0};
}

constexpr std::size_t round_up(std::size_t value, std::size_t step) noexcept {
  return (value + step - 1) / step * step;
}

// Where column `k` of lane `lane` lies within a group of 32 of a nibble panel: word and shift.
constexpr std::size_t nibble_word(int k, int lane) noexcept {
  return static_cast<std::size_t>(k / 8) * panel_rows + static_cast<std::size_t>(lane);
}

constexpr int nibble_shift(int k) noexcept {
  return (k % 2) * 16 + (k % 8) / 2 * 4;
}

void store_scale(std::uint8_t* at, std::size_t index, float value, bool half,
                 std::uint16_t half_bits) noexcept {
  if (half) {
    std::memcpy(at + 2 * index, &half_bits, 2);
  } else {
    std::memcpy(at + 4 * index, &value, 4);
  }
}

float load_scale(const std::uint8_t* at, std::size_t index, bool half) noexcept {
  if (half) return float_from_half(read_u16(at + 2 * index));
  float value = 0;
  std::memcpy(&value, at + 4 * index, 4);
  return value;
}

void pack_float_row(const HostTensor& source, const std::uint8_t* row, int lane,
                    std::uint8_t* quants) noexcept {
  for (int k = 0; k < static_cast<int>(source.cols); ++k) {
    std::uint16_t bits = 0;
    switch (source.dtype) {
      case DType::f32:
        bits = bf16_from_float(std::bit_cast<float>(read_u32(row + std::size_t{4} * k)));
        break;
      case DType::f16:
        bits = bf16_from_float(float_from_half(read_u16(row + std::size_t{2} * k)));
        break;
      default:
        bits = read_u16(row + std::size_t{2} * k);
        break;
    }
    const std::size_t pair = static_cast<std::size_t>(k / 2) * panel_rows + lane;
    std::memcpy(quants + 4 * pair + 2 * (k % 2), &bits, sizeof bits);
  }
}

void pack_group(const QuantGroup& group, int lane, FormatShape shape,
                std::uint8_t* quants) noexcept {
  if (shape.bits == 8) {
    for (int k = 0; k < shape.group; ++k) {
      quants[k * panel_rows + lane] = static_cast<std::uint8_t>(group.quants[k]);
    }
    return;
  }
  for (int k = 0; k < k_group; k += 8) {
    std::uint32_t word = 0;
    for (int i = 0; i < 8; ++i) {
      word |= static_cast<std::uint32_t>(group.quants[k + i] + shape.zero) << nibble_shift(i);
    }
    std::memcpy(quants + 4 * nibble_word(k, lane), &word, sizeof word);
  }
}

}  // namespace

PackedWeight::PackedWeight(std::span<const HostTensor> stacked, InputPrecision inputs,
                           WorkerPool& pool)
    : inputs_(inputs) {
  assert(!stacked.empty());
  cols_ = static_cast<int>(stacked.front().cols);
  groups_ = (cols_ + k_group - 1) / k_group;
  std::size_t offset = 0;
  for (const HostTensor& source : stacked) {
    assert(source.cols == cols_ && source.rows > 0);
    assert(cols_ % info(source.dtype).block_elements == 0);
    Segment segment;
    segment.format = format_of(source.dtype);
    const FormatShape shape = shape_of(segment.format);
    segment.first_row = rows_;
    segment.rows = static_cast<int>(source.rows);
    segment.first_panel = panels_;
    segment.offset = offset;
    segment.quant_bytes = static_cast<std::size_t>(groups_) * k_group * panel_rows * shape.bits / 8;
    segment.scale_bytes = static_cast<std::size_t>(groups_) * (k_group / shape.group) * panel_rows
                          * shape.scale_bytes;
    segment.panel_bytes =
        round_up(segment.quant_bytes + segment.scale_bytes * (shape.has_min ? 2 : 1), 64);
    const int panels = (segment.rows + panel_rows - 1) / panel_rows;
    offset += static_cast<std::size_t>(panels) * segment.panel_bytes;
    rows_ += segment.rows;
    panels_ += panels;
    segments_.push_back(segment);
  }
  memory_ = AlignedMemory(offset);
  constexpr int panels_per_item = 8;
  pool.run((panels_ + panels_per_item - 1) / panels_per_item, [&](int item, int) {
    const int end = std::min(panels_, (item + 1) * panels_per_item);
    for (int panel = item * panels_per_item; panel < end; ++panel) {
      const Segment& segment = segment_of_panel(panel);
      pack_panel(stacked[static_cast<std::size_t>(&segment - segments_.data())], segment, panel);
    }
  });
}

const PackedWeight::Segment& PackedWeight::segment_of_panel(int panel) const noexcept {
  std::size_t i = segments_.size() - 1;
  while (segments_[i].first_panel > panel)
    --i;
  return segments_[i];
}

const PackedWeight::Segment& PackedWeight::segment_of_row(int row) const noexcept {
  std::size_t i = segments_.size() - 1;
  while (segments_[i].first_row > row)
    --i;
  return segments_[i];
}

Panel PackedWeight::panel(int index, int& first_row) const noexcept {
  const Segment& segment = segment_of_panel(index);
  const int local = index - segment.first_panel;
  first_row = segment.first_row + local * panel_rows;
  const auto* base = reinterpret_cast<const std::uint8_t*>(memory_.data()) + segment.offset
                     + static_cast<std::size_t>(local) * segment.panel_bytes;
  return {segment.format,
          std::min(panel_rows, segment.rows - local * panel_rows),
          groups_,
          base,
          base + segment.quant_bytes,
          base + segment.quant_bytes + segment.scale_bytes};
}

void PackedWeight::pack_panel(const HostTensor& source, const Segment& segment, int panel) {
  const int local = panel - segment.first_panel;
  auto* quants = reinterpret_cast<std::uint8_t*>(memory_.data()) + segment.offset
                 + static_cast<std::size_t>(local) * segment.panel_bytes;
  std::uint8_t* scales = quants + segment.quant_bytes;
  std::uint8_t* mins = scales + segment.scale_bytes;
  const FormatShape shape = shape_of(segment.format);
  const bool half = shape.scale_bytes == 2;
  const int lanes = std::min(panel_rows, segment.rows - local * panel_rows);
  // Padding must be finite: its products are added before the result is dropped.
  if (lanes < panel_rows || cols_ % k_group != 0) std::memset(quants, 0, segment.panel_bytes);
  const std::size_t group_bytes =
      static_cast<std::size_t>(shape.group) * panel_rows * shape.bits / 8;
  for (int lane = 0; lane < lanes; ++lane) {
    const auto* row = static_cast<const std::uint8_t*>(source.data)
                      + static_cast<std::size_t>(local * panel_rows + lane)
                            * row_bytes(source.dtype, source.cols);
    if (is_float(source.dtype)) {
      pack_float_row(source, row, lane, quants);
      continue;
    }
    const DTypeInfo& type = info(source.dtype);
    const int groups_per_block = type.block_elements / shape.group;
    for (int group = 0; group < cols_ / shape.group; ++group) {
      const std::uint8_t* block =
          row + static_cast<std::size_t>(group / groups_per_block) * type.block_bytes;
      const QuantGroup values = decode_group(source.dtype, block, group % groups_per_block);
      pack_group(values, lane, shape, quants + static_cast<std::size_t>(group) * group_bytes);
      const std::size_t index = static_cast<std::size_t>(group) * panel_rows + lane;
      store_scale(scales, index, values.scale, half, half ? read_u16(block) : 0);
      if (shape.has_min) store_scale(mins, index, values.min, half, half ? read_u16(block + 2) : 0);
    }
  }
}

void PackedWeight::read_row(int row, float* out) const noexcept {
  const Segment& segment = segment_of_row(row);
  const int local = row - segment.first_row;
  const int lane = local % panel_rows;
  const auto* quants = reinterpret_cast<const std::uint8_t*>(memory_.data()) + segment.offset
                       + static_cast<std::size_t>(local / panel_rows) * segment.panel_bytes;
  if (segment.format == PanelFormat::bf16) {
    for (int k = 0; k < cols_; ++k) {
      const std::size_t pair = static_cast<std::size_t>(k / 2) * panel_rows + lane;
      out[k] = float_from_bf16(read_u16(quants + 4 * pair + 2 * (k % 2)));
    }
    return;
  }
  const std::uint8_t* scales = quants + segment.quant_bytes;
  const std::uint8_t* mins = scales + segment.scale_bytes;
  const FormatShape shape = shape_of(segment.format);
  const bool half = shape.scale_bytes == 2;
  const std::size_t group_bytes =
      static_cast<std::size_t>(shape.group) * panel_rows * shape.bits / 8;
  for (int group = 0; group < cols_ / shape.group; ++group) {
    const std::uint8_t* at = quants + static_cast<std::size_t>(group) * group_bytes;
    const std::size_t index = static_cast<std::size_t>(group) * panel_rows + lane;
    const float scale = load_scale(scales, index, half);
    const float min = shape.has_min ? load_scale(mins, index, half) : 0;
    for (int k = 0; k < shape.group; ++k) {
      const int quant =
          shape.bits == 8
              ? static_cast<std::int8_t>(at[k * panel_rows + lane])
              : static_cast<int>((read_u32(at + 4 * nibble_word(k, lane)) >> nibble_shift(k)) & 15U)
                    - shape.zero;
      const float product = scale * static_cast<float>(quant);
      out[group * shape.group + k] = shape.has_min ? product + min : product;
    }
  }
}

}  // namespace incipit::kernels
