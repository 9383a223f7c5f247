// How far it is from each state of an automaton to an end.
#pragma once

#include "gateway/constrain/dfa.h"
#include "gateway/constrain/vocabulary.h"

#include <cstdint>
#include <vector>

namespace incipit::constrain {

inline constexpr std::uint32_t never = 0xFFFFFFFF;

// By state: a number of tokens that is enough to get to an accepting one, or `never` when tokens of
// one byte do not lead there. The way in the fewest bytes is taken, with the longest steps on it
// that the vocabulary has; so from a state with n > 0 some token leads to one with at most n - 1.
[[nodiscard]] std::vector<std::uint32_t> tokens_to_end(const Dfa& dfa,
                                                       const Vocabulary& vocabulary);

}  // namespace incipit::constrain
