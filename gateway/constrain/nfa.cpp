#include "gateway/constrain/nfa.h"

namespace incipit::constrain {

Nfa::Node Nfa::add() {
  if (nodes_.size() >= most_nodes_) throw TooManyStates{};
  nodes_.emplace_back();
  return static_cast<Node>(nodes_.size() - 1);
}

void Nfa::edge(Node from, unsigned char low, unsigned char high, Node to) {
  edges_.push_back({low, high, to, nodes_[from].first_edge});
  nodes_[from].first_edge = static_cast<std::uint32_t>(edges_.size() - 1);
}

void Nfa::skip(Node from, Node to) {
  skips_.push_back({to, nodes_[from].first_skip});
  nodes_[from].first_skip = static_cast<std::uint32_t>(skips_.size() - 1);
}

Nfa::Node Nfa::literal(Node from, std::string_view text) {
  for (const char c : text) {
    const Node next = add();
    const auto byte = static_cast<unsigned char>(c);
    edge(from, byte, byte, next);
    from = next;
  }
  return from;
}

}  // namespace incipit::constrain
