// Sixteen float lanes, in whatever registers the including file is compiled for.
//
// Every level computes the same lanes in the same order with the same roundings, so all of them
// give the same bits. The rules that keep it so: contraction is off (kernels/CMakeLists.txt), no
// sum is reassociated, and `max`/`min` take the x86 meaning for NaN.
//
// Included once per level with INCIPIT_LEVEL set to the name of its namespace. Code in that
// namespace must not call inline functions of the standard library: the linker could keep this
// file's copy, with its instructions, for the whole program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

#define INCIPIT_INLINE inline __attribute__((always_inline))

namespace incipit::kernels::INCIPIT_LEVEL {

constexpr int lane_count = 16;

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

// Tokens that one pass over a weight panel serves: two chains and one total per token in 32
// registers.
constexpr int max_token_tile = 8;

struct Lanes {
  __m512 v;
};

struct Words {
  __m512i v;
};

INCIPIT_INLINE Lanes zero() {
  return {_mm512_setzero_ps()};
}

INCIPIT_INLINE Lanes broadcast(float x) {
  return {_mm512_set1_ps(x)};
}

INCIPIT_INLINE Lanes load(const float* p) {
  return {_mm512_loadu_ps(p)};
}

INCIPIT_INLINE void store(float* p, Lanes a) {
  _mm512_storeu_ps(p, a.v);
}

INCIPIT_INLINE Lanes operator+(Lanes a, Lanes b) {
  return {_mm512_add_ps(a.v, b.v)};
}

INCIPIT_INLINE Lanes operator-(Lanes a, Lanes b) {
  return {_mm512_sub_ps(a.v, b.v)};
}

INCIPIT_INLINE Lanes operator*(Lanes a, Lanes b) {
  return {_mm512_mul_ps(a.v, b.v)};
}

INCIPIT_INLINE Lanes operator/(Lanes a, Lanes b) {
  return {_mm512_div_ps(a.v, b.v)};
}

INCIPIT_INLINE Lanes max(Lanes a, Lanes b) {
  return {_mm512_max_ps(a.v, b.v)};
}

INCIPIT_INLINE Lanes min(Lanes a, Lanes b) {
  return {_mm512_min_ps(a.v, b.v)};
}

INCIPIT_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}

INCIPIT_INLINE Lanes fma_bf16(Lanes a, Lanes b, Lanes c) {
  return fma(a, b, c);
}

INCIPIT_INLINE Lanes where_le(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ), no.v, yes.v)};
}

INCIPIT_INLINE Lanes power_of_two(Lanes shifted) {
  const __m512i exponent = _mm512_add_epi32(_mm512_castps_si512(shifted.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}

INCIPIT_INLINE Lanes round_to_bf16(Lanes a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i nan = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __m512i chosen =
      _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), rounded, nan);
  return {_mm512_castsi512_ps(
      _mm512_and_si512(chosen, _mm512_set1_epi32(static_cast<int>(0xffff0000))))};
}

INCIPIT_INLINE Lanes load_bf16(const std::uint16_t* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}

INCIPIT_INLINE void store_bf16(std::uint16_t* p, Lanes rounded) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(rounded.v), 16)));
}

INCIPIT_INLINE Lanes load_half(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}

INCIPIT_INLINE Lanes load_i8(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}

INCIPIT_INLINE Words load_words(const void* p) {
  return {_mm512_loadu_si512(p)};
}

INCIPIT_INLINE Lanes low_bf16(Words w) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(w.v, 16))};
}

INCIPIT_INLINE Lanes high_bf16(Words w) {
  return {
      _mm512_castsi512_ps(_mm512_and_si512(w.v, _mm512_set1_epi32(static_cast<int>(0xffff0000))))};
}

template <int shift, int offset>
INCIPIT_INLINE Lanes nibble(Words w) {
  // The permutation looks at four bits of each index: no mask needed.
  const __m512 table = _mm512_sub_ps(
      _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_ps(offset));
  return {_mm512_permutexvar_ps(_mm512_srli_epi32(w.v, shift), table)};
}

// Four lanes each from p, p + 16, p + 32 and p + 48.
INCIPIT_INLINE Lanes load_quads(const float* p) {
  const __m256 lo =
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 16), 1);
  const __m256 hi =
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 32)), _mm_loadu_ps(p + 48), 1);
  return {_mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1)};
}

