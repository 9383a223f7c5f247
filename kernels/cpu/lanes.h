// Sixteen float lanes, in whatever registers the including file is compiled for.
//
// Every level computes the same lanes in the same order with the same roundings, so all of them
// give the same bits. The rules that keep it so: contraction is off (kernels/CMakeLists.txt), no
// sum is reassociated, and `max`/`min` take the x86 meaning for NaN.
//
// Included once per level with INCIPIT_LEVEL set to the name of its namespace. Code in that
// namespace must not call inline functions of the standard library: the linker could keep this
// file's copy, with its instructions, for the whole program.
//
// Besides the arithmetic of each lane:
//   fma_bf16(a, b, c)        a * b + c rounded once, for a and b that hold bf16 values
//   where_le(a, b, yes, no)  yes where a <= b, else no (also where one is NaN)
//   round_to_bf16(a)         to nearest even, as a float; NaN stays NaN
//   power_of_two(shifted)    2^n, for the float 1.5 * 2^23 + n
//   low_bf16, high_bf16      the halves of words as floats
//   nibble<shift, offset>    four bits of each word, minus offset, as floats
//   load_quads, store_quads  four lanes each at p, p + 16, p + 32 and p + 48
//   sum(a)                   by halves: lanes i and i + 8, then i and i + 4, 2, 1
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define INCIPIT_INLINE inline __attribute__((always_inline))

namespace incipit::kernels::INCIPIT_LEVEL {

constexpr int lane_count = 16;

}  // namespace incipit::kernels::INCIPIT_LEVEL

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "kernels/cpu/lanes_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "kernels/cpu/lanes_avx2.h"
#else
#include "kernels/cpu/lanes_plain.h"
#endif
