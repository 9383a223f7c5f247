// Matrix products on AMX tiles. TDPBF16PS adds, for each element, the chain of its even products
// and that of its odd ones to the sum so far: exactly the order of linear_kernels.h.
#pragma once

#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/linear_kernels.h"

namespace incipit::kernels::INCIPIT_LEVEL {

// Tiles 0-3: sums, up to 16 x 16. 4 and 6: left operands of 32 and 16 columns, as many rows. 5 and
// 7: right operands. Fewer rows make faster products.
inline void begin_tiles(int rows) {
  struct alignas(64) Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 32, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 8};
  };

  static_assert(sizeof(Configuration) == 64);
  Configuration configuration;
  for (const int tile : {0, 1, 2, 3, 4, 6}) {
    configuration.rows[tile] = static_cast<std::uint8_t>(rows);
  }
  asm volatile("ldtilecfg %0" : : "m"(configuration));
}

inline void end_tiles() {
  _tile_release();
}

// The compiler's own forms of these do not say that they read memory, so it may drop or move the
// stores before them.
template <int tile>
INCIPIT_INLINE void tile_load(const void* from, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}

template <int tile>
INCIPIT_INLINE void tile_store(void* to, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
}

INCIPIT_INLINE __m512i pair_words(Lanes even, Lanes odd) {
  const __m512i high =
      _mm512_and_si512(_mm512_castps_si512(odd.v), _mm512_set1_epi32(static_cast<int>(0xffff0000)));
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even.v), 16), high);
}

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

INCIPIT_INLINE void transpose_16x16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Keys: bf16 [64][D']. Values: transposed, bf16 [D'][64]. Queries: words [D'/2][16] of dimension
// pairs. D' is the head size, rounded up to 32 and padded with zeros.
struct MatrixProducts {
  static constexpr int padded(int head_dim) { return (head_dim + 31) / 32 * 32; }

  static std::size_t operand_bytes(int head_dim) {
    return static_cast<std::size_t>(padded(head_dim)) * attention_tile * 2;
  }

  static std::size_t query_bytes(int head_dim) {
    return static_cast<std::size_t>(padded(head_dim)) * panel_rows * 2;
  }

  static void begin() { begin_tiles(panel_rows); }

  static void end() { end_tiles(); }

  static void put_query(void* queries, int, int d, int lane, float rounded) {
    const auto bits = static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, rounded) >> 16);
    static_cast<std::uint16_t*>(queries)[(d / 2 * panel_rows + lane) * 2 + d % 2] = bits;
  }

  // Full tiles are multiplied where they lie.
  static const void* stage_keys(const std::uint16_t* const* rows, bool contiguous, int head_dim,
                                void* operand) {
    const int dim = padded(head_dim);
    if (contiguous && dim == head_dim) return rows[0];
    auto* out = static_cast<std::uint16_t*>(operand);
    for (int position = 0; position < attention_tile; ++position, out += dim) {
      copy_row(rows[position], head_dim, out);
    }
    return operand;
  }

  static void copy_row(const std::uint16_t* row, int head_dim, std::uint16_t* out) {
    int d = 0;
    for (; d + 32 <= head_dim; d += 32)
      _mm512_storeu_si512(out + d, _mm512_loadu_si512(row + d));
    if (d == head_dim) return;
    const __mmask32 rest = (1U << (head_dim - d)) - 1U;
    _mm512_storeu_si512(out + d, _mm512_maskz_loadu_epi16(rest, row + d));
  }

  // Position pairs become words, then 16 pairs x 16 dimensions are transposed.
  static void stage_values(const std::uint16_t* const* rows, int head_dim, void* operand) {
    auto* out = static_cast<std::uint16_t*>(operand);
    for (int d = 0; d < head_dim; d += 16) {
      const __mmask16 used = head_dim - d >= 16 ? 0xffff : (1U << (head_dim - d)) - 1U;
      for (int half = 0; half < 2; ++half) {
        __m512i words[16];
#pragma GCC unroll 16
        for (int pair = 0; pair < 16; ++pair) {
          const std::uint16_t* const* at = rows + half * 32 + 2 * pair;
          const __m256i even = _mm256_maskz_loadu_epi16(used, at[0] + d);
          const __m256i odd = _mm256_maskz_loadu_epi16(used, at[1] + d);
          words[pair] = _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                                        _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
        }
        transpose_16x16(words);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          _mm512_storeu_si512(out + (d + i) * attention_tile + half * 32, words[i]);
        }
      }
    }
  }

  static void scores(const void* keys, const void* queries, int head_dim, float* out) {
    const int dim = padded(head_dim);
    const auto* k = static_cast<const std::uint16_t*>(keys);
    const auto* q = static_cast<const std::uint16_t*>(queries);
    const auto stride = static_cast<std::size_t>(dim) * 2;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int d = 0; d < dim; d += 32) {
      tile_load<5>(q + d * panel_rows, 64);
      tile_load<4>(k + d, stride);
      _tile_dpbf16ps(0, 4, 5);
      tile_load<4>(k + 16 * dim + d, stride);
      _tile_dpbf16ps(1, 4, 5);
      tile_load<4>(k + 32 * dim + d, stride);
      _tile_dpbf16ps(2, 4, 5);
      tile_load<4>(k + 48 * dim + d, stride);
      _tile_dpbf16ps(3, 4, 5);
    }
    tile_store<0>(out, 64);
    tile_store<1>(out + 256, 64);
    tile_store<2>(out + 512, 64);
    tile_store<3>(out + 768, 64);
  }

  static void accumulate(const void* values, const float* probabilities, int head_dim, float* out,
                         void* spare) {
    auto* pairs = static_cast<std::uint8_t*>(spare);
    for (int pair = 0; pair < attention_tile / 2; ++pair) {
      const float* at = probabilities + 2 * pair * panel_rows;
      _mm512_storeu_si512(pairs + 64 * pair, pair_words(load(at), load(at + panel_rows)));
    }
    const auto* v = static_cast<const std::uint16_t*>(values);
    int d = 0;
    for (; d + 16 <= head_dim; d += 16) {
      accumulate_rows(v + d * attention_tile, pairs, out + d * panel_rows);
    }
    if (d == head_dim) return;
    alignas(64) float last[16 * panel_rows] = {};
    const auto bytes = static_cast<std::size_t>(head_dim - d) * panel_rows * sizeof(float);
    std::memcpy(last, out + d * panel_rows, bytes);
    accumulate_rows(v + d * attention_tile, pairs, last);
    std::memcpy(out + d * panel_rows, last, bytes);
  }

  static INCIPIT_INLINE void accumulate_rows(const std::uint16_t* values, const std::uint8_t* pairs,
                                             float* out) {
    tile_load<0>(out, 64);
    tile_load<4>(values, attention_tile * 2);
    tile_load<5>(pairs, 64);
    _tile_dpbf16ps(0, 4, 5);
    tile_load<4>(values + 32, attention_tile * 2);
    tile_load<5>(pairs + 1024, 64);
    _tile_dpbf16ps(0, 4, 5);
    tile_store<0>(out, 64);
  }
};

}  // namespace incipit::kernels::INCIPIT_LEVEL
