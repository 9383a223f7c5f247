// Weight matrices in the order in which the multiplying loop reads them.
//
// Sixteen output rows make a panel, one vector lane per row. Along K a panel is cut into groups of
// 32 (16 for Q6_K) that share a scale per row:
//   bf16  per pair of columns: 16 words, even column in the low half and odd in the high half
//   q4    4 x 16 words of eight nibbles; word j holds columns 8j..8j+7, even columns in the low
//         half from the bottom up, odd ones in the high half
//   q8    per column: 16 signed bytes
// Scales and mins follow all quants of a panel: [group][16], half or float as in the file.
#pragma once

#include <cstdint>

namespace incipit::kernels {

constexpr int panel_rows = 16;
constexpr int k_group = 32;

enum class PanelFormat : std::uint8_t {
  bf16,
  q4_half,       // Q4_0: nibbles stand for -8..7
  q4_half_min,   // Q4_1
  q4_float_min,  // Q4_K
  q8_half,       // Q8_0, Q5_0
  q8_half_min,   // Q5_1
  q8_float_min,  // Q5_K
  q8_float_16,   // Q6_K: groups of 16
};

// One panel as a kernel sees it.
struct Panel {
  PanelFormat format = PanelFormat::bf16;
  int rows = 0;    // lanes in use
  int groups = 0;  // groups of 32 columns, the last one padded with zeros
  const std::uint8_t* quants = nullptr;
  const void* scales = nullptr;
  const void* mins = nullptr;
};

}  // namespace incipit::kernels
