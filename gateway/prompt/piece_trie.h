// Finding the longest of a few hundred fixed strings at a place in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace incipit::gateway {

class PieceTrie {
 public:
  struct Match {
    std::size_t length = 0;  // 0 = none
    std::int32_t id = -1;
  };

  void add(std::string_view piece, std::int32_t id) {
    if (piece.empty()) return;
    if (nodes_.empty()) nodes_.emplace_back();
    std::size_t node = 0;
    for (const char c : piece) {
      const auto byte = static_cast<unsigned char>(c);
      if (nodes_[node].next[byte] == 0) {
        nodes_[node].next[byte] = static_cast<std::uint32_t>(nodes_.size());
        nodes_.emplace_back();
      }
      node = nodes_[node].next[byte];
    }
    nodes_[node].id = id;
  }

  [[nodiscard]] bool empty() const { return nodes_.empty(); }

  [[nodiscard]] Match longest_at(std::string_view text, std::size_t at) const {
    Match best;
    std::size_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      node = nodes_[node].next[static_cast<unsigned char>(text[i])];
      if (node == 0) break;
      if (nodes_[node].id >= 0) best = {i + 1 - at, nodes_[node].id};
    }
    return best;
  }

 private:
  struct Node {
    std::array<std::uint32_t, 256> next{};  // 0 = none: nothing leads back to the root
    std::int32_t id = -1;
  };

  std::vector<Node> nodes_;
};

}  // namespace incipit::gateway
