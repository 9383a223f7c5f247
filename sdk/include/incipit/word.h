// A word of the wire whose list may grow.
#pragma once

#include <string>
#include <utility>

namespace incipit {

// `known` is what this version makes of it, `unknown` for a word it has never seen; `text` is what
// was sent, and what is sent back. Compares with the enumerators: `reason == StopReason::tool_use`.
template <class Enum>
struct Word {
  Enum known = Enum::unknown;
  std::string text;

  friend bool operator==(const Word& word, Enum other) { return word.known == other; }

  friend bool operator==(const Word&, const Word&) = default;
};

}  // namespace incipit
