// Matrix products on AMX tiles. TDPBF16PS adds, for each element, the chain of its even products
// and that of its odd ones to the sum so far: exactly the order of linear_kernels.h.
#pragma once

#include "kernels/cpu/lanes.h"

#include <cstddef>
#include <cstdint>
#include <immintrin.h>
#include <initializer_list>

namespace incipit::kernels::INCIPIT_LEVEL {

// Tiles 0-3: sums, up to 16 x 16. 4 and 6: left operands of 32 and 16 columns, as many rows. 5 and
// 7: right operands. Fewer rows make faster products.
inline void begin_tiles(int rows) {
  struct alignas(64) Configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 32, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 8};
  };

  static_assert(sizeof(Configuration) == 64);
  Configuration configuration;
  for (const int tile : {0, 1, 2, 3, 4, 6}) {
    configuration.rows[tile] = static_cast<std::uint8_t>(rows);
  }
  asm volatile("ldtilecfg %0" : : "m"(configuration));
}

inline void end_tiles() {
  _tile_release();
}

// The compiler's own forms of these do not say that they read memory, so it may drop or move the
// stores before them.
template <int tile>
INCIPIT_INLINE void tile_load(const void* from, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}

template <int tile>
INCIPIT_INLINE void tile_store(void* to, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
}

INCIPIT_INLINE __m512i pair_words(Lanes even, Lanes odd) {
  const __m512i high =
      _mm512_and_si512(_mm512_castps_si512(odd.v), _mm512_set1_epi32(static_cast<int>(0xffff0000)));
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even.v), 16), high);
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
