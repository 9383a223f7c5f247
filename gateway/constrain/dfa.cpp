#include "gateway/constrain/dfa.h"

#include <algorithm>
#include <unordered_map>

namespace incipit::constrain {

class SubsetConstruction {
 public:
  SubsetConstruction(const Nfa& nfa, Nfa::Node accept, std::size_t most_states, Dfa& dfa)
      : nfa_(nfa),
        accept_(accept),
        most_states_(most_states),
        most_members_(most_states * members_per_state),
        dfa_(dfa),
        seen_(nfa.size(), 0),
        state_of_node_(nfa.size(), Dfa::dead) {}

  void run(Nfa::Node start) {
    find_or_add({start});
    for (Dfa::State state = 0; state < dfa_.states_.size(); ++state) {
      dfa_.states_[state].first_edge = static_cast<std::uint32_t>(dfa_.edges_.size());
      add_edges(state);
    }
    // A state that also stands for another way to the end is not the one that its node leads to.
    for (Dfa::State state = 0; state < dfa_.states_.size(); ++state) {
      Nfa::Node& node = dfa_.states_[state].only_node;
      if (node != Nfa::none && state_of_node_[node] != state) node = Nfa::none;
    }
    dfa_.states_.push_back({.first_edge = static_cast<std::uint32_t>(dfa_.edges_.size())});
  }

 private:
  using Set = std::vector<Nfa::Node>;  // ascending

  static constexpr std::size_t members_per_state = 24;

  struct Hash {
    std::size_t operator()(const Set& set) const {
      std::uint64_t hash = 0xCBF29CE484222325;
      for (const Nfa::Node node : set)
        hash = (hash ^ node) * 0x100000001B3;
      return static_cast<std::size_t>(hash ^ (hash >> 32));
    }
  };

  // What can be reached from `nodes` without a byte; only nodes that do something are kept.
  Set closure(const Set& nodes) {
    ++round_;
    Set found;
    pending_ = nodes;
    while (!pending_.empty()) {
      const Nfa::Node node = pending_.back();
      pending_.pop_back();
      if (seen_[node] == round_) continue;
      seen_[node] = round_;
      if (node == accept_ || nfa_.first_edge(node) != Nfa::none) found.push_back(node);
      for (auto i = nfa_.first_skip(node); i != Nfa::none; i = nfa_.skip_at(i).next) {
        pending_.push_back(nfa_.skip_at(i).to);
      }
      count_member();
    }
    std::ranges::sort(found);
    return found;
  }

  void count_member() {
    if (++members_ > most_members_) throw TooManyStates{};
  }

  Dfa::State find_or_add(const Set& targets) {
    // Most sets are of one node from which most ways go by: no need to build the set again.
    if (targets.size() == 1 && state_of_node_[targets[0]] != Dfa::dead) {
      return state_of_node_[targets[0]];
    }
    Set set = closure(targets);
    const auto next = static_cast<Dfa::State>(dfa_.states_.size());
    const auto [place, is_new] = ids_.try_emplace(std::move(set), next);
    if (is_new) {
      if (dfa_.states_.size() >= most_states_) throw TooManyStates{};
      sets_.push_back(&place->first);
      dfa_.states_.push_back(entry_of(place->first));
    }
    if (targets.size() == 1) state_of_node_[targets[0]] = place->second;
    return place->second;
  }

  [[nodiscard]] Dfa::Entry entry_of(const Set& set) const {
    Dfa::Entry entry;
    std::size_t others = 0;
    for (const Nfa::Node node : set) {
      if (node == accept_) {
        entry.accepts = true;
      } else if (++others == 1) {
        entry.only_node = node;
      }
    }
    if (others != 1) entry.only_node = Nfa::none;
    return entry;
  }

  void add_edges(Dfa::State state) {
    leaving_.clear();
    for (const Nfa::Node node : *sets_[state]) {
      for (auto i = nfa_.first_edge(node); i != Nfa::none; i = nfa_.edge_at(i).next) {
        leaving_.push_back(nfa_.edge_at(i));
      }
    }
    std::ranges::sort(leaving_, {}, &Nfa::Edge::low);
    covering_.clear();
    std::size_t entered = 0;  // edges from here on start behind the stretch
    for (unsigned low = 0;;) {
      std::erase_if(covering_, [&](const Nfa::Edge& edge) { return edge.high < low; });
      if (covering_.empty()) {
        if (entered == leaving_.size()) return;
        low = leaving_[entered].low;
      }
      for (; entered < leaving_.size() && leaving_[entered].low == low; ++entered) {
        covering_.push_back(leaving_[entered]);
      }
      unsigned high = entered < leaving_.size() ? leaving_[entered].low - 1U : 255U;
      targets_.clear();
      for (const Nfa::Edge& edge : covering_) {
        high = std::min<unsigned>(high, edge.high);
        targets_.push_back(edge.to);
      }
      std::ranges::sort(targets_);
      targets_.erase(std::unique(targets_.begin(), targets_.end()), targets_.end());
      add_edge(state, low, high, find_or_add(targets_));
      low = high + 1;
    }
  }

  void add_edge(Dfa::State state, unsigned low, unsigned high, Dfa::State to) {
    if (dfa_.edges_.size() > dfa_.states_[state].first_edge) {
      Dfa::Edge& last = dfa_.edges_.back();
      if (last.to == to && last.high + 1U == low) {
        last.high = static_cast<unsigned char>(high);
        return;
      }
    }
    dfa_.edges_.push_back({static_cast<unsigned char>(low), static_cast<unsigned char>(high), to});
  }

  const Nfa& nfa_;
  Nfa::Node accept_;
  std::size_t most_states_, most_members_;
  std::size_t members_ = 0;  // of all sets together, with what led to them
  Dfa& dfa_;
  std::unordered_map<Set, Dfa::State, Hash> ids_;
  std::vector<const Set*> sets_;  // by state; keys of ids_
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
  std::vector<Dfa::State> state_of_node_;  // of the closure of a single node, once known
  Set pending_;
  Set targets_;
  std::vector<Nfa::Edge> leaving_, covering_;  // edges of a state; those that hold at a byte
};

Dfa::Dfa(const Nfa& nfa, Nfa::Node start, Nfa::Node accept, std::size_t most_states) {
  SubsetConstruction(nfa, accept, most_states, *this).run(start);
}

}  // namespace incipit::constrain
