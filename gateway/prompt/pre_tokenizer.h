// Cutting text into the words that merging never crosses, by the pattern that a vocabulary was
// trained with.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// Immutable after construction; any thread.
class PreTokenizer {
 public:
  // Throws std::runtime_error that lists the known names.
  explicit PreTokenizer(std::string_view name);
  ~PreTokenizer();

  // Appends the end offset of each word of `text`, which must be valid UTF-8. The words cover it.
  void split(std::string_view text, std::vector<std::uint32_t>& ends) const;

  // A word that is itself in the vocabulary is one token, even if no merges lead there.
  [[nodiscard]] bool takes_whole_words() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
