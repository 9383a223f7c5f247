#include "gateway/constrain/token_trie.h"

#include <algorithm>
#include <stdexcept>

namespace incipit::constrain {

TokenTrie::TokenTrie(std::span<const std::string> tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].empty()) ids_.push_back(static_cast<TokenId>(i));
    max_depth_ = std::max(max_depth_, tokens[i].size());
  }
  if (max_depth_ > 0xFFFF) throw std::invalid_argument("a token of more than 65535 bytes");
  const auto bytes = [&](TokenId id) -> std::string_view {
    return tokens[static_cast<std::size_t>(id)];
  };
  std::ranges::sort(ids_, [&](TokenId a, TokenId b) {
    return bytes(a) != bytes(b) ? bytes(a) < bytes(b) : a < b;
  });

  nodes_.push_back({.end = 0, .first_token = 0, .depth = 0, .byte = 0});
  std::vector<Node> open = {root()};  // from the root to the last node
  std::string_view last;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const std::string_view text = bytes(ids_[i]);
    const auto shared =
        static_cast<std::size_t>(std::ranges::mismatch(last, text).in1 - last.begin());
    for (; open.size() > shared + 1; open.pop_back()) {
      nodes_[open.back()].end = static_cast<Node>(nodes_.size());
    }
    for (std::size_t depth = shared; depth < text.size(); ++depth) {
      open.push_back(static_cast<Node>(nodes_.size()));
      // Up to the last byte of the token the new nodes have none of their own, so all start at i.
      nodes_.push_back({.end = 0,
                        .first_token = static_cast<std::uint32_t>(i),
                        .depth = static_cast<std::uint16_t>(depth + 1),
                        .byte = static_cast<unsigned char>(text[depth])});
    }
    last = text;
  }
  for (const Node node : open)
    nodes_[node].end = static_cast<Node>(nodes_.size());

  first_level_.fill(stop);
  for (Node node = 1; node < nodes_.size(); node = nodes_[node].end) {
    first_level_[nodes_[node].byte] = node;
  }
}

TokenTrie::Node TokenTrie::child(Node node, unsigned char byte) const {
  if (node == root()) return first_level_[byte];
  for (Node child = node + 1; child < nodes_[node].end; child = nodes_[child].end) {
    if (nodes_[child].byte == byte) return child;
  }
  return stop;
}

}  // namespace incipit::constrain
