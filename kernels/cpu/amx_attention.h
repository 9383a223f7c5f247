// The products of attention on AMX tiles, in the order of attention_vector.h.
#pragma once

#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/kernel_table.h"

namespace incipit::kernels::INCIPIT_LEVEL {

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
