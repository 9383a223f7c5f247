// A block of a request as the cache sees it, and the way back to its bytes. Private to the SDK.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// The text without white space between tokens (C-8) and without markers (C-4), which stand in the
// block itself or in blocks inside it; in a tool's input and schema `cache_control` is a name like
// any other.
struct VisibleJson {
  struct Run {
    std::size_t at;      // in `text`
    std::size_t source;  // in the JSON it was taken from
  };

  std::string text;
  std::vector<Run> runs;

  // Where text[at] stands in the JSON.
  [[nodiscard]] std::size_t source(std::size_t at) const;
};

[[nodiscard]] VisibleJson visible_json(std::string_view json);

// The path of the value in `after`, a visible text, in which the byte at `at` stands, the first
// that `before` has not got there: a member that is new, or of another name, or a value; empty for
// the whole.
[[nodiscard]] std::string path_of_difference(std::string_view before, std::string_view after,
                                             std::size_t at);

}  // namespace incipit
