// y = x · Wᵀ on packed panels.
//
// The order of every sum, whatever the number of rows: within a group of 32 columns (16 for Q6_K)
// a chain of fused multiply-adds over the even columns and one over the odd ones, then their sum;
// groups are added in ascending order, times their scale, each followed by min times the sum of
// its inputs. It is the order in which a matrix unit adds, so a level that has one gives the same
// bits.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/row_kernels.h"

namespace incipit::kernels::INCIPIT_LEVEL {

template <bool half>
INCIPIT_INLINE Lanes load_scale(const void* scales, int index) {
  if constexpr (half) {
    return load_half(static_cast<const std::uint16_t*>(scales) + index * panel_rows);
  } else {
    return load(static_cast<const float*>(scales) + index * panel_rows);
  }
}

// How to read one group of each format: calls body(pair, even column, odd column).
struct Bf16Quants {
  static constexpr int columns = 32;
  static constexpr int bytes = 1024;

  template <class Body>
  static INCIPIT_INLINE void each_pair(const std::uint8_t* group, Body&& body) {
#pragma GCC unroll 4
    for (int pair = 0; pair < 16; ++pair) {
      const Words words = load_words(group + 64 * pair);
      body(pair, low_bf16(words), high_bf16(words));
    }
  }
};

template <int zero_point>
struct NibbleQuants {
  static constexpr int columns = 32;
  static constexpr int bytes = 256;

  template <class Body>
  static INCIPIT_INLINE void each_pair(const std::uint8_t* group, Body&& body) {
    for (int i = 0; i < 4; ++i) {
      const Words words = load_words(group + 64 * i);
      body(4 * i, nibble<0, zero_point>(words), nibble<16, zero_point>(words));
      body(4 * i + 1, nibble<4, zero_point>(words), nibble<20, zero_point>(words));
      body(4 * i + 2, nibble<8, zero_point>(words), nibble<24, zero_point>(words));
      body(4 * i + 3, nibble<12, zero_point>(words), nibble<28, zero_point>(words));
    }
  }
};

template <int group_columns>
struct ByteQuants {
  static constexpr int columns = group_columns;
  static constexpr int bytes = group_columns * panel_rows;