INCIPIT_INLINE void store_quads(float* p, Lanes a) {
  _mm_storeu_ps(p, _mm512_castps512_ps128(a.v));
  _mm_storeu_ps(p + 16, _mm512_extractf32x4_ps(a.v, 1));
  _mm_storeu_ps(p + 32, _mm512_extractf32x4_ps(a.v, 2));
  _mm_storeu_ps(p + 48, _mm512_extractf32x4_ps(a.v, 3));
}

INCIPIT_INLINE float sum(Lanes a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

constexpr int max_token_tile = 2;

struct Lanes {
  __m256 lo;
  __m256 hi;
};

struct Words {
  __m256i lo;
  __m256i hi;
};

INCIPIT_INLINE Lanes zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}

INCIPIT_INLINE Lanes broadcast(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

INCIPIT_INLINE Lanes load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

INCIPIT_INLINE void store(float* p, Lanes a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}

INCIPIT_INLINE Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

INCIPIT_INLINE Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}

INCIPIT_INLINE Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

INCIPIT_INLINE Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}

INCIPIT_INLINE Lanes max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

INCIPIT_INLINE Lanes min(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

INCIPIT_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

INCIPIT_INLINE Lanes fma_bf16(Lanes a, Lanes b, Lanes c) {
  return fma(a, b, c);
}

INCIPIT_INLINE Lanes where_le(Lanes a, Lanes b, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ)),
          _mm256_blendv_ps(no.hi, yes.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ))};
}

INCIPIT_INLINE __m256 power_of_two(__m256 shifted) {
  const __m256i exponent = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}

INCIPIT_INLINE Lanes power_of_two(Lanes shifted) {
  return {power_of_two(shifted.lo), power_of_two(shifted.hi)};
}

INCIPIT_INLINE __m256 round_to_bf16(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 chosen = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(nan),
                                         _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_and_ps(chosen,
                       _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000))));
}

INCIPIT_INLINE Lanes round_to_bf16(Lanes a) {
  return {round_to_bf16(a.lo), round_to_bf16(a.hi)};
}

INCIPIT_INLINE __m256 eight_bf16(const std::uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

INCIPIT_INLINE Lanes load_bf16(const std::uint16_t* p) {
  return {eight_bf16(p), eight_bf16(p + 8)};
}

INCIPIT_INLINE void store_bf16(std::uint16_t* p, Lanes rounded) {
  const __m256i lo = _mm256_srli_epi32(_mm256_castps_si256(rounded.lo), 16);
  const __m256i hi = _mm256_srli_epi32(_mm256_castps_si256(rounded.hi), 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed);
}

INCIPIT_INLINE Lanes load_half(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}

INCIPIT_INLINE Lanes load_i8(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}

INCIPIT_INLINE Words load_words(const void* p) {
  const auto* words = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
}

INCIPIT_INLINE Lanes low_bf16(Words w) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(w.lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(w.hi, 16))};
}

INCIPIT_INLINE Lanes high_bf16(Words w) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000));
  return {_mm256_castsi256_ps(_mm256_and_si256(w.lo, mask)),
          _mm256_castsi256_ps(_mm256_and_si256(w.hi, mask))};
}

template <int shift, int offset>
INCIPIT_INLINE __m256 nibble(__m256i w) {
  const __m256i quant = _mm256_and_si256(_mm256_srli_epi32(w, shift), _mm256_set1_epi32(15));
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(quant, _mm256_set1_epi32(offset)));
}

template <int shift, int offset>
INCIPIT_INLINE Lanes nibble(Words w) {
  return {nibble<shift, offset>(w.lo), nibble<shift, offset>(w.hi)};
}

INCIPIT_INLINE Lanes load_quads(const float* p) {
  return {
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 16), 1),
      _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + 32)), _mm_loadu_ps(p + 48), 1)};
}

INCIPIT_INLINE void store_quads(float* p, Lanes a) {
  _mm_storeu_ps(p, _mm256_castps256_ps128(a.lo));
  _mm_storeu_ps(p + 16, _mm256_extractf128_ps(a.lo, 1));
  _mm_storeu_ps(p + 32, _mm256_castps256_ps128(a.hi));
  _mm_storeu_ps(p + 48, _mm256_extractf128_ps(a.hi, 1));
}

INCIPIT_INLINE float sum(Lanes a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#else

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

#endif

}  // namespace incipit::kernels::INCIPIT_LEVEL
