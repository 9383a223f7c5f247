// Causal attention with an online softmax over 64-position tiles.
//
// Sixteen query columns - pairs of row and query head that share a kv head - take the lanes, so
// maxima, exponentials and sums need no step across lanes, and no column sees another. Queries and
// probabilities are rounded to bf16, sums are float32. Products add in the order of
// linear_kernels.h, in groups of 32 dimensions for the scores and 32 positions for the output.
// Tiles lie at multiples of 64 positions; every 1024 positions the running state is closed and
// merged into the total, in ascending order, so that splits may be computed apart.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/row_kernels.h"

namespace incipit::kernels::INCIPIT_LEVEL {

constexpr float masked_score = -__builtin_inff();
// Where a running maximum starts: below any score, but finite, so that differences are numbers.
constexpr float lowest_score = -1e30F;

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

  static void put_row(void* operand, int position, int head_dim, const std::uint16_t* row) {
    float* out = static_cast<float*>(operand) + static_cast<std::size_t>(position) * head_dim;
    int d = 0;
    for (; d + lane_count <= head_dim; d += lane_count)
      store(out + d, load_bf16(row + d));
    for (; d < head_dim; ++d) {
      out[d] = __builtin_bit_cast(float, static_cast<std::uint32_t>(row[d]) << 16);
    }
  }

  static void put_key(void* keys, int position, int head_dim, const std::uint16_t* row) {
    put_row(keys, position, head_dim, row);
  }

  static void put_value(void* values, int position, int head_dim, const std::uint16_t* row) {
    put_row(values, position, head_dim, row);
  }

  static void finish_values(void*, int) {}

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

template <class Products>
struct Attention {
  // Scratch: keys, values, scores, a copy of the output of 16 columns, a spare operand, then the
  // queries of every 16 columns.
  static std::size_t scratch_bytes(int head_dim, int columns) {
    const auto blocks = static_cast<std::size_t>((columns + panel_rows - 1) / panel_rows);
    return 3 * Products::operand_bytes(head_dim) + score_floats * sizeof(float)
           + state_bytes(head_dim) + blocks * Products::query_bytes(head_dim);
  }

  static bool attend(const AttentionBlock& block, int split, float* state, void* scratch) {
    const int columns = (block.row_end - block.row_begin) * block.query_heads;
    const int column_blocks = (columns + panel_rows - 1) / panel_rows;
    const std::size_t operand = Products::operand_bytes(block.head_dim);
    auto* memory = static_cast<std::uint8_t*>(scratch);
    void* keys = memory;
    void* values = memory + operand;
    void* spare = memory + 2 * operand;
    auto* scores = reinterpret_cast<float*>(memory + 3 * operand);
    float* saved = scores + score_floats;
    std::uint8_t* queries = reinterpret_cast<std::uint8_t*>(saved) + state_bytes(block.head_dim);

    // What the rows of this block see, as positions.
    const int first_row = block.context + block.row_begin;
    const int last_row = block.context + block.row_end - 1;
    int low = block.window > 0 ? first_row - block.window + 1 : 0;
    if (low < split * attention_split) low = split * attention_split;
    int high = last_row + 1;
    if (high > (split + 1) * attention_split) high = (split + 1) * attention_split;

    Products::begin();
    put_queries(block, columns, column_blocks, queries);
    const std::size_t state_floats = attention_state_floats(block.head_dim);
    for (int i = 0; i < column_blocks; ++i)
      clear(state + i * state_floats, block.head_dim);
    bool clean = true;
    for (int tile = low / attention_tile * attention_tile; tile < high; tile += attention_tile) {
      const int begin = tile > low ? tile : low;
      const int end = tile + attention_tile < high ? tile + attention_tile : high;
      const bool partial =
          end - 1 > first_row || (block.window > 0 && begin <= last_row - block.window);
      if (!load_tile(block, tile, begin, end, partial && block.row_end - block.row_begin > 1, keys,
                     values)) {
        clean = false;
        break;
      }
      for (int i = 0; i < column_blocks; ++i) {
        Products::scores(keys, queries + i * Products::query_bytes(block.head_dim), block.head_dim,
                         scores);
        update(block, i, tile, begin, end, scores, values, state + i * state_floats, saved, spare);
      }
    }
    Products::end();
    return clean;
  }

