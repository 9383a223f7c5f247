// y = x · Wᵀ on AMX tiles, in the order of linear_kernels.h.
#pragma once

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/linear_kernels.h"

namespace incipit::kernels::INCIPIT_LEVEL {

inline void make_wide_tile(const float* x, int cols, int rows, int tile, std::uint16_t* values,
                           float* sums) {
  const int groups = (cols + k_group - 1) / k_group;
  std::memset(values, 0, static_cast<std::size_t>(groups) * k_group * tile * 2);
  std::memset(sums, 0, static_cast<std::size_t>(groups) * tile * sizeof(float));
  for (int t = 0; t < rows; ++t) {
    std::uint16_t* out = values + static_cast<std::size_t>(t) * groups * k_group;
    for (int group = 0; group < groups; ++group) {
      Lanes first;
      Lanes second;
      sums[group * tile + t] = round_group(x + static_cast<std::size_t>(t) * cols + group * k_group,
                                           cols - group * k_group, first, second);
      store_bf16(out + group * k_group, first);
      store_bf16(out + group * k_group + lane_count, second);
    }
  }
}

// Quants as bf16 pairs, the second operand of a tile product. Small integers are exact.
template <class Quants>
INCIPIT_INLINE void expand_group(const std::uint8_t* quants, std::uint8_t* out) {
  Quants::each_pair(quants, [&](int pair, Lanes even, Lanes odd) {
    _mm512_store_si512(out + 64 * pair, pair_words(even, odd));
  });
}

// bf16 of n - zero_point. The lookup takes five bits of an index, and the fifth does not matter.
template <int zero_point>
struct NibbleTable {
  alignas(64) std::uint16_t entries[32];

  constexpr NibbleTable() : entries{} {
    for (int n = 0; n < 32; ++n) {
      const auto value = static_cast<float>((n & 15) - zero_point);
      entries[n] = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, value) >> 16);
    }
  }
};

// Both halves of a word are looked up at once.
template <int zero_point>
INCIPIT_INLINE void expand_nibbles(const std::uint8_t* quants, std::uint8_t* out) {
  static constexpr NibbleTable<zero_point> nibble_table;
  const __m512i table = _mm512_load_si512(nibble_table.entries);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i words = _mm512_loadu_si512(quants + 64 * i);
    std::uint8_t* at = out + 256 * i;
    _mm512_store_si512(at, _mm512_permutexvar_epi16(words, table));
    _mm512_store_si512(at + 64, _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4), table));
    _mm512_store_si512(at + 128, _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 8), table));
    _mm512_store_si512(at + 192, _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 12), table));
  }
}

template <class Quants>
struct Expander {
  static INCIPIT_INLINE void expand(const std::uint8_t* quants, std::uint8_t* out) {
    expand_group<Quants>(quants, out);
  }
};

template <int zero_point>
struct Expander<NibbleQuants<zero_point>> {
  static INCIPIT_INLINE void expand(const std::uint8_t* quants, std::uint8_t* out) {
    expand_nibbles<zero_point>(quants, out);
  }
};

// Products of one group: sums[tile][16].
template <int columns>
INCIPIT_INLINE void tile_product(const std::uint16_t* x, std::size_t x_stride,
                                 const std::uint8_t* weights, float* sums) {
  _tile_zero(0);
  if constexpr (columns == 32) {
    tile_load<4>(x, x_stride);
    tile_load<5>(weights, 64);
    _tile_dpbf16ps(0, 4, 5);
  } else {
    tile_load<6>(x, x_stride);
    tile_load<7>(weights, 64);
    _tile_dpbf16ps(0, 6, 7);
  }
  tile_store<0>(sums, 64);
}

// Quants are expanded this many groups ahead of the products when only one tile needs them, so
// that they stay in the first-level cache.
constexpr int groups_ahead = 8;

