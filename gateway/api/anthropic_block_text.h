// Content blocks as a model of text reads them, each with the bytes that identify it (C-2).
#pragma once

#include "gateway/api/anthropic_file_text.h"
#include "incipit/anthropic.h"
#include "incipit/json.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace incipit::gateway {

class BlockTexts {
 public:
  // Both outlive this.
  BlockTexts(const std::vector<Tool>& tools, FileTexts& files);

  // Appends what `block`, found at `path`, says to `text` and its identity to `key`, one JSON
  // value. The first reference to a deferred tool brings its definition (C-73); any later one only
  // names it, so that a short reference cannot be repeated into a long prompt. Throws ApiError.
  void add(const ContentBlock& block, const std::string& path, std::string& text, JsonWriter& key);

  // By place in `tools`: the tools that are in the prompt from the start or were found by then.
  [[nodiscard]] const std::vector<bool>& offered() const { return offered_; }

 private:
  void add_document(const DocumentBlock& document, const std::string& path, std::string& text,
                    JsonWriter& key);
  void add_search_result(const SearchResultBlock& found, std::string& text, JsonWriter& key);
  void add_reference(const UnknownBlock& reference, std::string& text, JsonWriter& key);

  const std::vector<Tool>& tools_;
  FileTexts& files_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<bool> offered_;
};

// What a tool is for, with its examples: templates have no place for those.
[[nodiscard]] std::string describe(const Tool& tool);

// One JSON object that identifies a tool.
void write_tool_key(const Tool& tool, JsonWriter& key);

// A document or search result of the request asks for citations.
[[nodiscard]] bool wants_citations(const MessageRequest& request);

}  // namespace incipit::gateway
