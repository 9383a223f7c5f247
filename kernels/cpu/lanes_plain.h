// Sixteen lanes in an array. Included by lanes.h only, which says what the operations mean.
#pragma once

#include <cstdint>
#include <cstring>

namespace incipit::kernels::INCIPIT_LEVEL {

constexpr int max_token_tile = 4;

struct Lanes {
  float v[lane_count];
};

struct Words {
  std::uint32_t v[lane_count];
};

INCIPIT_INLINE float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

INCIPIT_INLINE std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}

// One expression per lane; the compiler may use what vectors the target has.
template <class Expression>
INCIPIT_INLINE Lanes each_lane(Expression&& expression) {
  Lanes out;
  for (int i = 0; i < lane_count; ++i)
    out.v[i] = expression(i);
  return out;
}

INCIPIT_INLINE Lanes broadcast(float x) {
  return each_lane([&](int) { return x; });
}

INCIPIT_INLINE Lanes zero() {
  return broadcast(0);
}

INCIPIT_INLINE Lanes load(const float* p) {
  Lanes out;
  std::memcpy(out.v, p, sizeof out.v);
  return out;
}

INCIPIT_INLINE void store(float* p, const Lanes& a) {
  std::memcpy(p, a.v, sizeof a.v);
}

INCIPIT_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a.v[i] + b.v[i]; });
}

INCIPIT_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a.v[i] - b.v[i]; });
}

INCIPIT_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a.v[i] * b.v[i]; });
}

INCIPIT_INLINE Lanes operator/(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a.v[i] / b.v[i]; });
}

INCIPIT_INLINE Lanes max(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}

INCIPIT_INLINE Lanes min(const Lanes& a, const Lanes& b) {
  return each_lane([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}

INCIPIT_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return each_lane([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}

// For factors that hold bf16 values. Their product has 16 bits, so the sum in double either is
// exact or has one term too small to move a rounding: the result is that of a fused operation,
// also on machines without one.
INCIPIT_INLINE Lanes fma_bf16(const Lanes& a, const Lanes& b, const Lanes& c) {
#if defined(__FP_FAST_FMAF)
  return fma(a, b, c);
#else
  return each_lane(
      [&](int i) { return static_cast<float>(static_cast<double>(a.v[i]) * b.v[i] + c.v[i]); });
#endif
}

INCIPIT_INLINE Lanes where_le(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
  return each_lane([&](int i) { return a.v[i] <= b.v[i] ? yes.v[i] : no.v[i]; });
}

INCIPIT_INLINE Lanes power_of_two(const Lanes& shifted) {
  return each_lane([&](int i) { return float_of((bits_of(shifted.v[i]) + 127U) << 23); });
}

INCIPIT_INLINE Lanes round_to_bf16(const Lanes& a) {
  return each_lane([&](int i) {
    const std::uint32_t bits = bits_of(a.v[i]);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return float_of((nan ? bits | 0x400000U : rounded) & 0xffff0000U);
  });
}

INCIPIT_INLINE Lanes load_bf16(const std::uint16_t* p) {
  return each_lane([&](int i) { return float_of(static_cast<std::uint32_t>(p[i]) << 16); });
}

INCIPIT_INLINE void store_bf16(std::uint16_t* p, const Lanes& rounded) {
  for (int i = 0; i < lane_count; ++i) {
    p[i] = static_cast<std::uint16_t>(bits_of(rounded.v[i]) >> 16);
  }
}

INCIPIT_INLINE Lanes load_half(const std::uint16_t* p) {
  return each_lane([&](int i) {
    const std::uint32_t sign = static_cast<std::uint32_t>(p[i] & 0x8000U) << 16;
    const std::uint32_t magnitude = p[i] & 0x7fffU;
    if (magnitude >= 0x7c00U) return float_of(sign | ((magnitude << 13) + 0x70000000U));
    if (magnitude >= 0x400U) return float_of(sign | ((magnitude << 13) + 0x38000000U));
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24F;
    return float_of(sign | bits_of(subnormal));
  });
}

INCIPIT_INLINE Lanes load_i8(const std::int8_t* p) {
  return each_lane([&](int i) { return static_cast<float>(p[i]); });
}

INCIPIT_INLINE Words load_words(const void* p) {
  Words out;
  std::memcpy(out.v, p, sizeof out.v);
  return out;
}

INCIPIT_INLINE Lanes low_bf16(const Words& w) {
  return each_lane([&](int i) { return float_of(w.v[i] << 16); });
}

INCIPIT_INLINE Lanes high_bf16(const Words& w) {
  return each_lane([&](int i) { return float_of(w.v[i] & 0xffff0000U); });
}

template <int shift, int offset>
INCIPIT_INLINE Lanes nibble(const Words& w) {
  return each_lane([&](int i) {
    return static_cast<float>(static_cast<int>((w.v[i] >> shift) & 15U) - offset);
  });
}

INCIPIT_INLINE Lanes load_quads(const float* p) {
  return each_lane([&](int i) { return p[i / 4 * 16 + i % 4]; });
}

INCIPIT_INLINE void store_quads(float* p, const Lanes& a) {
  for (int i = 0; i < lane_count; ++i)
    p[i / 4 * 16 + i % 4] = a.v[i];
}

INCIPIT_INLINE float sum(const Lanes& a) {
  float eight[8];
  float four[4];
  for (int i = 0; i < 8; ++i)
    eight[i] = a.v[i] + a.v[i + 8];
  for (int i = 0; i < 4; ++i)
    four[i] = eight[i] + eight[i + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