 private:
  static constexpr std::size_t score_floats = static_cast<std::size_t>(attention_tile) * panel_rows;

  static std::size_t state_bytes(int head_dim) {
    return attention_state_floats(head_dim) * sizeof(float);
  }

  static void clear(float* state, int head_dim) {
    store(state, broadcast(lowest_score));
    for (int i = 1; i < head_dim + 2; ++i)
      store(state + i * panel_rows, zero());
  }

  // Lanes past the last column repeat it.
  static void put_queries(const AttentionBlock& block, int columns, int column_blocks,
                          std::uint8_t* queries) {
    std::memset(queries, 0, column_blocks * Products::query_bytes(block.head_dim));
    for (int column = 0; column < column_blocks * panel_rows; ++column) {
      const int source = column < columns ? column : columns - 1;
      const float* q = block.q
                       + static_cast<std::size_t>(block.row_begin + source / block.query_heads)
                             * block.row_stride
                       + static_cast<std::size_t>(source % block.query_heads) * block.head_dim;
      void* to = queries + (column / panel_rows) * Products::query_bytes(block.head_dim);
      for (int d = 0; d < block.head_dim; d += lane_count) {
        const int count = block.head_dim - d < lane_count ? block.head_dim - d : lane_count;
        float rounded[lane_count];
        store(rounded, round_to_bf16(load_first(q + d, count)));
        for (int i = 0; i < count; ++i) {
          Products::put_query(to, block.head_dim, d + i, column % panel_rows, rounded[i]);
        }
      }
    }
  }

  // Copies positions [begin, end) of the tile; the others become zero, whatever the pool holds
  // there. False: `check` was asked for, and a value is not finite.
  static bool load_tile(const AttentionBlock& block, int tile, int begin, int end, bool check,
                        void* keys, void* values) {
    const std::uint16_t zeros[max_head_dim] = {};
    std::uint32_t not_finite = 0;
    for (int position = tile; position < tile + attention_tile; ++position) {
      const std::uint16_t* key = zeros;
      const std::uint16_t* value = zeros;
      if (position >= begin && position < end) {
        const std::uint8_t* at =
            block.pool
            + static_cast<std::size_t>(block.block_table[position / block.block_tokens])
                  * block.block_bytes
            + static_cast<std::size_t>(position % block.block_tokens) * block.head_dim * 2;
        key = reinterpret_cast<const std::uint16_t*>(at + block.key_offset);
        value = reinterpret_cast<const std::uint16_t*>(at + block.value_offset);
        if (check) {
          for (int d = 0; d < block.head_dim; ++d) {
            not_finite |= (value[d] & 0x7f80U) == 0x7f80U ? 1U : 0U;
          }
        }
      }
      Products::put_key(keys, position - tile, block.head_dim, key);
      Products::put_value(values, position - tile, block.head_dim, value);
    }
    Products::finish_values(values, block.head_dim);
    return not_finite == 0;
  }

  // Positions as floats are exact far beyond any context.
  static void column_positions(const AttentionBlock& block, int column_block, float* position) {
    for (int lane = 0; lane < lane_count; ++lane) {
      int row = block.row_begin + (column_block * panel_rows + lane) / block.query_heads;
      if (row >= block.row_end) row = block.row_end - 1;
      position[lane] = static_cast<float>(block.context + row);
    }
  }

