// Sixteen lanes in one AVX-512 register. Included by lanes.h only, which says what the operations
// mean.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace incipit::kernels::INCIPIT_LEVEL {

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

}  // namespace incipit::kernels::INCIPIT_LEVEL
