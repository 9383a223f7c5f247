// Vocabularies for tests: nobody's, but of the kinds that models have.
#pragma once

#include "gateway/constrain/vocabulary.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace incipit::constrain {

using Random = std::mt19937_64;

// Ids 0 to 255 are the bytes.
inline std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.emplace_back(1, static_cast<char>(byte));
  return tokens;
}

inline std::shared_ptr<const Vocabulary> byte_vocabulary() {
  return std::make_shared<const Vocabulary>(byte_tokens());
}

// What comes up in JSON, with everything that tokens like to join to it.
inline std::string json_like_token(Random& random) {
  static const std::vector<std::string> pieces = {"{",        "}",       "[",
                                                  "]",        "\"",      ":",
                                                  ",",        " ",       "\": ",
                                                  "\", \"",   "{\"",     "\"}",
                                                  "true",     "ull",     "f",
                                                  "als",      "name",    "a",
                                                  "b",        "e",       "1",
                                                  "0",        "12",      "-",
                                                  ".5",       "E+",      "\\",
                                                  "u00",      "\\ud83d", "\\u",
                                                  "dE00",     "\xC3",    "\xA9",
                                                  "\xE2\x82", "\xAC",    "é",
                                                  "日本",     "\n",      "  ",
                                                  "-02",      "T1",      "Z",
                                                  "@",        ".com",    "://",
                                                  "::",       "ff",      "tool",
                                                  "<tool",    "_call>",  "</tool_call>",
                                                  "count",    "items",   "value"};
  std::string token;
  const auto count = 1 + random() % 4;
  for (std::size_t i = 0; i < count; ++i)
    token += pieces[random() % pieces.size()];
  return token;
}

// The bytes, `count` random strings of several bytes, and some special tokens in between.
inline std::shared_ptr<const Vocabulary> mixed_vocabulary(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::string> tokens = byte_tokens();
  for (int i = 0; i < count; ++i) {
    if (i % 100 == 0) tokens.emplace_back();
    if (i % 4 != 0) {
      tokens.push_back(json_like_token(random));
      continue;
    }
    std::string token;
    for (auto length = 2 + random() % 7; length > 0; --length)
      token += static_cast<char>(random());
    tokens.push_back(token);
  }
  return std::make_shared<const Vocabulary>(std::move(tokens));
}

}  // namespace incipit::constrain
