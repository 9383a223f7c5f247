// Content blocks from any place of a document. Private to the SDK.
#pragma once

#include "incipit/anthropic.h"
#include "json_place.h"

#include <optional>
#include <vector>

namespace incipit {

// Each throws ParseError for another shape than the wire's.
class BlockReader {
 public:
  [[nodiscard]] static ContentBlock read(const JsonPlace& place);

  // An array of blocks; a string counts as one block of text.
  [[nodiscard]] static std::vector<ContentBlock> read_all(const JsonPlace& place);
};

[[nodiscard]] TextBlock read_text_block(const JsonObject& object);
[[nodiscard]] Citation read_citation(const JsonPlace& place);
// Of the member `cache_control`, absent or null: nothing.
[[nodiscard]] std::optional<CacheControl> read_marker(const JsonObject& object);

}  // namespace incipit
