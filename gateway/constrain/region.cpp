#include "gateway/constrain/region.h"

#include "gateway/constrain/dfa.h"
#include "gateway/constrain/formats.h"
#include "gateway/constrain/pattern.h"

#include <algorithm>
#include <map>
#include <utility>

namespace incipit::constrain {
namespace {

constexpr std::size_t most_pattern_nodes = 20'000;
constexpr std::size_t most_kept_regions = 64;

using Row = std::array<Region::Place, 256>;

Row empty_row() {
  Row row;
  row.fill(Region::nowhere);
  return row;
}

// Of an automaton whose accepting states have no way on.
Region::Table table_of(const Dfa& dfa) {
  Region::Table table;
  for (Dfa::State state = 0; state < dfa.size(); ++state) {
    Row row = empty_row();
    for (const Dfa::Edge& edge : dfa.edges(state)) {
      const auto place = dfa.accepts(edge.to) ? Region::exit : static_cast<Region::Place>(edge.to);
      std::fill(row.begin() + edge.low, row.begin() + edge.high + 1, place);
    }
    table.push_back(row);
  }
  return table;
}

// The same with one place for all that nothing tells apart (Moore): at first none are, then each
// round those whose rows differ in the classes they lead to.
Region::Table merge_alike(const Region::Table& table) {
  std::vector<Region::Place> class_of(table.size(), 0);
  for (std::size_t known = 0;;) {
    std::map<Row, Region::Place> classes;
    Region::Table merged;
    std::vector<Region::Place> next;
    for (const Row& row : table) {
      Row key = row;
      for (Region::Place& to : key) {
        if (to < table.size()) to = class_of[to];
      }
      const auto [found, is_new] =
          classes.try_emplace(key, static_cast<Region::Place>(merged.size()));
      if (is_new) merged.push_back(key);
      next.push_back(found->second);
    }
    if (merged.size() == known) return merged;
    known = merged.size();
    class_of = std::move(next);
  }
}

// By place: how many bytes at least lead to the exit.
std::vector<std::size_t> bytes_to_exit(const Region::Table& table) {
  std::vector<std::size_t> bytes(table.size(), table.size() + 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t place = 0; place < table.size(); ++place) {
      for (const Region::Place to : table[place]) {
        if (to == Region::nowhere) continue;
        const std::size_t through = to == Region::exit ? 1 : bytes[to] + 1;
        if (through >= bytes[place]) continue;
        bytes[place] = through;
        changed = true;
      }
    }
  }
  return bytes;
}

// The same with at most `most` bytes before the last one. Its places are those of `table` with the
// bytes so far, as far as the exit is still in reach.
Region::Table with_limit(const Region::Table& table, std::size_t most) {
  using Pair = std::pair<Region::Place, std::size_t>;
  const std::vector<std::size_t> to_exit = bytes_to_exit(table);
  std::map<Pair, Region::Place> places = {{{0, 0}, 0}};
  std::vector<Pair> pairs = {{0, 0}};
  Region::Table limited;
  while (limited.size() < pairs.size()) {
    const auto [place, length] = pairs[limited.size()];
    Row row = table[place];
    for (Region::Place& to : row) {
      if (to == Region::nowhere || to == Region::exit) continue;
      if (length + to_exit[to] > most) {
        to = Region::nowhere;
        continue;
      }
      const Pair pair = {to, length + 1};
      const auto [found, is_new] =
          places.try_emplace(pair, static_cast<Region::Place>(pairs.size()));
      if (is_new) pairs.push_back(pair);
      to = found->second;
    }
    limited.push_back(row);
  }
  return limited;
}

Region::Table string_table(const StringFormat& format) {
  Nfa nfa(most_pattern_nodes);
  const Nfa::Node start = nfa.add();
  const Nfa::Node end = nfa.literal(add_pattern(nfa, start, format.pattern), "\"");
  const Region::Table table = merge_alike(table_of(Dfa(nfa, start, end, most_pattern_nodes)));
  return format.most_bytes == 0 ? table : with_limit(table, format.most_bytes);
}

// Place k: the last k bytes are the longest that `trigger` begins with (Knuth, Morris and Pratt).
Region::Table trigger_table(std::string_view trigger) {
  Region::Table table(trigger.size());
  std::size_t border = 0;  // the place that the text without its first byte leads to
  for (std::size_t k = 0; k < trigger.size(); ++k) {
    if (k == 0) {
      table[k].fill(0);
    } else {
      table[k] = table[border];
    }
    const auto byte = static_cast<unsigned char>(trigger[k]);
    const bool is_last = k + 1 == trigger.size();
    if (k > 0) border = table[border][byte];
    table[k][byte] = is_last ? Region::exit : static_cast<Region::Place>(k + 1);
  }
  return table;
}

}  // namespace

std::shared_ptr<const Region::Outcome> Region::outcome(Place place) const {
  {
    const std::lock_guard lock(mutex_);
    if (outcomes_[place]) return outcomes_[place];
  }
  // Outside the lock: two threads may do the same work, but nobody waits for it.
  auto made = std::make_shared<const Outcome>(work_out(place));
  const std::lock_guard lock(mutex_);
  if (!outcomes_[place]) outcomes_[place] = std::move(made);
  return outcomes_[place];
}

Region::Outcome Region::work_out(Place place) const {
  Outcome outcome;
  std::vector<std::vector<TokenId>> tokens(table_.size() + 1);  // by end, `exit` last
  const auto step = [&](std::uint32_t from, unsigned char byte) -> std::uint32_t {
    if (from == exit) return TokenTrie::stop;
    const Place to = table_[from][byte];
    return to == nowhere ? TokenTrie::stop : to;
  };
  const auto visit = [&](TokenTrie::Node node, std::uint32_t end) {
    auto& group = tokens[end == exit ? table_.size() : end];
    const auto here = trie_.tokens_at(node);
    group.insert(group.end(), here.begin(), here.end());
    if (end == exit && trie_.has_children(node)) outcome.behind.push_back(node);
  };
  trie_.visit_below(TokenTrie::root(), place, step, visit);
  for (std::size_t end = 0; end < tokens.size(); ++end) {
    if (tokens[end].empty()) continue;
    outcome.groups.push_back({end == table_.size() ? exit : static_cast<Place>(end),
                              TokenSet(std::move(tokens[end]), vocabulary_size_)});
  }
  return outcome;
}

template <class Make>
std::shared_ptr<const Region> Regions::find_or_make(const std::string& key,
                                                    Make&& make_table) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = regions_.find(key); found != regions_.end()) return found->second;
  auto made = std::make_shared<const Region>(trie_, vocabulary_size_, make_table());
  // Triggers come from outside: past some number of them each shape has its own.
  if (regions_.size() < most_kept_regions) regions_.emplace(key, made);
  return made;
}

std::shared_ptr<const Region> Regions::string(std::string_view format) const {
  return find_or_make("string " + std::string(format),
                      [&] { return string_table(string_format(format)); });
}

std::shared_ptr<const Region> Regions::free_until(const std::string& trigger) const {
  return find_or_make("until " + trigger, [&] { return trigger_table(trigger); });
}

}  // namespace incipit::constrain
