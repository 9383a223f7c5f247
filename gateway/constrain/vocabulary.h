// What a model can write: its tokens as bytes.
#pragma once

#include "gateway/constrain/region.h"
#include "gateway/constrain/token_trie.h"

#include <bitset>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::constrain {

// Built once per model. Immutable but for what it remembers about frequent texts; any thread.
class Vocabulary {
 public:
  // `tokens` by id, as bytes. An empty one (a special or unused token) is never allowed. Throws
  // std::invalid_argument for a token above 65,535 bytes.
  explicit Vocabulary(std::vector<std::string> tokens);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }

  // Empty for ids outside the vocabulary as well.
  [[nodiscard]] std::string_view bytes(TokenId token) const;

  // That a text can always be completed rests on tokens of one byte. These are missing: a shape
  // that cannot do without one of them is refused, any other never leads to where it is needed.
  [[nodiscard]] const std::vector<unsigned char>& missing_bytes() const { return missing_; }

  [[nodiscard]] bool has_byte(unsigned char byte) const { return has_byte_[byte]; }

  [[nodiscard]] const TokenTrie& trie() const { return trie_; }

  [[nodiscard]] const Regions& regions() const { return regions_; }

 private:
  std::vector<std::string> tokens_;
  TokenTrie trie_;
  Regions regions_;
  std::bitset<256> has_byte_;  // as a token of its own
  std::vector<unsigned char> missing_;
};

}  // namespace incipit::constrain
