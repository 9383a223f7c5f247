#include "block_read.h"

#include "json_slices.h"

#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

using Value = ContentBlock::Value;

// A kind, or a variant of it, that there is no type for.
Value unknown(const JsonObject& object, std::string type) {
  return UnknownBlock{
      .type = std::move(type),
      .json = JsonText::trusted(json_without(object.place().text(), "cache_control")),
      .cache_control = read_marker(object)};
}

bool citations_enabled(const JsonObject& object) {
  const auto citations = object.find("citations");
  return citations && JsonObject(*citations).boolean("enabled").value_or(false);
}

JsonText read_input(const JsonObject& object) {
  const JsonPlace input = object.at("input");
  return JsonObject(input).place().json();
}

Base64Source read_base64(const JsonObject& source) {
  return {.media_type = source.at("media_type").string(), .data = source.at("data").string()};
}

Value read_image(const JsonObject& object) {
  const JsonObject source(object.at("source"));
  const std::string type = source.at("type").string();
  ImageBlock block;
  block.cache_control = read_marker(object);
  if (type == "base64") {
    block.source = read_base64(source);
  } else if (type == "url") {
    block.source = UrlSource{source.at("url").string()};
  } else if (type == "file") {
    block.source = FileSource{source.at("file_id").string()};
  } else {
    return unknown(object, "image");
  }
  return block;
}

Value read_document(const JsonObject& object) {
  const JsonObject source(object.at("source"));
  const std::string type = source.at("type").string();
  DocumentBlock block;
  block.title = object.string("title");
  block.context = object.string("context");
  block.citations = citations_enabled(object);
  block.cache_control = read_marker(object);
  if (type == "base64") {
    block.source = read_base64(source);
  } else if (type == "text") {
    block.source = TextSource{source.at("data").string()};
  } else if (type == "content") {
    block.source = ContentSource{BlockReader::read_all(source.at("content"))};
  } else if (type == "url") {
    block.source = UrlSource{source.at("url").string()};
  } else if (type == "file") {
    block.source = FileSource{source.at("file_id").string()};
  } else {
    return unknown(object, "document");
  }
  return block;
}

SearchResultBlock read_search_result(const JsonObject& object) {
  SearchResultBlock block{.source = object.at("source").string(),
                          .title = object.at("title").string()};
  for (const JsonPlace& text : object.at("content").items())
    block.content.push_back(read_text_block(JsonObject(text)));
  block.citations = citations_enabled(object);
  block.cache_control = read_marker(object);
  return block;
}

ToolResultBlock read_tool_result(const JsonObject& object) {
  ToolResultBlock block{.tool_use_id = object.at("tool_use_id").string(), .content = {}};
  if (const auto content = object.find("content")) block.content = BlockReader::read_all(*content);
  block.is_error = object.boolean("is_error").value_or(false);
  block.cache_control = read_marker(object);
  return block;
}

bool is_server_result(std::string_view type) {
  return type == "web_search_tool_result" || type == "web_fetch_tool_result"
         || type == "code_execution_tool_result" || type == "bash_code_execution_tool_result"
         || type == "text_editor_code_execution_tool_result" || type == "tool_search_tool_result";
}

ServerToolResultBlock read_server_result(const JsonObject& object, std::string type) {
  const JsonPlace content = object.at("content");
  ServerToolResultBlock block{.type = std::move(type),
                              .tool_use_id = object.at("tool_use_id").string(),
                              .content = content.json(),
                              .cache_control = read_marker(object)};
  if (content.is_object()) block.error_code = JsonObject(content).string_or_empty("error_code");
  return block;
}

Value read_value(const JsonObject& object) {
  std::string type = object.at("type").string();
  if (type == "text") return read_text_block(object);
  if (type == "image") return read_image(object);
  if (type == "document") return read_document(object);
  if (type == "search_result") return read_search_result(object);
  if (type == "thinking") {
    return ThinkingBlock{.thinking = object.at("thinking").string(),
                         .signature = object.string_or_empty("signature")};
  }
  if (type == "redacted_thinking") return RedactedThinkingBlock{object.at("data").string()};
  if (type == "tool_use") {
    return ToolUseBlock{.id = object.at("id").string(),
                        .name = object.at("name").string(),
                        .input = read_input(object),
                        .cache_control = read_marker(object)};
  }
  if (type == "tool_result") return read_tool_result(object);
  if (type == "server_tool_use") {
    return ServerToolUseBlock{.id = object.at("id").string(),
                              .name = object.at("name").string(),
                              .input = read_input(object),
                              .cache_control = read_marker(object)};
  }
  if (is_server_result(type)) return read_server_result(object, std::move(type));
  if (type == "container_upload") {
    return ContainerUploadBlock{.file_id = object.at("file_id").string(),
                                .cache_control = read_marker(object)};
  }
  return unknown(object, std::move(type));
}

}  // namespace

ContentBlock ContentBlock::parse(JsonText json) {
  return BlockReader::read(JsonPlace(json.text()));
}

ContentBlock BlockReader::read(const JsonPlace& place) {
  const JsonObject object(place);
  ContentBlock block(TextBlock{});
  block.value_ = read_value(object);
  // A kind that cannot be marked keeps the marker it should not have, for whoever checks (E-6).
  const bool can_be_marked = block.mark(block.cache_control());
  block.received_ = can_be_marked && object.has("cache_control")
                        ? JsonText::trusted(json_without(place.text(), "cache_control"))
                        : place.json();
  return block;
}

std::vector<ContentBlock> BlockReader::read_all(const JsonPlace& place) {
  std::vector<ContentBlock> blocks;
  if (place.is_string()) {
    blocks.emplace_back(TextBlock{.text = place.string()});
    return blocks;
  }
  for (const JsonPlace& item : place.items())
    blocks.push_back(read(item));
  return blocks;
}

TextBlock read_text_block(const JsonObject& object) {
  TextBlock block{.text = object.at("text").string(), .cache_control = read_marker(object)};
  if (const auto citations = object.find("citations")) {
    for (const JsonPlace& citation : citations->items())
      block.citations.push_back(read_citation(citation));
  }
  return block;
}

Citation read_citation(const JsonPlace& place) {
  const JsonObject object(place);
  Citation citation{.type = object.at("type").string(),
                    .cited_text = object.string_or_empty("cited_text"),
                    .title = object.string_or_empty("document_title"),
                    .source = object.string_or_empty("source"),
                    .url = object.string_or_empty("url"),
                    .file_id = object.string_or_empty("file_id"),
                    .document_index = object.integer("document_index"),
                    .search_result_index = object.integer("search_result_index"),
                    .json = place.json()};
  if (citation.title.empty()) citation.title = object.string_or_empty("title");
  for (const std::string unit : {"char_index", "page_number", "block_index"}) {
    if (!citation.start) citation.start = object.integer("start_" + unit);
    if (!citation.end) citation.end = object.integer("end_" + unit);
  }
  return citation;
}

std::optional<CacheControl> read_marker(const JsonObject& object) {
  const auto place = object.find("cache_control");
  if (!place) return std::nullopt;
  const JsonObject marker(*place);
  const JsonPlace type = marker.at("type");
  if (type.string() != "ephemeral") type.fail("should be \"ephemeral\"");
  const auto ttl = marker.find("ttl");
  if (!ttl || ttl->string() == "5m") return CacheControl{};
  if (ttl->string() != "1h") ttl->fail("should be \"5m\" or \"1h\"");
  return CacheControl{Ttl::one_hour};
}

}  // namespace incipit
