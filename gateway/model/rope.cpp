#include "gateway/model/rope.h"

#include <cmath>

namespace incipit::gateway {

RopeTables rope_tables(int positions, int head_dim, double base, double linear_factor,
                       std::span<const float> divisors) {
  const int pairs = head_dim / 2;
  std::vector<double> frequencies(static_cast<std::size_t>(pairs));
  for (int i = 0; i < pairs; ++i) {
    const double divisor = divisors.empty() ? 1.0 : static_cast<double>(divisors[i]);
    frequencies[i] = std::pow(base, -2.0 * i / head_dim) / divisor / linear_factor;
  }
  RopeTables tables;
  tables.cos.reserve(static_cast<std::size_t>(positions) * pairs);
  tables.sin.reserve(static_cast<std::size_t>(positions) * pairs);
  for (int position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      tables.cos.push_back(static_cast<float>(std::cos(position * frequency)));
      tables.sin.push_back(static_cast<float>(std::sin(position * frequency)));
    }
  }
  return tables;
}

}  // namespace incipit::gateway