  template <class Body>
  static INCIPIT_INLINE void each_pair(const std::uint8_t* group, Body&& body) {
    const auto* quants = reinterpret_cast<const std::int8_t*>(group);
#pragma GCC unroll 4
    for (int pair = 0; pair < columns / 2; ++pair) {
      body(pair, load_i8(quants + 32 * pair), load_i8(quants + 32 * pair + 16));
    }
  }
};

template <class QuantsType, bool scaled, bool half, bool with_min>
struct Format {
  using Quants = QuantsType;
  static constexpr bool has_scale = scaled;
  static constexpr bool has_half_scale = half;
  static constexpr bool has_min = with_min;
  // Of a panel, quants and scales together.
  static constexpr int bytes_per_group =
      Quants::bytes + (scaled ? (half ? 2 : 4) * panel_rows * (with_min ? 2 : 1) : 0);
};

// Weights are read once, in order, panel after panel; the hardware's own prefetch stops at every
// page. A distance of 4 KiB covers the latency of memory.
template <class F>
INCIPIT_INLINE void prefetch_group(const Panel& panel, int group) {
  const auto* at = reinterpret_cast<const char*>(panel.quants) + 4096
                   + static_cast<std::ptrdiff_t>(group) * F::bytes_per_group;
#pragma GCC unroll 16
  for (int i = 0; i < F::bytes_per_group; i += 64)
    __builtin_prefetch(at + i);
}

// Calls body.operator()<Format>() for the panel's format.
template <class Body>
INCIPIT_INLINE void with_format(PanelFormat format, Body&& body) {
  switch (format) {
    case PanelFormat::bf16:
      return body.template operator()<Format<Bf16Quants, false, false, false>>();
    case PanelFormat::q4_half:
      return body.template operator()<Format<NibbleQuants<8>, true, true, false>>();
    case PanelFormat::q4_half_min:
      return body.template operator()<Format<NibbleQuants<0>, true, true, true>>();
    case PanelFormat::q4_float_min:
      return body.template operator()<Format<NibbleQuants<0>, true, false, true>>();
    case PanelFormat::q8_half:
      return body.template operator()<Format<ByteQuants<32>, true, true, false>>();
    case PanelFormat::q8_half_min:
      return body.template operator()<Format<ByteQuants<32>, true, true, true>>();
    case PanelFormat::q8_float_min:
      return body.template operator()<Format<ByteQuants<32>, true, false, true>>();
    case PanelFormat::q8_float_16:
      return body.template operator()<Format<ByteQuants<16>, true, false, false>>();
  }
}

INCIPIT_INLINE void write_output(const OutputTile& out, int row, int lanes, Lanes total) {
  float* y = out.y + static_cast<std::size_t>(row) * out.stride;
  if (out.bias != nullptr) total = total + load_first(out.bias, lanes);
  if (out.accumulate) total = load_first(y, lanes) + total;
  store_first(y, lanes, total);
}

template <class F, int tile>
void multiply_tile(const Panel& panel, const InputTile& in, const OutputTile& out) {
  using Quants = typename F::Quants;
  constexpr int parts = k_group / Quants::columns;
  const auto* x = static_cast<const float*>(in.values);
  const std::uint8_t* quants = panel.quants;
  Lanes total[tile];
#pragma GCC unroll 8
  for (int t = 0; t < tile; ++t)
    total[t] = zero();
  for (int group = 0; group < panel.groups * parts; ++group) {
    Lanes even[tile];
    Lanes odd[tile];
#pragma GCC unroll 8
    for (int t = 0; t < tile; ++t)
      even[t] = odd[t] = zero();
    if constexpr (tile <= 2) prefetch_group<F>(panel, group);
    Quants::each_pair(quants, [&](int pair, Lanes w_even, Lanes w_odd) {
      const float* at = x + 2 * pair * tile;
#pragma GCC unroll 8
      for (int t = 0; t < tile; ++t) {
        even[t] = fma_bf16(broadcast(at[t]), w_even, even[t]);
        odd[t] = fma_bf16(broadcast(at[tile + t]), w_odd, odd[t]);
      }
    });
    quants += Quants::bytes;
    x += Quants::columns * tile;
    if constexpr (F::has_scale) {
      const Lanes scale = load_scale<F::has_half_scale>(panel.scales, group);
#pragma GCC unroll 8
      for (int t = 0; t < tile; ++t)
        total[t] = fma(scale, even[t] + odd[t], total[t]);
    } else {
#pragma GCC unroll 8
      for (int t = 0; t < tile; ++t)
        total[t] = total[t] + (even[t] + odd[t]);
    }
    if constexpr (F::has_min) {
      const Lanes min = load_scale<F::has_half_scale>(panel.mins, group);
#pragma GCC unroll 8
      for (int t = 0; t < tile; ++t) {
        total[t] = fma(min, broadcast(in.sums[group * tile + t]), total[t]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < tile; ++t) {
    if (t < in.rows) write_output(out, t, panel.rows, total[t]);
  }
}

inline void multiply_narrow(const Panel& panel, const InputTile& in, const OutputTile& out) {
  with_format(panel.format, [&]<class F>() {
    switch (in.tile) {
      case 1:
        return multiply_tile<F, 1>(panel, in, out);
      case 2:
        return multiply_tile<F, 2>(panel, in, out);
      case 4:
        if constexpr (max_token_tile >= 4) multiply_tile<F, 4>(panel, in, out);
        return;
      default:
        if constexpr (max_token_tile >= 8) multiply_tile<F, 8>(panel, in, out);
    }
  });
}

// Rounds 32 inputs (zeros past `count`) and returns their sum.
INCIPIT_INLINE float round_group(const float* x, int count, Lanes& first, Lanes& second) {
  first = round_to_bf16(load_first(x, count));
  second =
      count > lane_count ? round_to_bf16(load_first(x + lane_count, count - lane_count)) : zero();
  return sum(first + second);
}

inline void make_narrow_tile(const float* x, int cols, int rows, int tile, float* values,
                             float* sums) {
  for (int t = 0; t < tile; ++t) {
    for (int group = 0; group * k_group < cols; ++group) {
      float rounded[k_group] = {};
      float group_sum = 0;
      if (t < rows) {
        Lanes first;
        Lanes second;
        group_sum = round_group(x + static_cast<std::size_t>(t) * cols + group * k_group,
                                cols - group * k_group, first, second);
        store(rounded, first);
        store(rounded + lane_count, second);
      }
      float* at = values + static_cast<std::size_t>(group) * k_group * tile + t;
      for (int k = 0; k < k_group; ++k)
        at[k * tile] = rounded[k];
      sums[group * tile + t] = group_sum;
    }
  }
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
