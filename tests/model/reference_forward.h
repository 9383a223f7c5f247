// The transformers of these tests in plain double precision, written from the papers' formulas and
// without any of the product's code: slow, and obvious.
#pragma once

#include "random_model.h"

#include <cstdint>
#include <vector>

namespace incipit::test {

// Logits [tokens.size()][vocab] of every position.
[[nodiscard]] std::vector<std::vector<double>> reference_logits(
    const RandomModel& model, const std::vector<std::int32_t>& tokens);

}  // namespace incipit::test
