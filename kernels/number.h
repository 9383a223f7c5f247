// 16-bit float formats and unaligned little-endian reads.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace incipit::kernels {

// Model files are little-endian, and so is every machine this builds for.
static_assert(std::endian::native == std::endian::little);

[[nodiscard]] inline std::uint16_t read_u16(const void* at) noexcept {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

[[nodiscard]] inline std::uint32_t read_u32(const void* at) noexcept {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

[[nodiscard]] inline float float_from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Nearest even; a NaN stays a (quiet) NaN.
[[nodiscard]] inline std::uint16_t bf16_from_float(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

[[nodiscard]] inline float float_from_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  // A subnormal half is a normal float. Integer steps only, so that a thread that flushes
  // subnormals to zero gets the same value.
  std::uint32_t shifted_exponent = 113;
  while ((mantissa & 0x400U) == 0) {
    mantissa <<= 1;
    --shifted_exponent;
  }
  return std::bit_cast<float>(sign | (shifted_exponent << 23) | ((mantissa & 0x3ffU) << 13));
}

}  // namespace incipit::kernels
