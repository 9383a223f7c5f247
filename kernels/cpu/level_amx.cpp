// The level with matrix registers: tiles of 16 x 32 bf16 for matrix products and attention, the
// AVX-512 code for the rest and for few rows.
#define INCIPIT_LEVEL amx
#include "kernels/cpu/amx_attention.h"
#include "kernels/cpu/amx_linear.h"
#include "kernels/cpu/vector_level.h"

namespace incipit::kernels {
namespace {

constexpr KernelTable matrix_table() {
  KernelTable table = amx::vector_table("amx");
  table.wide_from = 2;
  table.make_wide_tile = amx::make_wide_tile;
  table.multiply_wide = amx::multiply_wide;
  table.begin_wide = amx::begin_tiles;
  table.end_wide = amx::end_tiles;
  table.attention_scratch = amx::Attention<amx::MatrixProducts>::scratch_bytes;
  table.attend = amx::Attention<amx::MatrixProducts>::attend;
  return table;
}

}  // namespace

constinit const KernelTable amx_kernels = matrix_table();

}  // namespace incipit::kernels
