// A shape made ready for a vocabulary: an automaton, and what tokens can follow in each state.
#pragma once

#include "gateway/constrain/dfa.h"
#include "gateway/constrain/region.h"
#include "gateway/constrain/shape.h"
#include "gateway/constrain/vocabulary.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace incipit::constrain {

// Shared by the requests that need the same shape: compiling takes milliseconds, and what tokens
// can follow is remembered, in at most about `most_remembered` bytes. Any thread.
class CompiledShape {
 public:
  using State = Dfa::State;
  static constexpr std::size_t most_remembered = std::size_t{16} << 20;

  // Throws SchemaError; ShapeError when the shape needs bytes that the vocabulary has no token for.
  CompiledShape(const Shape& shape, std::shared_ptr<const Vocabulary> vocabulary,
                const Limits& limits = {});

  [[nodiscard]] const Vocabulary& vocabulary() const { return *vocabulary_; }

  [[nodiscard]] std::size_t states() const { return dfa_->size(); }

  // The rest is for Constraint.
  [[nodiscard]] bool accepts(State state) const { return dfa_->accepts(state); }

  [[nodiscard]] bool is_end(State state) const;

  // Tokens that are enough to get from there to an end.
  [[nodiscard]] std::uint32_t tokens_to_end(State state) const { return tokens_to_end_[state]; }

  // Nothing when the bytes cannot follow there, or lead to where there is no way to an end.
  [[nodiscard]] std::optional<State> advance(State state, std::string_view bytes) const;

  // Adds to `mask` the tokens after which `most` tokens are enough to get to an end.
  void allow(State state, std::uint32_t most, std::span<std::uint64_t> mask) const;

 private:
  // A region at its place in the shape.
  struct Stretch {
    std::shared_ptr<const Region> region;
    Nfa::Node first;            // of its nodes, one per place; only while compiling
    Nfa::Node exit;             // likewise
    std::vector<State> states;  // by place; Dfa::dead where the state stands for more than this
    State behind = Dfa::dead;
  };

  struct Position {
    std::uint32_t stretch = none;
    Region::Place place = 0;
  };

  // What can follow in a state, by how many tokens are enough afterwards.
  struct Followers {
    struct Group {
      std::uint32_t to_end;
      TokenSet tokens;
    };

    std::vector<Group> groups;
    std::shared_ptr<const Region::Outcome> inside;  // of a stretch; null elsewhere
  };

  class Writer;

  static constexpr std::uint32_t none = 0xFFFFFFFF;

  void locate_stretches(Nfa::Node nodes);
  [[nodiscard]] std::shared_ptr<const Followers> followers(State state) const;
  [[nodiscard]] Followers work_out(State state) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<Dfa> dfa_;
  std::vector<std::uint32_t> tokens_to_end_;
  std::vector<Stretch> stretches_;
  std::vector<Position> positions_;  // by state

  mutable std::mutex mutex_;
  mutable std::unordered_map<State, std::shared_ptr<const Followers>> followers_;  // guarded
  mutable std::size_t remembered_ = 0;                                             // guarded
};

}  // namespace incipit::constrain
