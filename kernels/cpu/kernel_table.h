// What the cpu backend asks of an instruction-set level: loops over memory, no allocation, no
// threads. One table per level; all give the same bits.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/panel.h"

#include <cstddef>
#include <cstdint>

namespace incipit::kernels {

// Activations of up to `tile` rows, rounded and laid out for one pass over a panel.
//   narrow: float [column][tile]
//   wide:   bf16 [tile][columns]
// sums: float [group of 32][tile], the sum of the rounded inputs of each group.
// Columns are padded with zeros to a multiple of 32, rows to `tile`.
struct InputTile {
  int tile = 0;
  int rows = 0;  // in use
  const void* values = nullptr;
  const float* sums = nullptr;
};

struct OutputTile {
  float* y = nullptr;           // row 0, first column of the panel
  std::size_t stride = 0;       // floats from row to row
  const float* bias = nullptr;  // of the panel, or null
  bool accumulate = false;
};

struct HeadGeometry {
  int heads = 0;  // query heads
  int kv_heads = 0;
  int head_dim = 0;
};

struct AppendRow {
  const float* qkv = nullptr;
  float* q_out = nullptr;
  HeadGeometry geometry;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float epsilon = 0;
  const float* cos = nullptr;  // of this position, [head_dim / 2]
  const float* sin = nullptr;
  RopePairing pairing = RopePairing::halves;
  std::uint16_t* keys = nullptr;  // this position of head 0 in the pool
  std::uint16_t* values = nullptr;
  std::size_t head_stride = 0;  // elements from one kv head to the next in the pool
};

// Rows [row_begin, row_end) of a span, for the query heads of one kv head.
struct AttentionBlock {
  const float* q = nullptr;  // first row of the span, first query head of the kv head
  float* out = nullptr;
  std::size_t row_stride = 0;  // floats
  int row_begin = 0;
  int row_end = 0;
  int context = 0;  // position of row 0
  int query_heads = 0;
  int head_dim = 0;
  float scale = 0;
  int window = 0;
  const std::uint8_t* pool = nullptr;
  std::size_t block_bytes = 0;
  std::size_t key_offset = 0;  // bytes from the start of a block to the head's first key
  std::size_t value_offset = 0;
  int block_tokens = 0;
  const std::int32_t* block_table = nullptr;
};

constexpr int attention_tile = 64;
constexpr int attention_split = 1024;

// Partial attention of 16 query columns (row-major pairs of row and head): float max[16],
// sum[16], out[head_dim][16].
[[nodiscard]] constexpr std::size_t attention_state_floats(int head_dim) {
  return static_cast<std::size_t>(head_dim + 2) * panel_rows;
}

struct KernelTable {
  const char* level;
  int narrow_tile;  // most rows in a narrow input tile
  int wide_from;    // rows from which wide tiles of 16 pay; 0 = never

  void (*make_narrow_tile)(const float* x, int cols, int rows, int tile, float* values,
                           float* sums);
  void (*multiply_narrow)(const Panel& panel, const InputTile& in, const OutputTile& out);
  void (*make_wide_tile)(const float* x, int cols, int rows, int tile, std::uint16_t* values,
                         float* sums);
  // One tile of 1, 2, 4, 8 or 16 rows, or several of 16. `scratch`: 64 bytes per column of the
  // panel and 64-byte aligned.
  void (*multiply_wide)(const Panel& panel, const InputTile* in, int tiles, const OutputTile& out,
                        void* scratch);
  void (*begin_wide)(int tile);  // per thread, before multiply_wide
  void (*end_wide)();

  void (*rms_norm)(const float* x, const float* weight, float epsilon, int cols, float* y);
  void (*gated_activation)(const float* x, Activation activation, int cols, float* y);
  void (*add)(float* x, const float* y, std::size_t count);
  void (*append_row)(const AppendRow& row);

  std::size_t (*attention_scratch)(int head_dim, int columns);  // bytes
  // Attention over positions [split * 1024, +1024) into `state`, one per 16 columns. False: a
  // masked position holds a value that is not finite, so the rows must be taken one by one.
  bool (*attend)(const AttentionBlock& block, int split, float* state, void* scratch);
  void (*merge)(float* total, const float* part, int head_dim);
  void (*write_attention)(const AttentionBlock& block, const float* state);
};

extern const KernelTable plain_kernels;
#if defined(__x86_64__)
extern const KernelTable avx2_kernels;
extern const KernelTable avx512_kernels;
extern const KernelTable amx_kernels;
#endif

}  // namespace incipit::kernels
