#include "kernels/cpu/linear_plan.h"

#include "kernels/number.h"

#include <algorithm>
#include <cassert>

namespace incipit::kernels {
namespace {

constexpr int wide_tile = 16;
// Multiplications that make an item: some ten microseconds of work.
constexpr std::int64_t item_products = 400'000;

constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// The smallest tile a kernel exists for that holds `rows`.
int tile_for(int rows) {
  int tile = 1;
  while (tile < rows)
    tile *= 2;
  return tile;
}

}  // namespace

void LinearPlan::run(Rows x, const PackedWeight& weight, const float* bias, bool accumulate,
                     Rows y) {
  assert(x.cols == weight.cols() && y.cols == weight.rows() && x.rows == y.rows);
  if (x.rows == 0) return;
  run_once(x, weight, bias, accumulate, y);
  if (weight.inputs() == InputPrecision::two_bf16) {
    run_once(remainder(x), weight, nullptr, true, y);
  }
}

void LinearPlan::run_once(Rows x, const PackedWeight& weight, const float* bias, bool accumulate,
                          Rows y) {
  const bool wide = kernels_.wide_from > 0 && x.rows >= kernels_.wide_from;
  make_tiles(x, wide ? std::min(wide_tile, tile_for(x.rows)) : kernels_.narrow_tile, wide);
  multiply(weight, bias, accumulate, y, wide);
}

Rows LinearPlan::remainder(Rows x) {
  const auto cols = static_cast<std::size_t>(x.cols);
  remainder_.require(cols * static_cast<std::size_t>(x.rows) * sizeof(float));
  auto* low = reinterpret_cast<float*>(remainder_.data());
  pool_.run(x.rows, [&](int row, int) {
    const std::size_t begin = static_cast<std::size_t>(row) * cols;
    for (std::size_t i = begin; i < begin + cols; ++i) {
      low[i] = x.data[i] - float_from_bf16(bf16_from_float(x.data[i]));
    }
  });
  return {low, x.rows, x.cols};
}

void LinearPlan::make_tiles(Rows x, int tile_rows, bool wide) {
  const std::size_t groups = (static_cast<std::size_t>(x.cols) + k_group - 1) / k_group;
  const std::size_t value_bytes =
      round_up(groups * k_group * tile_rows * (wide ? sizeof(std::uint16_t) : sizeof(float)), 64);
  const std::size_t tile_bytes = value_bytes + round_up(groups * tile_rows * sizeof(float), 64);
  const int count = (x.rows + tile_rows - 1) / tile_rows;
  inputs_.require(tile_bytes * count);
  tiles_.resize(static_cast<std::size_t>(count));
  const auto make = [&](int index, int) {
    InputTile& tile = tiles_[static_cast<std::size_t>(index)];
    const int begin = index * tile_rows;
    std::byte* memory = inputs_.data() + tile_bytes * index;
    auto* sums = reinterpret_cast<float*>(memory + value_bytes);
    tile.rows = std::min(tile_rows, x.rows - begin);
    tile.tile = wide ? tile_rows : tile_for(tile.rows);
    tile.values = memory;
    tile.sums = sums;
    const float* from = x.data + static_cast<std::size_t>(begin) * x.cols;
    if (wide) {
      kernels_.make_wide_tile(from, x.cols, tile.rows, tile.tile,
                              reinterpret_cast<std::uint16_t*>(memory), sums);
    } else {
      kernels_.make_narrow_tile(from, x.cols, tile.rows, tile.tile,
                                reinterpret_cast<float*>(memory), sums);
    }
  };
  pool_.run(count, make);
}

void LinearPlan::multiply(const PackedWeight& weight, const float* bias, bool accumulate, Rows y,
                          bool wide) {
  const int panels = weight.panels();
  const auto tiles = static_cast<int>(tiles_.size());
  const std::int64_t panel_products =
      static_cast<std::int64_t>(weight.cols()) * panel_rows * y.rows;
  // Few large items when there is much to do, but enough of them to share evenly.
  const auto by_size =
      static_cast<int>(std::max<std::int64_t>(1, item_products / (panel_products + 1)));
  const int by_sharing = std::max(1, panels / (pool_.threads() * 4));
  const int panels_per_item = std::min(std::max(by_size, 1), std::max(by_sharing, 1));
  const std::size_t scratch_bytes =
      wide ? round_up(static_cast<std::size_t>(weight.cols()) + k_group, k_group) * 64 : 0;
  scratch_.require(scratch_bytes * pool_.threads());
  pool_.run((panels + panels_per_item - 1) / panels_per_item, [&](int item, int thread) {
    if (wide) kernels_.begin_wide(tiles_.front().tile);
    const int end = std::min(panels, (item + 1) * panels_per_item);
    for (int index = item * panels_per_item; index < end; ++index) {
      int first_row = 0;
      const Panel panel = weight.panel(index, first_row);
      OutputTile out;
      out.stride = static_cast<std::size_t>(y.cols);
      out.bias = bias != nullptr ? bias + first_row : nullptr;
      out.accumulate = accumulate;
      out.y = y.data + first_row;
      if (wide) {
        kernels_.multiply_wide(panel, tiles_.data(), tiles, out,
                               scratch_.data() + scratch_bytes * thread);
        continue;
      }
      for (int tile = 0; tile < tiles; ++tile) {
        kernels_.multiply_narrow(panel, tiles_[static_cast<std::size_t>(tile)], out);
        out.y += static_cast<std::size_t>(kernels_.narrow_tile) * out.stride;
      }
    }
    if (wide) kernels_.end_wide();
  });
}

}  // namespace incipit::kernels
