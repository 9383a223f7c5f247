#include "block_write.h"

#include "json_slices.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace incipit {
namespace {

void write_if_set(JsonWriter& writer, std::string_view name,
                  const std::optional<std::string>& text) {
  if (text) writer.key(name).string(*text);
}

void write_if_set(JsonWriter& writer, std::string_view name,
                  const std::optional<std::int64_t>& number) {
  if (number) writer.key(name).integer(*number);
}

void write_citation(JsonWriter& writer, const Citation& citation) {
  if (!citation.json.empty()) {
    writer.raw(citation.json.text());
    return;
  }
  const std::string_view type = citation.type;
  const bool of_document = citation.document_index.has_value();
  writer.begin_object();
  writer.key("type").string(type).key("cited_text").string(citation.cited_text);
  write_if_set(writer, "document_index", citation.document_index);
  write_if_set(writer, "search_result_index", citation.search_result_index);
  if (!citation.source.empty()) writer.key("source").string(citation.source);
  if (!citation.url.empty()) writer.key("url").string(citation.url);
  writer.key(of_document ? "document_title" : "title");
  citation.title.empty() ? writer.null() : writer.string(citation.title);
  const std::string unit = type == "char_location"   ? "char_index"
                           : type == "page_location" ? "page_number"
                                                     : "block_index";
  write_if_set(writer, "start_" + unit, citation.start);
  write_if_set(writer, "end_" + unit, citation.end);
  writer.end_object();
}

// An input without parameters is an empty object (W-23).
void write_input(JsonWriter& writer, const JsonText& input) {
  writer.key("input").raw(input.empty() ? std::string_view("{}") : input.text());
}

void write_citations_switch(JsonWriter& writer, bool enabled) {
  if (!enabled) return;
  writer.key("citations").begin_object().key("enabled").boolean(true).end_object();
}

void write_content(JsonWriter& writer, const std::vector<ContentBlock>& content) {
  writer.key("content").begin_array();
  for (const ContentBlock& block : content)
    block.write(writer);
  writer.end_array();
}

template <class... Sources>
void write_source(JsonWriter& writer, const std::variant<Sources...>& source) {
  writer.key("source").begin_object();
  std::visit(
      [&]<class Source>(const Source& from) {
        if constexpr (std::is_same_v<Source, Base64Source>) {
          writer.key("type").string("base64").key("media_type").string(from.media_type);
          writer.key("data").string(from.data);
        } else if constexpr (std::is_same_v<Source, TextSource>) {
          writer.key("type").string("text").key("media_type").string("text/plain");
          writer.key("data").string(from.data);
        } else if constexpr (std::is_same_v<Source, ContentSource>) {
          writer.key("type").string("content");
          write_content(writer, from.content);
        } else if constexpr (std::is_same_v<Source, UrlSource>) {
          writer.key("type").string("url").key("url").string(from.url);
        } else {
          writer.key("type").string("file").key("file_id").string(from.file_id);
        }
      },
      source);
  writer.end_object();
}

// What stands between `type` and `cache_control`, for each kind of block.

void write_own(JsonWriter& writer, const TextBlock& block) {
  writer.key("text").string(block.text);
  if (block.citations.empty()) return;
  writer.key("citations").begin_array();
  for (const Citation& citation : block.citations)
    write_citation(writer, citation);
  writer.end_array();
}

void write_own(JsonWriter& writer, const ImageBlock& block) {
  write_source(writer, block.source);
}

void write_own(JsonWriter& writer, const DocumentBlock& block) {
  write_source(writer, block.source);
  write_if_set(writer, "title", block.title);
  write_if_set(writer, "context", block.context);
  write_citations_switch(writer, block.citations);
}

void write_own(JsonWriter& writer, const SearchResultBlock& block) {
  writer.key("source").string(block.source).key("title").string(block.title);
  writer.key("content").begin_array();
  for (const TextBlock& text : block.content)
    write_block(writer, text);
  writer.end_array();
  write_citations_switch(writer, block.citations);
}

void write_own(JsonWriter& writer, const ThinkingBlock& block) {
  writer.key("thinking").string(block.thinking).key("signature").string(block.signature);
}

void write_own(JsonWriter& writer, const RedactedThinkingBlock& block) {
  writer.key("data").string(block.data);
}

void write_own(JsonWriter& writer, const ToolUseBlock& block) {
  writer.key("id").string(block.id).key("name").string(block.name);
  write_input(writer, block.input);
}

void write_own(JsonWriter& writer, const ToolResultBlock& block) {
  writer.key("tool_use_id").string(block.tool_use_id);
  if (!block.content.empty()) write_content(writer, block.content);
  if (block.is_error) writer.key("is_error").boolean(true);
}

void write_own(JsonWriter& writer, const ServerToolUseBlock& block) {
  writer.key("id").string(block.id).key("name").string(block.name);
  write_input(writer, block.input);
}

void write_own(JsonWriter& writer, const ServerToolResultBlock& block) {
  writer.key("tool_use_id").string(block.tool_use_id).key("content");
  if (!block.content.empty()) {
    writer.raw(block.content.text());
    return;
  }
  writer.begin_object().key("type").string(block.type + "_error");
  writer.key("error_code").string(block.error_code).end_object();
}

void write_own(JsonWriter& writer, const ContainerUploadBlock& block) {
  writer.key("file_id").string(block.file_id);
}

// One without its JSON: there is nothing to say but the type.
void write_own(JsonWriter& /*writer*/, const UnknownBlock& /*block*/) {}

// An object's own bytes, with the marker before its last brace.
void write_json(JsonWriter& writer, std::string_view object,
                const std::optional<CacheControl>& marker) {
  if (!marker) {
    writer.raw(object);
    return;
  }
  writer.raw(object.substr(0, object.rfind('}')));
  write_marker(writer, marker);
  writer.end_object();
}

}  // namespace

void write_marker(JsonWriter& writer, const std::optional<CacheControl>& marker) {
  if (!marker) return;
  writer.key("cache_control").begin_object().key("type").string("ephemeral");
  if (marker->ttl == Ttl::one_hour) writer.key("ttl").string("1h");
  writer.end_object();
}

void write_members(JsonWriter& writer, const JsonText& object, const char* path) {
  if (object.empty()) return;
  if (!object.is_object()) throw PromptError("", path, std::string(path) + " must be an object");
  const std::string_view members = json_inside(object.text());
  if (!members.empty()) writer.raw(members);
}

void write_block(JsonWriter& writer, const TextBlock& block) {
  writer.begin_object().key("type").string("text");
  write_own(writer, block);
  write_marker(writer, block.cache_control);
  writer.end_object();
}

void ContentBlock::write(JsonWriter& writer) const {
  const auto* unknown = get_if<UnknownBlock>();
  const JsonText& json = received_.empty() && unknown != nullptr ? unknown->json : received_;
  if (!json.empty()) {
    write_json(writer, json.text(), cache_control());
    return;
  }
  writer.begin_object().key("type").string(type());
  std::visit([&](const auto& block) { write_own(writer, block); }, value_);
  write_marker(writer, cache_control());
  writer.end_object();
}

}  // namespace incipit
