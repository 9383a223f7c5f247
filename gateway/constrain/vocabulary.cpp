#include "gateway/constrain/vocabulary.h"

#include <utility>

namespace incipit::constrain {

Vocabulary::Vocabulary(std::vector<std::string> tokens)
    : tokens_(std::move(tokens)), trie_(tokens_), regions_(trie_, tokens_.size()) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    const TokenTrie::Node node = trie_.child(TokenTrie::root(), value);
    has_byte_[byte] = node != TokenTrie::stop && !trie_.tokens_at(node).empty();
    if (!has_byte_[byte]) missing_.push_back(value);
  }
}

std::string_view Vocabulary::bytes(TokenId token) const {
  const auto index = static_cast<std::size_t>(token);
  return token >= 0 && index < tokens_.size() ? std::string_view(tokens_[index])
                                              : std::string_view();
}

}  // namespace incipit::constrain
