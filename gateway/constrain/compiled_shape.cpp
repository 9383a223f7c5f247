#include "gateway/constrain/compiled_shape.h"

#include "gateway/constrain/completion.h"
#include "gateway/constrain/schema_writer.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

namespace incipit::constrain {

// Writes a shape as an automaton, with the regions in it as stretches.
class CompiledShape::Writer {
 public:
  Writer(Nfa& nfa, const Regions& regions, std::vector<Stretch>& stretches, const Limits& limits)
      : nfa_(nfa), regions_(regions), stretches_(stretches), limits_(limits) {}

  Nfa::Node write(Nfa::Node from, const Shape& shape) {
    const Shape::Parts& parts = shape.parts();
    switch (parts.kind) {
      case Shape::Kind::literal:
        return nfa_.literal(from, parts.text);
      case Shape::Kind::schema:
        return write_schema(from, parts);
      case Shape::Kind::sequence:
        for (const Shape& part : parts.shapes)
          from = write(from, part);
        return from;
      case Shape::Kind::any_of: {
        const Nfa::Node end = nfa_.add();
        for (const Shape& part : parts.shapes)
          nfa_.skip(write(fresh(from), part), end);
        return end;
      }
      case Shape::Kind::repeated:
        return write_repeated(from, parts);
      case Shape::Kind::free_until:
        return write_free(from, parts);
    }
    return from;
  }

 private:
  // A node without other ways to go on.
  Nfa::Node fresh(Nfa::Node from) {
    const Nfa::Node node = nfa_.add();
    nfa_.skip(from, node);
    return node;
  }

  Nfa::Node write_schema(Nfa::Node from, const Shape::Parts& parts) {
    const PutRegion put = [&](Nfa::Node node, std::shared_ptr<const Region> region) {
      return put_region(node, std::move(region));
    };
    SchemaWriter writer(nfa_, regions_, put, parts, limits_);
    try {
      from = writer.write(fresh(from));
    } catch (const TooManyStates&) {
      throw SchemaError("", parts.text,
                        "The schema is too large: it needs more than "
                            + std::to_string(limits_.states) + " states.");
    }
    // A shape that may be repeated is written more than once, and is one schema all the same.
    if (parts.dialect == Dialect::lenient || !counted_.insert(&parts).second) return from;
    optionals_ += writer.optional_properties();
    unions_ += writer.union_types();
    check(parts, optionals_, limits_.optional_properties, "required", "optional parameters");
    check(parts, unions_, limits_.union_types, "anyOf", "parameters with union types");
    return from;
  }

  static void check(const Shape::Parts& parts, int count, int most, const char* keyword,
                    const char* what) {
    if (count <= most) return;
    throw SchemaError(keyword, parts.text,
                      "Strict schemas have " + std::to_string(count) + " " + what + " in all; "
                          + std::to_string(most) + " are possible.");
  }

  // Each time but the ones without end is a copy.
  Nfa::Node write_repeated(Nfa::Node from, const Shape::Parts& parts) {
    const Shape& item = parts.shapes[0];
    const Nfa::Node end = nfa_.add();
    if (parts.min == 0) nfa_.skip(from, end);
    const int copies = parts.max.value_or(std::max(parts.min, 1));
    for (int i = 0; i < copies; ++i) {
      const Nfa::Node start = fresh(i == 0 ? from : nfa_.literal(from, parts.text));
      from = write(start, item);
      if (i + 1 >= parts.min) nfa_.skip(from, end);
      if (i + 1 == copies && !parts.max) nfa_.skip(nfa_.literal(from, parts.text), start);
    }
    return end;
  }

  Nfa::Node write_free(Nfa::Node from, const Shape::Parts& parts) {
    const std::shared_ptr<const Region> region = regions_.free_until(parts.text);
    const Nfa::Node end = nfa_.add();
    const int copies = parts.max.value_or(parts.min + 1);
    for (int i = 0; i < copies; ++i) {
      const Nfa::Node exit = put_region(from, region);
      const Stretch& free = stretches_.back();
      if (i >= parts.min) {
        for (std::size_t place = 0; place < region->table().size(); ++place) {
          nfa_.skip(free.first + static_cast<Nfa::Node>(place), end);
        }
      }
      const Nfa::Node first = free.first;
      from = write(exit, parts.shapes[0]);
      if (i + 1 == copies) nfa_.skip(from, parts.max ? end : first);
    }
    return end;
  }

  Nfa::Node put_region(Nfa::Node from, std::shared_ptr<const Region> region) {
    const Region::Table& table = region->table();
    Stretch stretch;
    stretch.first = static_cast<Nfa::Node>(nfa_.size());
    for (std::size_t place = 0; place < table.size(); ++place)
      (void)nfa_.add();
    stretch.exit = nfa_.add();
    for (std::size_t place = 0; place < table.size(); ++place) {
      const auto node = stretch.first + static_cast<Nfa::Node>(place);
      for (unsigned low = 0; low < 256;) {
        const Region::Place to = table[place][low];
        unsigned high = low;
        while (high < 255 && table[place][high + 1] == to)
          ++high;
        if (to != Region::nowhere) {
          nfa_.edge(node, static_cast<unsigned char>(low), static_cast<unsigned char>(high),
                    to == Region::exit ? stretch.exit : stretch.first + to);
        }
        low = high + 1;
      }
    }
    nfa_.skip(from, stretch.first);
    stretch.region = std::move(region);
    stretches_.push_back(std::move(stretch));
    return stretches_.back().exit;
  }