template <class F, int tile, bool expand>
void multiply_scaled_tile(const Panel& panel, const InputTile& in, const OutputTile& out,
                          std::uint8_t* weights) {
  using Quants = typename F::Quants;
  constexpr int columns = Quants::columns;
  const int groups = panel.groups * (k_group / columns);
  const auto* x = static_cast<const std::uint16_t*>(in.values);
  const std::size_t x_stride = static_cast<std::size_t>(panel.groups) * k_group * 2;
  alignas(64) float sums[4][tile][panel_rows];
  Lanes total[tile];
#pragma GCC unroll 16
  for (int t = 0; t < tile; ++t)
    total[t] = zero();
  for (int begin = 0; begin < groups; begin += groups_ahead) {
    const int end = begin + groups_ahead < groups ? begin + groups_ahead : groups;
    std::uint8_t* expanded = expand ? weights : weights + begin * columns * 32;
    if constexpr (expand) {
      for (int group = begin; group < end; ++group) {
        prefetch_group<F>(panel, group);
        Expander<Quants>::expand(panel.quants + group * Quants::bytes,
                                 weights + (group - begin) * columns * 32);
      }
    }
    for (int group = begin; group < end; ++group, expanded += columns * 32) {
      auto& product = sums[group % 4];
      tile_product<columns>(x + group * columns, x_stride, expanded, &product[0][0]);
      const Lanes scale = load_scale<F::has_half_scale>(panel.scales, group);
#pragma GCC unroll 16
      for (int t = 0; t < tile; ++t)
        total[t] = fma(scale, load(product[t]), total[t]);
      if constexpr (F::has_min) {
        const Lanes min = load_scale<F::has_half_scale>(panel.mins, group);
#pragma GCC unroll 16
        for (int t = 0; t < tile; ++t) {
          total[t] = fma(min, broadcast(in.sums[group * tile + t]), total[t]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < tile; ++t) {
    if (t < in.rows) write_output(out, t, panel.rows, total[t]);
  }
}

// Without scales the running sums stay in the tile.
inline void multiply_bf16_tile(const Panel& panel, const InputTile& in, const OutputTile& out) {
  const auto* x = static_cast<const std::uint16_t*>(in.values);
  const std::size_t x_stride = static_cast<std::size_t>(panel.groups) * k_group * 2;
  alignas(64) float sums[panel_rows][panel_rows];
  _tile_zero(0);
  for (int group = 0; group < panel.groups; ++group) {
    prefetch_group<Format<Bf16Quants, false, false, false>>(panel, group);
    tile_load<4>(x + group * k_group, x_stride);
    tile_load<5>(panel.quants + group * 1024, 64);
    _tile_dpbf16ps(0, 4, 5);
  }
  tile_store<0>(sums, 64);
  for (int t = 0; t < in.rows; ++t)
    write_output(out, t, panel.rows, load(sums[t]));
}

template <class F>
void multiply_one_tile(const Panel& panel, const InputTile& in, const OutputTile& out,
                       std::uint8_t* weights) {
  switch (in.tile) {
    case 1:
      return multiply_scaled_tile<F, 1, true>(panel, in, out, weights);
    case 2:
      return multiply_scaled_tile<F, 2, true>(panel, in, out, weights);
    case 4:
      return multiply_scaled_tile<F, 4, true>(panel, in, out, weights);
    case 8:
      return multiply_scaled_tile<F, 8, true>(panel, in, out, weights);
    default:
      return multiply_scaled_tile<F, 16, true>(panel, in, out, weights);
  }
}

inline void multiply_wide(const Panel& panel, const InputTile* in, int tiles,
                          const OutputTile& first, void* scratch) {
  auto* weights = static_cast<std::uint8_t*>(scratch);
  with_format(panel.format, [&]<class F>() {
    using Quants = typename F::Quants;
    OutputTile out = first;
    if constexpr (!F::has_scale) {
      for (int i = 0; i < tiles; ++i) {
        multiply_bf16_tile(panel, in[i], out);
        out.y += panel_rows * out.stride;
      }
    } else if (tiles == 1) {
      multiply_one_tile<F>(panel, in[0], out, weights);
    } else {
      const int groups = panel.groups * (k_group / Quants::columns);
      for (int group = 0; group < groups; ++group) {
        prefetch_group<F>(panel, group);
        Expander<Quants>::expand(panel.quants + group * Quants::bytes,
                                 weights + group * Quants::columns * 32);
      }
      for (int i = 0; i < tiles; ++i) {
        multiply_scaled_tile<F, panel_rows, false>(panel, in[i], out, weights);
        out.y += panel_rows * out.stride;
      }
    }
  });
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
