// The products of attention on lanes.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes.h"

namespace incipit::kernels::INCIPIT_LEVEL {

// The vector form of the two products. Operands are floats that hold bf16 values.
struct VectorProducts {
  static constexpr int rows_at_once = max_token_tile >= 8 ? 8 : 4;

  static std::size_t operand_bytes(int head_dim) {
    return static_cast<std::size_t>(head_dim) * attention_tile * sizeof(float);
  }

  static std::size_t query_bytes(int head_dim) {
    return static_cast<std::size_t>(head_dim) * panel_rows * sizeof(float);
  }

  static void begin() {}

  static void end() {}

  // Lane `lane` of dimension `d` of the queries of 16 columns.
  static void put_query(void* queries, int, int d, int lane, float rounded) {
    static_cast<float*>(queries)[d * panel_rows + lane] = rounded;
  }

  // `rows`: where the 64 rows of the tile are. Returns what `scores` wants: the rows as floats.
  static const void* stage_keys(const std::uint16_t* const* rows, bool, int head_dim,
                                void* operand) {
    for (int position = 0; position < attention_tile; ++position) {
      const std::uint16_t* row = rows[position];
      float* out = static_cast<float*>(operand) + static_cast<std::size_t>(position) * head_dim;
      int d = 0;
      for (; d + lane_count <= head_dim; d += lane_count)
        store(out + d, load_bf16(row + d));
      for (; d < head_dim; ++d) {
        out[d] = __builtin_bit_cast(float, static_cast<std::uint32_t>(row[d]) << 16);
      }
    }
    return operand;
  }

  static void stage_values(const std::uint16_t* const* rows, int head_dim, void* operand) {
    stage_keys(rows, false, head_dim, operand);
  }

  // c[m] += Σ_k a[m * row_stride + k * k_stride] · b[k][16]
  template <int rows>
  static INCIPIT_INLINE void product(const float* a, std::size_t row_stride, std::size_t k_stride,
                                     int count, const float* b, Lanes* c) {
    for (int begin = 0; begin < count; begin += k_group) {
      Lanes even[rows];
      Lanes odd[rows];
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m)
        even[m] = odd[m] = zero();
      const int end = begin + k_group < count ? begin + k_group : count;
      for (int k = begin; k < end; k += 2) {
        const float* at = a + static_cast<std::size_t>(k) * k_stride;
        const Lanes b_even = load(b + k * panel_rows);
        const Lanes b_odd = load(b + (k + 1) * panel_rows);
#pragma GCC unroll 8
        for (int m = 0; m < rows; ++m) {
          even[m] = fma_bf16(broadcast(at[m * row_stride]), b_even, even[m]);
          odd[m] = fma_bf16(broadcast(at[m * row_stride + k_stride]), b_odd, odd[m]);
        }
      }
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m)
        c[m] = c[m] + (even[m] + odd[m]);
    }
  }

  // scores[64][16] = keys · queries
  static void scores(const void* keys, const void* queries, int head_dim, float* out) {
    const auto dim = static_cast<std::size_t>(head_dim);
    for (int m = 0; m < attention_tile; m += rows_at_once) {
      Lanes c[rows_at_once];
      for (Lanes& lanes : c)
        lanes = zero();
      product<rows_at_once>(static_cast<const float*>(keys) + m * dim, dim, 1, head_dim,
                            static_cast<const float*>(queries), c);
      for (int i = 0; i < rows_at_once; ++i)
        store(out + (m + i) * panel_rows, c[i]);
    }
  }

  // out[head_dim][16] += valuesᵀ · probabilities[64][16] (rounded)
  static void accumulate(const void* values, const float* probabilities, int head_dim, float* out,
                         void*) {
    const auto dim = static_cast<std::size_t>(head_dim);
    int d = 0;
    for (; d + rows_at_once <= head_dim; d += rows_at_once) {
      accumulate_rows<rows_at_once>(static_cast<const float*>(values) + d, dim, probabilities,
                                    out + d * panel_rows);
    }
    for (; d < head_dim; ++d) {
      accumulate_rows<1>(static_cast<const float*>(values) + d, dim, probabilities,
                         out + d * panel_rows);
    }
  }

  template <int rows>
  static INCIPIT_INLINE void accumulate_rows(const float* values, std::size_t dim,
                                             const float* probabilities, float* out) {
    Lanes c[rows];
    for (int i = 0; i < rows; ++i)
      c[i] = load(out + i * panel_rows);
    product<rows>(values, 1, dim, attention_tile, probabilities, c);
    for (int i = 0; i < rows; ++i)
      store(out + i * panel_rows, c[i]);
  }
};

}  // namespace incipit::kernels::INCIPIT_LEVEL