  Nfa& nfa_;
  const Regions& regions_;
  std::vector<Stretch>& stretches_;
  const Limits& limits_;
  int optionals_ = 0, unions_ = 0;
  std::unordered_set<const Shape::Parts*> counted_;
};

CompiledShape::CompiledShape(const Shape& shape, std::shared_ptr<const Vocabulary> vocabulary,
                             const Limits& limits)
    : vocabulary_(std::move(vocabulary)) {
  Nfa nfa(limits.states);
  try {
    const Nfa::Node start = nfa.add();
    Writer writer(nfa, vocabulary_->regions(), stretches_, limits);
    const Nfa::Node end = writer.write(start, shape);
    dfa_.emplace(nfa, start, end, limits.states);
  } catch (const TooManyStates&) {
    throw SchemaError("", "",
                      "The schemas together are too large: they need more than "
                          + std::to_string(limits.states) + " states.");
  }
  locate_stretches(static_cast<Nfa::Node>(nfa.size()));
  tokens_to_end_ = constrain::tokens_to_end(*dfa_, *vocabulary_);
  if (tokens_to_end_[Dfa::start()] == never) {
    std::string bytes;
    for (const unsigned char byte : vocabulary_->missing_bytes()) {
      bytes += (bytes.empty() ? "" : ", ") + std::to_string(byte);
    }
    throw ShapeError("The model cannot write this shape: it has no tokens for the single bytes "
                     + bytes + ".");
  }
}

void CompiledShape::locate_stretches(Nfa::Node nodes) {
  std::vector<std::uint32_t> stretch_of_node(nodes, none);
  for (std::uint32_t i = 0; i < stretches_.size(); ++i) {
    Stretch& stretch = stretches_[i];
    stretch.states.assign(stretch.region->table().size(), Dfa::dead);
    for (std::size_t place = 0; place < stretch.states.size(); ++place) {
      stretch_of_node[stretch.first + place] = i;
    }
  }
  positions_.resize(dfa_->size());
  for (State state = 0; state < dfa_->size(); ++state) {
    const Nfa::Node node = dfa_->only_node(state);
    if (node == Nfa::none || stretch_of_node[node] == none) continue;
    Stretch& stretch = stretches_[stretch_of_node[node]];
    const auto place = static_cast<Region::Place>(node - stretch.first);
    positions_[state] = {stretch_of_node[node], place};
    stretch.states[place] = state;
    for (unsigned byte = 0; byte < 256 && stretch.behind == Dfa::dead; ++byte) {
      if (stretch.region->table()[place][byte] == Region::exit) {
        stretch.behind = dfa_->step(state, static_cast<unsigned char>(byte));
      }
    }
  }
}

bool CompiledShape::is_end(State state) const {
  if (!accepts(state)) return false;
  for (const Dfa::Edge& edge : dfa_->edges(state)) {
    if (tokens_to_end_[edge.to] != never) return false;
  }
  return true;
}

std::optional<Dfa::State> CompiledShape::advance(State state, std::string_view bytes) const {
  for (const char c : bytes) {
    state = dfa_->step(state, static_cast<unsigned char>(c));
    if (state == Dfa::dead) return std::nullopt;
  }
  if (tokens_to_end_[state] == never) return std::nullopt;
  return state;
}

void CompiledShape::allow(State state, std::uint32_t most, std::span<std::uint64_t> mask) const {
  const std::shared_ptr<const Followers> known = followers(state);
  for (const Followers::Group& group : known->groups) {
    if (group.to_end <= most) group.tokens.add_to(mask);
  }
  if (!known->inside) return;
  const Stretch& stretch = stretches_[positions_[state].stretch];
  for (const Region::Outcome::Group& group : known->inside->groups) {
    const State to = group.end == Region::exit ? stretch.behind : stretch.states[group.end];
    if (tokens_to_end_[to] <= most) group.tokens.add_to(mask);
  }
}

std::shared_ptr<const CompiledShape::Followers> CompiledShape::followers(State state) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = followers_.find(state); found != followers_.end()) return found->second;
  }
  // Outside the lock: two threads may do the same work, but nobody waits for it.
  auto made = std::make_shared<const Followers>(work_out(state));
  std::size_t bytes = 200;
  for (const Followers::Group& group : made->groups)
    bytes += group.tokens.bytes() + sizeof group;
  const std::lock_guard lock(mutex_);
  if (remembered_ + bytes > most_remembered) {
    followers_.clear();
    remembered_ = 0;
  }
  if (followers_.emplace(state, made).second) remembered_ += bytes;
  return made;
}

CompiledShape::Followers CompiledShape::work_out(State state) const {
  Followers result;
  const TokenTrie& trie = vocabulary_->trie();
  std::map<std::uint32_t, std::vector<TokenId>> tokens;  // by what is enough afterwards
  const auto step = [&](std::uint32_t from, unsigned char byte) { return dfa_->step(from, byte); };
  const auto visit = [&](TokenTrie::Node node, std::uint32_t to) {
    const auto here = trie.tokens_at(node);
    if (here.empty() || tokens_to_end_[to] == never) return;
    auto& group = tokens[tokens_to_end_[to]];
    group.insert(group.end(), here.begin(), here.end());
  };
  static_assert(Dfa::dead == TokenTrie::stop);
  if (const Position at = positions_[state]; at.stretch == none) {
    trie.visit_below(TokenTrie::root(), state, step, visit);
  } else {
    const Stretch& stretch = stretches_[at.stretch];
    result.inside = stretch.region->outcome(at.place);
    for (const TokenTrie::Node node : result.inside->behind) {
      trie.visit_below(node, stretch.behind, step, visit);
    }
  }
  for (auto& [to_end, group] : tokens) {
    result.groups.push_back({to_end, TokenSet(std::move(group), vocabulary_->size())});
  }
  return result;
}

}  // namespace incipit::constrain
