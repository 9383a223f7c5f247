// Rotary position tables on the host.
#pragma once

#include "gateway/model/checkpoint.h"

#include <span>
#include <vector>

namespace incipit::gateway {

struct RopeTables {
  std::vector<float> cos;  // [positions][head_dim / 2]
  std::vector<float> sin;
};

// One family of angles: position / linear_factor * base^(-2i/head_dim) / divisors[i]. `divisors`
// may be empty. Computed in double and rounded once: at position 100,000 float32 angles would
// already be wrong in the third digit.
[[nodiscard]] RopeTables rope_tables(int positions, int head_dim, double base, double linear_factor,
                                     std::span<const float> divisors);

}  // namespace incipit::gateway
