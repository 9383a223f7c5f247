// Causal attention with an online softmax over 64-position tiles.
//
// Sixteen query columns - pairs of row and query head that share a kv head - take the lanes, so
// maxima, exponentials and sums need no step across lanes, and no column sees another. Queries are
// rounded to bf16; a probability is the sum of two bf16 numbers, since one alone moves the output
// more than all other roundings together. Sums are float32. Products add in the order of
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

template <class Products>
struct Attention {
  // Scratch: keys, values, a spare operand, scores (then the probabilities' high parts) and low
  // parts, a copy of the state of 16 columns, then the queries of every 16 columns.
  static std::size_t scratch_bytes(int head_dim, int columns) {
    const auto blocks = static_cast<std::size_t>((columns + panel_rows - 1) / panel_rows);
    return 3 * Products::operand_bytes(head_dim) + 2 * score_floats * sizeof(float)
           + state_bytes(head_dim) + blocks * Products::query_bytes(head_dim);
  }

  static bool attend(const AttentionBlock& block, int split, float* state, void* scratch) {
    const int columns = (block.row_end - block.row_begin) * block.query_heads;
    const int column_blocks = (columns + panel_rows - 1) / panel_rows;
    const std::size_t operand = Products::operand_bytes(block.head_dim);
    auto* memory = static_cast<std::uint8_t*>(scratch);
    void* key_memory = memory;
    void* values = memory + operand;
    void* spare = memory + 2 * operand;
    auto* scores = reinterpret_cast<float*>(memory + 3 * operand);
    float* saved = scores + 2 * score_floats;
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
    const std::uint16_t zeros[max_head_dim] = {};
    TileRows rows;
    bool clean = true;
    for (int tile = low / attention_tile * attention_tile; tile < high; tile += attention_tile) {
      const int begin = tile > low ? tile : low;
      const int end = tile + attention_tile < high ? tile + attention_tile : high;
      const bool partial =
          end - 1 > first_row || (block.window > 0 && begin <= last_row - block.window);
      find_rows(block, tile, begin, end, zeros, rows);
      const int next_end = end + attention_tile < high ? end + attention_tile : high;
      prefetch_rows(block, end, next_end);
      if (partial && block.row_end - block.row_begin > 1 && !all_finite(rows, block.head_dim)) {
        clean = false;
        break;
      }
      const void* keys =
          Products::stage_keys(rows.keys, rows.contiguous, block.head_dim, key_memory);
      Products::stage_values(rows.values, block.head_dim, values);
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

  // Lanes past the last column hold zeros, which are as good as any query.
  static void put_queries(const AttentionBlock& block, int columns, int column_blocks,
                          std::uint8_t* queries) {
    std::memset(queries, 0, column_blocks * Products::query_bytes(block.head_dim));
    for (int column = 0; column < columns; ++column) {
      const float* q = block.q
                       + static_cast<std::size_t>(block.row_begin + column / block.query_heads)
                             * block.row_stride
                       + static_cast<std::size_t>(column % block.query_heads) * block.head_dim;
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

  struct TileRows {
    const std::uint16_t* keys[attention_tile];
    const std::uint16_t* values[attention_tile];
    bool contiguous = false;  // the keys follow each other in memory
  };

  // Finds positions [begin, end) of the tile. The others are rows of zeros, whatever the pool holds
  // there: zero times NaN would be NaN.
  static void find_rows(const AttentionBlock& block, int tile, int begin, int end,
                        const std::uint16_t* zeros, TileRows& rows) {
    rows.contiguous =
        block.block_tokens % attention_tile == 0 && begin == tile && end == tile + attention_tile;
    for (int position = tile; position < tile + attention_tile;) {
      if (position < begin || position >= end) {
        rows.keys[position - tile] = zeros;
        rows.values[position - tile] = zeros;
        ++position;
        continue;
      }
      const int offset = position % block.block_tokens;
      const std::uint8_t* at =
          block.pool
          + static_cast<std::size_t>(block.block_table[position / block.block_tokens])
                * block.block_bytes;
      const auto first = static_cast<std::size_t>(offset) * block.head_dim;
      const auto* key = reinterpret_cast<const std::uint16_t*>(at + block.key_offset) + first;
      const auto* value = reinterpret_cast<const std::uint16_t*>(at + block.value_offset) + first;
      int run_end = position + block.block_tokens - offset;
      if (run_end > end) run_end = end;
      if (run_end > tile + attention_tile) run_end = tile + attention_tile;
      for (; position < run_end; ++position) {
        rows.keys[position - tile] = key;
        rows.values[position - tile] = value;
        key += block.head_dim;
        value += block.head_dim;
      }
    }
  }

  // Asks for the keys and values of positions [begin, end), which lie in one tile.
  static void prefetch_rows(const AttentionBlock& block, int begin, int end) {
    for (int position = begin; position < end;) {
      const int offset = position % block.block_tokens;
      int run = block.block_tokens - offset;
      if (run > end - position) run = end - position;
      const std::uint8_t* at =
          block.pool
          + static_cast<std::size_t>(block.block_table[position / block.block_tokens])
                * block.block_bytes
          + static_cast<std::size_t>(offset) * block.head_dim * 2;
      for (int byte = 0; byte < run * block.head_dim * 2; byte += 64) {
        __builtin_prefetch(at + block.key_offset + byte, 0, 2);
        __builtin_prefetch(at + block.value_offset + byte, 0, 2);
      }
      position += run;
    }
  }

  static bool all_finite(const TileRows& rows, int head_dim) {
    std::uint32_t not_finite = 0;
    for (const std::uint16_t* row : rows.values) {
      for (int d = 0; d < head_dim; ++d)
        not_finite |= (row[d] & 0x7f80U) == 0x7f80U ? 1U : 0U;
    }
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

  struct Softmax {
    Lanes max;  // including the maximum so far
    Lanes sum;  // of this tile
  };

  // Turns the scores of a tile into probabilities relative to the new maximum. With four columns or
  // fewer, as in decoding, a vector holds those of four positions; every number is the same.
  template <bool quads>
  static Softmax normalise(const AttentionBlock& block, int tile, bool all_visible,
                           const float* position, Lanes old_max, float* scores) {
    constexpr int step = quads ? 4 : 1;
    float column[lane_count];  // position of the column in each lane
    float offset[lane_count];  // of the tile's positions in each lane
    for (int lane = 0; lane < lane_count; ++lane) {
      column[lane] = position[quads ? lane % 4 : lane];
      offset[lane] = quads ? static_cast<float>(lane / 4) : 0.0F;
    }
    const Lanes newest = load(column);
    const Lanes oldest = newest - broadcast(static_cast<float>(block.window - 1));
    const Lanes offsets = load(offset);
    const Lanes scale = broadcast(block.scale);
    const Lanes masked = broadcast(masked_score);
    Lanes largest = masked;
    for (int i = 0; i < attention_tile; i += step) {
      Lanes score = load_positions<quads>(scores + i * panel_rows) * scale;
      if (!all_visible) {
        const Lanes at = broadcast(static_cast<float>(tile + i)) + offsets;
        score = where_le(at, newest, score, masked);
        if (block.window > 0) score = where_le(oldest, at, score, masked);
      }
      store_positions<quads>(scores + i * panel_rows, score);
      largest = max(score, largest);  // in this order a NaN score is passed over
    }
    if constexpr (quads) {
      float parts[lane_count];
      store(parts, largest);
      for (int lane = 0; lane < lane_count; ++lane) {
        for (int i = lane % 4; i < lane_count; i += 4) {
          if (parts[i] > column[lane] || i == lane % 4) column[lane] = parts[i];
        }
      }
      largest = load(column);
      store(parts, old_max);
      for (int lane = 4; lane < lane_count; ++lane)
        parts[lane] = parts[lane % 4];
      old_max = load(parts);
    }
    const Lanes new_max = max(old_max, largest);
    // Positions 0, 4, 8, ... make the first sum, 1, 5, 9, ... the second, and so on.
    Lanes sums[4] = {zero(), zero(), zero(), zero()};
    for (int i = 0; i < attention_tile; i += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; j += step) {
        float* at = scores + (i + j) * panel_rows;
        const Lanes p = exponential(load_positions<quads>(at) - new_max);
        const Lanes high = round_to_bf16(p);
        store_positions<quads>(at, high);
        store_positions<quads>(at + score_floats, round_to_bf16(p - high));
        sums[j] = sums[j] + p;
      }
    }
    if constexpr (quads) {
      float parts[2 * lane_count] = {};
      store(parts, sums[0]);
      for (int j = 3; j >= 0; --j)
        sums[j] = load(parts + 4 * j);
    }
    return {new_max, (sums[0] + sums[1]) + (sums[2] + sums[3])};
  }

  template <bool quads>
  static INCIPIT_INLINE Lanes load_positions(const float* p) {
    if constexpr (quads) {
      return load_quads(p);
    } else {
      return load(p);
    }
  }

  template <bool quads>
  static INCIPIT_INLINE void store_positions(float* p, Lanes a) {
    if constexpr (quads) {
      store_quads(p, a);
    } else {
      store(p, a);
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
    const int columns =
        (block.row_end - block.row_begin) * block.query_heads - column_block * panel_rows;
    const Softmax softmax =
        columns <= 4 ? normalise<true>(block, tile, all_visible, position, load(state), scores)
                     : normalise<false>(block, tile, all_visible, position, load(state), scores);
    const int dim = block.head_dim;
    const bool keep_some = position[0] < static_cast<float>(tile)
                           || (block.window > 0
                               && position[lane_count - 1] - static_cast<float>(block.window - 1)
                                      > static_cast<float>(tile + attention_tile - 1));
    if (keep_some) std::memcpy(saved, state, state_bytes(dim));
    const Lanes correction = exponential(load(state) - softmax.max);
    store(state, softmax.max);
    store(state + panel_rows, load(state + panel_rows) * correction + softmax.sum);
    float* out = state + 2 * panel_rows;
    for (int d = 0; d < dim; ++d) {
      store(out + d * panel_rows, load(out + d * panel_rows) * correction);
    }
    Products::accumulate(values, scores, dim, out, spare);
    Products::accumulate(values, scores + score_floats, dim, out, spare);
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
