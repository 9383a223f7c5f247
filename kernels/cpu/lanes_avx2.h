// Sixteen lanes in two AVX2 registers. Included by lanes.h only, which says what the operations
// mean.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace incipit::kernels::INCIPIT_LEVEL {

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

}  // namespace incipit::kernels::INCIPIT_LEVEL
