// A set of tokens in the smaller of two forms, and masks made of such sets.
#pragma once

#include "gateway/constrain/token_trie.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace incipit::constrain {

// One bit per token, token 0 lowest in word 0.
[[nodiscard]] inline std::size_t mask_words(std::size_t tokens) {
  return (tokens + 63) / 64;
}

inline void set_bit(std::span<std::uint64_t> mask, TokenId token) {
  const auto bit = static_cast<std::size_t>(token);
  mask[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

class TokenSet {
 public:
  TokenSet() = default;

  TokenSet(std::vector<TokenId> tokens, std::size_t vocabulary_size) {
    if (tokens.size() * sizeof(TokenId) <= mask_words(vocabulary_size) * sizeof(std::uint64_t)) {
      list_ = std::move(tokens);
      list_.shrink_to_fit();
      return;
    }
    bits_.resize(mask_words(vocabulary_size));
    for (const TokenId token : tokens)
      set_bit(bits_, token);
  }

  void add_to(std::span<std::uint64_t> mask) const {
    for (const TokenId token : list_)
      set_bit(mask, token);
    for (std::size_t i = 0; i < bits_.size(); ++i)
      mask[i] |= bits_[i];
  }

  [[nodiscard]] std::size_t bytes() const {
    return list_.size() * sizeof(TokenId) + bits_.size() * sizeof(std::uint64_t);
  }

 private:
  std::vector<TokenId> list_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace incipit::constrain
