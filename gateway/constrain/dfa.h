// The deterministic form of an Nfa: what masks are computed on.
#pragma once

#include "gateway/constrain/nfa.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace incipit::constrain {

class Dfa {
 public:
  using State = std::uint32_t;
  static constexpr State dead = 0xFFFFFFFF;

  struct Edge {
    unsigned char low, high;  // inclusive; the edges of a state are disjoint and ascending
    State to;
  };

  // Throws TooManyStates, also when the sets of nodes that the states stand for get too large in
  // sum, which bounds time and memory.
  Dfa(const Nfa& nfa, Nfa::Node start, Nfa::Node accept, std::size_t most_states);

  [[nodiscard]] std::size_t size() const { return states_.size() - 1; }

  [[nodiscard]] static constexpr State start() { return 0; }

  [[nodiscard]] bool accepts(State state) const { return states_[state].accepts; }

  [[nodiscard]] std::span<const Edge> edges(State state) const {
    return {edges_.data() + states_[state].first_edge,
            edges_.data() + states_[state + 1].first_edge};
  }

  [[nodiscard]] State step(State state, unsigned char byte) const {
    for (const Edge& edge : edges(state)) {
      if (byte <= edge.high) return byte >= edge.low ? edge.to : dead;
    }
    return dead;
  }

  // The node, if there is one, that alone leads to exactly this state (the accepting node, where it
  // can be reached from there without a byte, aside); otherwise Nfa::none. No two states share one.
  [[nodiscard]] Nfa::Node only_node(State state) const { return states_[state].only_node; }

 private:
  friend class SubsetConstruction;

  struct Entry {
    std::uint32_t first_edge = 0;  // the next entry's is the end
    Nfa::Node only_node = Nfa::none;
    bool accepts = false;
  };

  std::vector<Entry> states_;  // and one more, for the end of the edges
  std::vector<Edge> edges_;
};

}  // namespace incipit::constrain
