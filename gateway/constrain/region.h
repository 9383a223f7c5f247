// Stretches of text whose inside looks the same wherever they stand: the inside of a JSON string,
// of a string of some format, free text up to a literal. What the tokens of a vocabulary do inside
// one is worked out once per vocabulary, not once per schema.
#pragma once

#include "gateway/constrain/token_set.h"
#include "gateway/constrain/token_trie.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace incipit::constrain {

// A small automaton that starts in place 0 and is left by exactly one way, `exit`. Any thread.
class Region {
 public:
  using Place = std::uint16_t;
  static constexpr Place nowhere = 0xFFFF, exit = 0xFFFE;
  using Table = std::vector<std::array<Place, 256>>;  // by place and byte

  // What the tokens do that are possible in one place.
  struct Outcome {
    struct Group {
      Place end;  // where the tokens lead; with `exit`, those whose last byte left the region
      TokenSet tokens;
    };

    std::vector<Group> groups;
    std::vector<TokenTrie::Node> behind;  // where the region was left and some token goes on
  };

  // `trie` must outlive this.
  Region(const TokenTrie& trie, std::size_t vocabulary_size, Table table)
      : trie_(trie),
        vocabulary_size_(vocabulary_size),
        table_(std::move(table)),
        outcomes_(table_.size()) {}

  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  [[nodiscard]] const Table& table() const { return table_; }

  // Worked out at the first call, in some milliseconds for a large vocabulary.
  [[nodiscard]] std::shared_ptr<const Outcome> outcome(Place place) const;

 private:
  [[nodiscard]] Outcome work_out(Place place) const;

  const TokenTrie& trie_;
  std::size_t vocabulary_size_;
  Table table_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Outcome>> outcomes_;  // by place; guarded by mutex_
};

// The regions of one vocabulary, each made when it is first asked for. Any thread.
class Regions {
 public:
  Regions(const TokenTrie& trie, std::size_t vocabulary_size)
      : trie_(trie), vocabulary_size_(vocabulary_size) {}

  // From behind the opening quote to behind the closing one. `format` is empty or a format that
  // `is_known_format` knows.
  [[nodiscard]] std::shared_ptr<const Region> string(std::string_view format) const;
  // Any bytes up to and including the first `trigger` (not empty).
  [[nodiscard]] std::shared_ptr<const Region> free_until(const std::string& trigger) const;

 private:
  template <class Make>
  std::shared_ptr<const Region> find_or_make(const std::string& key, Make&& make_table) const;

  const TokenTrie& trie_;
  std::size_t vocabulary_size_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const Region>> regions_;
};

}  // namespace incipit::constrain
