// The table of a level that has vectors only. Included by the level's file, see lanes.h.
#pragma once

#include "kernels/cpu/attention_kernels.h"
#include "kernels/cpu/attention_vector.h"
#include "kernels/cpu/linear_kernels.h"
#include "kernels/cpu/row_kernels.h"

namespace incipit::kernels::INCIPIT_LEVEL {

constexpr KernelTable vector_table(const char* level) {
  KernelTable table{};
  table.level = level;
  table.narrow_tile = max_token_tile;
  table.make_narrow_tile = make_narrow_tile;
  table.multiply_narrow = multiply_narrow;
  table.rms_norm = rms_norm;
  table.gated_activation = gated_activation;
  table.add = add;
  table.append_row = append_row;
  table.attention_scratch = Attention<VectorProducts>::scratch_bytes;
  table.attend = Attention<VectorProducts>::attend;
  table.merge = merge;
  table.write_attention = write_attention;
  return table;
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
