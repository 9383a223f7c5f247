#include "gateway/constrain/completion.h"

#include <algorithm>
#include <cstddef>

namespace incipit::constrain {
namespace {

struct Step {
  unsigned char byte;
  Dfa::State to;
};

// Of each state the first step of a shortest way to an end, and the states from near to far.
class ShortestWays {
 public:
  ShortestWays(const Dfa& dfa, const Vocabulary& vocabulary) : steps_(dfa.size()) {
    collect_backward(dfa, vocabulary);
    std::vector<bool> seen(dfa.size());
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      if (!dfa.accepts(state)) continue;
      seen[state] = true;
      order_.push_back(state);
    }
    for (std::size_t next = 0; next < order_.size(); ++next) {
      const Dfa::State to = order_[next];
      for (std::size_t i = first_[to]; i < first_[to + 1]; ++i) {
        const auto [from, byte] = backward_[i];
        if (seen[from]) continue;
        seen[from] = true;
        steps_[from] = {byte, to};
        order_.push_back(from);
      }
    }
  }

  [[nodiscard]] const std::vector<Dfa::State>& order() const { return order_; }

  [[nodiscard]] const Step& step(Dfa::State state) const { return steps_[state]; }

 private:
  struct Backward {
    Dfa::State from;
    unsigned char byte;
  };

  void collect_backward(const Dfa& dfa, const Vocabulary& vocabulary) {
    struct Way {
      Dfa::State to;
      Backward back;
    };

    std::vector<Way> ways;
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      for (const Dfa::Edge& edge : dfa.edges(state)) {
        for (unsigned byte = edge.low; byte <= edge.high; ++byte) {
          const auto value = static_cast<unsigned char>(byte);
          if (!vocabulary.has_byte(value)) continue;
          ways.push_back({edge.to, {state, value}});
          break;
        }
      }
    }
    first_.assign(dfa.size() + 1, 0);
    for (const Way& way : ways)
      ++first_[way.to + 1];
    for (std::size_t i = 1; i < first_.size(); ++i)
      first_[i] += first_[i - 1];
    backward_.resize(ways.size());
    std::vector<std::size_t> next = first_;
    for (const Way& way : ways)
      backward_[next[way.to]++] = way.back;
  }

  std::vector<Backward> backward_;  // by where they lead to
  std::vector<std::size_t> first_;  // in backward_, by state; the next one's is the end
  std::vector<Step> steps_;
  std::vector<Dfa::State> order_;
};

}  // namespace

std::vector<std::uint32_t> tokens_to_end(const Dfa& dfa, const Vocabulary& vocabulary) {
  const ShortestWays ways(dfa, vocabulary);
  const TokenTrie& trie = vocabulary.trie();
  std::vector<std::uint32_t> tokens(dfa.size(), never);
  for (const Dfa::State from : ways.order()) {
    if (dfa.accepts(from)) {
      tokens[from] = 0;
      continue;
    }
    Dfa::State state = from;
    TokenTrie::Node node = TokenTrie::root();
    do {
      node = trie.child(node, ways.step(state).byte);
      if (node == TokenTrie::stop) break;
      state = ways.step(state).to;
      if (!trie.tokens_at(node).empty()) tokens[from] = std::min(tokens[from], tokens[state] + 1);
    } while (!dfa.accepts(state));
  }
  return tokens;
}

}  // namespace incipit::constrain
