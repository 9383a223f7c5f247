#include "kernels/quant_block.h"

#include "kernels/number.h"

#include <cassert>

namespace incipit::kernels {
namespace {

// Q4_0, Q4_1, Q5_0, Q5_1: byte i holds element i in its low and element i + 16 in its high nibble;
// a fifth bit, if any, is bit i or i + 16 of `high`.
void unpack_halves(const std::uint8_t* nibbles, std::uint32_t high, int offset,
                   QuantGroup& out) noexcept {
  for (int i = 0; i < 16; ++i) {
    const int low = nibbles[i] & 15;
    const int upper = nibbles[i] >> 4;
    const int low_bit = static_cast<int>((high >> i) & 1U) << 4;
    const int upper_bit = static_cast<int>((high >> (i + 16)) & 1U) << 4;
    out.quants[i] = static_cast<std::int8_t>((low | low_bit) - offset);
    out.quants[i + 16] = static_cast<std::int8_t>((upper | upper_bit) - offset);
  }
}

struct SixBitPair {
  int scale;
  int min;
};

// Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit mins into twelve bytes: the first four of
// each in the low bits of bytes 0-3 and 4-7, the others as nibbles of bytes 8-11 plus the top two
// bits of the first eight bytes.
SixBitPair six_bit_pair(const std::uint8_t* packed, int index) noexcept {
  if (index < 4) return {packed[index] & 63, packed[index + 4] & 63};
  return {(packed[index + 4] & 15) | ((packed[index - 4] >> 6) << 4),
          (packed[index + 4] >> 4) | ((packed[index] >> 6) << 4)};
}

// Q4_K: d, dmin, 12 scale bytes, 128 nibble bytes. Q5_K: 32 bytes of fifth bits before the
// nibbles. Groups 2i and 2i + 1 are the low and high nibbles of the same 32 bytes.
QuantGroup decode_k45(const std::uint8_t* block, int index, bool five_bits) noexcept {
  QuantGroup out;
  const float d = float_from_half(read_u16(block));
  const float d_min = float_from_half(read_u16(block + 2));
  const SixBitPair pair = six_bit_pair(block + 4, index);
  out.scale = d * static_cast<float>(pair.scale);
  out.min = -(d_min * static_cast<float>(pair.min));
  const std::uint8_t* fifth = block + 16;
  const std::uint8_t* nibbles = block + (five_bits ? 48 : 16) + index / 2 * 32;
  for (int i = 0; i < 32; ++i) {
    int quant = index % 2 == 0 ? nibbles[i] & 15 : nibbles[i] >> 4;
    if (five_bits) quant |= ((fifth[i] >> index) & 1) << 4;
    out.quants[i] = static_cast<std::int8_t>(quant);
  }
  return out;
}

// Q6_K: 128 bytes of low nibbles, 64 of upper bit pairs, 16 signed scales, d. Each half of the
// block (128 elements) has four runs of 32: run r takes the low or high nibbles of 32 of 64 bytes
// and bits 2r of 32 bytes.
QuantGroup decode_k6(const std::uint8_t* block, int index) noexcept {
  QuantGroup out;
  const int half = index / 8;
  const int run = index % 8 / 2;
  const int first = index % 2 * 16;
  const std::uint8_t* low = block + half * 64 + run % 2 * 32 + first;
  const std::uint8_t* high = block + 128 + half * 32 + first;
  for (int i = 0; i < 16; ++i) {
    const int nibble = run < 2 ? low[i] & 15 : low[i] >> 4;
    const int upper = (high[i] >> (2 * run)) & 3;
    out.quants[i] = static_cast<std::int8_t>((nibble | (upper << 4)) - 32);
  }
  const auto scale = static_cast<std::int8_t>(block[192 + index]);
  out.scale = float_from_half(read_u16(block + 208)) * static_cast<float>(scale);
  return out;
}

}  // namespace

int quant_group_size(DType dtype) noexcept {
  return dtype == DType::q6_k ? 16 : 32;
}

bool quant_has_min(DType dtype) noexcept {
  return dtype == DType::q4_1 || dtype == DType::q5_1 || dtype == DType::q4_k
         || dtype == DType::q5_k;
}

bool quant_scale_is_half(DType dtype) noexcept {
  return dtype != DType::q4_k && dtype != DType::q5_k && dtype != DType::q6_k;
}

QuantGroup decode_group(DType dtype, const std::uint8_t* block, int index) noexcept {
  QuantGroup out;
  switch (dtype) {
    case DType::q8_0:
      for (int i = 0; i < 32; ++i)
        out.quants[i] = static_cast<std::int8_t>(block[2 + i]);
      break;
    case DType::q4_0:
      unpack_halves(block + 2, 0, 8, out);
      break;
    case DType::q4_1:
      unpack_halves(block + 4, 0, 0, out);
      out.min = float_from_half(read_u16(block + 2));
      break;
    case DType::q5_0:
      unpack_halves(block + 6, read_u32(block + 2), 16, out);
      break;
    case DType::q5_1:
      unpack_halves(block + 8, read_u32(block + 4), 0, out);
      out.min = float_from_half(read_u16(block + 2));
      break;
    case DType::q4_k:
      return decode_k45(block, index, false);
    case DType::q5_k:
      return decode_k45(block, index, true);
    case DType::q6_k:
      return decode_k6(block, index);
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      assert(false);
      break;
  }
  out.scale = float_from_half(read_u16(block));
  return out;
}

}  // namespace incipit::kernels
