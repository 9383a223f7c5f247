// Stop sequences in a stream of text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace incipit::gateway {

// The sequence that is complete first matches; of those complete at the same byte, the longest. So
// the answer is the same however the text is cut into pieces.
class StopMatcher {
 public:
  explicit StopMatcher(const std::vector<std::string>& sequences) {
    for (const std::string& sequence : sequences) {
      if (!sequence.empty()) automata_.emplace_back(sequence);
    }
  }

  // The text that is certain now: what may be the beginning of a stop sequence is held back. After
  // a match: the text in front of it.
  std::string feed(std::string_view text) {
    if (automata_.empty()) return std::string(text);
    for (const char c : text) {
      held_ += c;
      const Automaton* match = nullptr;
      for (Automaton& automaton : automata_) {
        automaton.advance(c);
        const bool is_better =
            match == nullptr || automaton.sequence.size() > match->sequence.size();
        if (automaton.is_complete() && is_better) match = &automaton;
      }
      if (match != nullptr) {
        matched_ = match->sequence;
        held_.resize(held_.size() - match->sequence.size());
        return flush();
      }
    }
    std::size_t keep = 0;
    for (const Automaton& automaton : automata_)
      keep = std::max(keep, automaton.length);
    std::string certain = held_.substr(0, held_.size() - keep);
    held_.erase(0, certain.size());
    return certain;
  }

  std::string flush() { return std::exchange(held_, {}); }

  [[nodiscard]] const std::optional<std::string>& matched() const { return matched_; }

 private:
  // Knuth-Morris-Pratt: how much of the sequence the text so far ends with.
  struct Automaton {
    explicit Automaton(std::string text) : sequence(std::move(text)), borders(sequence.size(), 0) {
      for (std::size_t i = 1, border = 0; i < sequence.size(); ++i) {
        while (border > 0 && sequence[i] != sequence[border])
          border = borders[border - 1];
        if (sequence[i] == sequence[border]) ++border;
        borders[i] = border;
      }
    }

    [[nodiscard]] bool is_complete() const { return length == sequence.size(); }

    void advance(char c) {
      while (length > 0 && sequence[length] != c)
        length = borders[length - 1];
      if (sequence[length] == c) ++length;
    }

    std::string sequence;
    std::vector<std::size_t> borders;  // longest proper prefix that also ends sequence[0..i]
    std::size_t length = 0;
  };

  std::vector<Automaton> automata_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace incipit::gateway
