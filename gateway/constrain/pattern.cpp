#include "gateway/constrain/pattern.h"

#include <bitset>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>

namespace incipit::constrain {
namespace {

using Node = Nfa::Node;

class PatternWriter {
 public:
  PatternWriter(Nfa& nfa, std::string_view pattern) : nfa_(nfa), pattern_(pattern) {}

  Node write(Node from) {
    const Node end = alternatives(from);
    if (at_ != pattern_.size()) fail();
    return end;
  }

 private:
  struct Times {
    int min = 1;
    std::optional<int> max = 1;
  };

  [[noreturn]] void fail() const {
    throw std::logic_error("pattern " + std::string(pattern_) + ": wrong at "
                           + std::to_string(at_));
  }

  [[nodiscard]] bool is_at(char c) const { return at_ < pattern_.size() && pattern_[at_] == c; }

  bool take(char c) {
    if (!is_at(c)) return false;
    ++at_;
    return true;
  }

  char next() {
    if (at_ == pattern_.size()) fail();
    return pattern_[at_++];
  }

  Node alternatives(Node from) {
    Node end = sequence(from);
    if (!is_at('|')) return end;
    const Node join = nfa_.add();
    nfa_.skip(end, join);
    while (take('|'))
      nfa_.skip(sequence(from), join);
    return join;
  }

  Node sequence(Node from) {
    while (at_ < pattern_.size() && !is_at('|') && !is_at(')'))
      from = repeated(from);
    return from;
  }

  // An atom is written once for each time it may come, by reading it again.
  Node repeated(Node from) {
    const std::size_t atom_at = at_;
    pass_atom();
    const Times times = read_times();
    const std::size_t end_at = at_;
    const auto once = [&](Node node) {
      at_ = atom_at;
      return atom(node);
    };
    for (int i = 0; i < times.min; ++i)
      from = once(from);
    if (times.max == times.min) {
      at_ = end_at;
      return from;
    }
    const Node end = nfa_.add();
    if (!times.max) {
      const Node loop = nfa_.add();
      nfa_.skip(from, loop);
      nfa_.skip(once(loop), loop);
      nfa_.skip(loop, end);
    } else {
      nfa_.skip(from, end);
      for (int i = times.min; i < *times.max; ++i) {
        // A node between, lest a loop inside the atom lead back into the one before.
        const Node start = nfa_.add();
        nfa_.skip(from, start);
        from = once(start);
        nfa_.skip(from, end);
      }
    }
    at_ = end_at;
    return end;
  }

  Times read_times() {
    if (take('?')) return {0, 1};
    if (take('*')) return {0, std::nullopt};
    if (take('+')) return {1, std::nullopt};
    if (!take('{')) return {};
    Times times;
    times.min = read_number();
    times.max = take(',') ? read_number() : times.min;
    if (!take('}')) fail();
    return times;
  }

  int read_number() {
    int number = 0;
    const auto [end, error] =
        std::from_chars(pattern_.data() + at_, pattern_.data() + pattern_.size(), number);
    if (error != std::errc{}) fail();
    at_ = static_cast<std::size_t>(end - pattern_.data());
    return number;
  }

  void pass_atom() {
    if (!is_at('(')) {
      (void)bytes();
      return;
    }
    int open = 0;
    do {
      if (is_at('(') || is_at(')')) {
        open += next() == '(' ? 1 : -1;
      } else if (is_at('[') || is_at('\\')) {
        (void)bytes();
      } else {
        next();
      }
    } while (open > 0);
  }

  Node atom(Node from) {
    if (take('(')) {
      // A start of its own: the alternatives must not see what else leaves `from`.
      const Node start = nfa_.add();
      nfa_.skip(from, start);
      const Node end = alternatives(start);
      if (!take(')')) fail();
      return end;
    }
    const std::bitset<256> set = bytes();
    const Node end = nfa_.add();
    for (unsigned low = 0; low < 256; ++low) {
      if (!set.test(low)) continue;
      unsigned high = low;
      while (high < 255 && set.test(high + 1))
        ++high;
      nfa_.edge(from, static_cast<unsigned char>(low), static_cast<unsigned char>(high), end);
      low = high;
    }
    return end;
  }

  std::bitset<256> bytes() {
    std::bitset<256> set;
    if (!take('[')) {
      add_byte(set);
      return set;
    }
    while (!take(']')) {
      const std::optional<unsigned> low = add_byte(set);
      if (low && is_at('-') && pattern_[at_ + 1] != ']') {
        next();
        const std::optional<unsigned> high = add_byte(set);
        if (!high || *high < *low) fail();
        for (unsigned byte = *low; byte <= *high; ++byte)
          set.set(byte);
      }
    }
    return set;
  }

  // The byte, or nothing for a class.
  std::optional<unsigned> add_byte(std::bitset<256>& set) {
    auto byte = static_cast<unsigned char>(next());
    if (byte == '\\') {
      byte = static_cast<unsigned char>(next());
      if (byte == 'd') {
        for (unsigned digit = '0'; digit <= '9'; ++digit)
          set.set(digit);
        return std::nullopt;
      }
      if (byte == 'x') {
        const char* first = pattern_.data() + at_;
        if (std::from_chars(first, first + 2, byte, 16).ptr != first + 2) fail();
        at_ += 2;
      }
    }
    set.set(byte);
    return byte;
  }

  Nfa& nfa_;
  std::string_view pattern_;
  std::size_t at_ = 0;
};

}  // namespace

Nfa::Node add_pattern(Nfa& nfa, Nfa::Node from, std::string_view pattern) {
  return PatternWriter(nfa, pattern).write(from);
}

}  // namespace incipit::constrain