  static void update(const AttentionBlock& block, int column_block, int tile, int begin, int end,
                     float* scores, const void* values, float* state, float* saved, void* spare) {
    float position[lane_count];
    column_positions(block, column_block, position);
    const Lanes newest = load(position);
    const Lanes oldest = newest - broadcast(static_cast<float>(block.window - 1));
    const bool all_visible =
        begin == tile && end == tile + attention_tile && static_cast<float>(end - 1) <= position[0]
        && (block.window <= 0
            || static_cast<float>(begin)
                   > position[lane_count - 1] - static_cast<float>(block.window));
    const Lanes scale = broadcast(block.scale);
    const Lanes masked = broadcast(masked_score);
    Lanes tile_max = masked;
    for (int i = 0; i < attention_tile; ++i) {
      Lanes score = load(scores + i * panel_rows) * scale;
      if (!all_visible) {
        const Lanes at = broadcast(static_cast<float>(tile + i));
        score = where_le(at, newest, score, masked);
        if (block.window > 0) score = where_le(oldest, at, score, masked);
      }
      store(scores + i * panel_rows, score);
      tile_max = max(score, tile_max);  // in this order a NaN score is passed over
    }
    const Lanes old_max = load(state);
    const Lanes new_max = max(old_max, tile_max);
    const Lanes correction = exponential(old_max - new_max);
    Lanes sums[4] = {zero(), zero(), zero(), zero()};
    for (int i = 0; i < attention_tile; i += 4) {
      for (int j = 0; j < 4; ++j) {
        float* score = scores + (i + j) * panel_rows;
        const Lanes p = round_to_bf16(exponential(load(score) - new_max));
        store(score, p);
        sums[j] = sums[j] + p;
      }
    }
    const int dim = block.head_dim;
    const bool keep_some = position[0] < static_cast<float>(tile)
                           || (block.window > 0
                               && position[lane_count - 1] - static_cast<float>(block.window - 1)
                                      > static_cast<float>(tile + attention_tile - 1));
    if (keep_some) std::memcpy(saved, state, state_bytes(dim));
    store(state, new_max);
    store(state + panel_rows,
          load(state + panel_rows) * correction + ((sums[0] + sums[1]) + (sums[2] + sums[3])));
    float* out = state + 2 * panel_rows;
    for (int d = 0; d < dim; ++d) {
      store(out + d * panel_rows, load(out + d * panel_rows) * correction);
    }
    Products::accumulate(values, scores, dim, out, spare);
    if (!keep_some) return;
    // A column that sees nothing of this tile keeps its state to the bit.
    const Lanes first = broadcast(static_cast<float>(tile));
    const Lanes last = broadcast(static_cast<float>(tile + attention_tile - 1));
    for (int i = 0; i < dim + 2; ++i) {
      const Lanes before = load(saved + i * panel_rows);
      Lanes kept = where_le(first, newest, load(state + i * panel_rows), before);
      if (block.window > 0) kept = where_le(oldest, last, kept, before);
      store(state + i * panel_rows, kept);
    }
  }
};

inline void merge(float* total, const float* part, int head_dim) {
  const Lanes total_max = load(total);
  const Lanes part_max = load(part);
  const Lanes total_sum = load(total + panel_rows);
  const Lanes part_sum = load(part + panel_rows);
  const Lanes new_max = max(total_max, part_max);
  const Lanes total_factor = exponential(total_max - new_max);
  const Lanes part_factor = exponential(part_max - new_max);
  store(total, new_max);
  // A side that saw nothing leaves the other one as it is, to the bit.
  for (int i = 1; i < head_dim + 2; ++i) {
    const Lanes a = load(total + i * panel_rows);
    const Lanes b = load(part + i * panel_rows);
    const Lanes both = a * total_factor + b * part_factor;
    const Lanes merged = where_le(total_sum, zero(), b, where_le(part_sum, zero(), a, both));
    store(total + i * panel_rows, merged);
  }
}

inline void write_attention(const AttentionBlock& block, const float* state) {
  const int columns = (block.row_end - block.row_begin) * block.query_heads;
  const std::size_t state_floats = attention_state_floats(block.head_dim);
  for (int column = 0; column < columns; ++column) {
    const float* from = state + (column / panel_rows) * state_floats + column % panel_rows;
    const float total = from[panel_rows];
    float* out =
        block.out
        + static_cast<std::size_t>(block.row_begin + column / block.query_heads) * block.row_stride
        + static_cast<std::size_t>(column % block.query_heads) * block.head_dim;
    from += 2 * panel_rows;
    for (int d = 0; d < block.head_dim; ++d)
      out[d] = from[d * panel_rows] / total;
  }
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
