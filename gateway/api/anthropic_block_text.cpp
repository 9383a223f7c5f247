#include "gateway/api/anthropic_block_text.h"

#include <algorithm>

namespace incipit::gateway {
namespace {

void write_text_key(const TextBlock& block, JsonWriter& key) {
  if (block.citations.empty()) {
    key.string(block.text);
    return;
  }
  key.begin_object().key("text").string(block.text).key("citations").begin_array();
  for (const Citation& citation : block.citations)
    key.raw(citation.json.text());
  key.end_array().end_object();
}

void write_or_null(const std::optional<std::string>& text, JsonWriter& key) {
  if (text) {
    key.string(*text);
  } else {
    key.null();
  }
}

void write_definition(const Tool& tool, std::string& text) {
  JsonWriter(text)
      .begin_object()
      .key("type")
      .string("function")
      .key("function")
      .begin_object()
      .key("name")
      .string(tool.name)
      .key("description")
      .string(describe(tool))
      .key("parameters")
      .raw(tool.input_schema.text())
      .end_object()
      .end_object();
}

bool asks_for_citations(const ContentBlock& block) {
  if (const auto* document = block.get_if<DocumentBlock>()) return document->citations;
  if (const auto* found = block.get_if<SearchResultBlock>()) return found->citations;
  const auto* result = block.get_if<ToolResultBlock>();
  return result != nullptr && std::ranges::any_of(result->content, asks_for_citations);
}

}  // namespace

BlockTexts::BlockTexts(const std::vector<Tool>& tools, FileTexts& files)
    : tools_(tools), files_(files) {
  places_.reserve(tools.size());
  offered_.reserve(tools.size());
  for (const Tool& tool : tools) {
    places_.emplace(tool.name, offered_.size());
    offered_.push_back(!tool.defer_loading);
  }
}

void BlockTexts::add(const ContentBlock& block, const std::string& path, std::string& text,
                     JsonWriter& key) {
  if (const auto* plain = block.get_if<TextBlock>()) {
    text += plain->text;
    write_text_key(*plain, key);
  } else if (const auto* document = block.get_if<DocumentBlock>()) {
    add_document(*document, path, text, key);
  } else if (const auto* found = block.get_if<SearchResultBlock>()) {
    add_search_result(*found, text, key);
  } else if (const auto* other = block.get_if<UnknownBlock>();
             other != nullptr && other->type == "tool_reference") {
    add_reference(*other, text, key);
  } else {
    key.null();  // one that cannot be served: the request ends before its key is used
  }
}

void BlockTexts::add_document(const DocumentBlock& document, const std::string& path,
                              std::string& text, JsonWriter& key) {
  text += "Document";
  if (document.title) text.append(": ").append(*document.title);
  if (document.context) text.append("\nContext: ").append(*document.context);
  text += "\n\n";
  key.begin_object().key("document");
  if (const auto* plain = std::get_if<TextSource>(&document.source)) {
    text += plain->data;
    key.string(plain->data);
  } else if (const auto* file = std::get_if<FileSource>(&document.source)) {
    text += files_.text(file->file_id, path);
    key.begin_object().key("file").string(file->file_id).end_object();  // ids are never used twice
  } else if (const auto* parts = std::get_if<ContentSource>(&document.source)) {
    key.begin_array();
    for (const ContentBlock& part : parts->content) {
      if (&part != &parts->content.front()) text += '\n';
      add(part, path, text, key);
    }
    key.end_array();
  } else {
    key.null();  // PDF and URL, which cannot be served
  }
  key.key("title");
  write_or_null(document.title, key);
  key.key("context");
  write_or_null(document.context, key);
  key.key("citations").boolean(document.citations).end_object();
}

void BlockTexts::add_search_result(const SearchResultBlock& found, std::string& text,
                                   JsonWriter& key) {
  text.append("Search result: ").append(found.title);
  text.append("\nSource: ").append(found.source).append("\n\n");
  key.begin_object().key("search_result").string(found.source).key("title").string(found.title);
  key.key("content").begin_array();
  for (const TextBlock& part : found.content) {
    if (&part != &found.content.front()) text += '\n';
    text += part.text;
    write_text_key(part, key);
  }
  key.end_array().key("citations").boolean(found.citations).end_object();
}

void BlockTexts::add_reference(const UnknownBlock& reference, std::string& text, JsonWriter& key) {
  const JsonValue json = reference.json.value();
  const std::string& name = json.find("tool_name")->as_string();
  const auto place = places_.find(name);
  if (place == places_.end()) {
    ApiError error =
        invalid_request("Tool reference '" + shown(name) + "' not found in available tools");
    error.error_code = "tool_reference_unresolved";
    throw error;
  }
  key.begin_object().key("tool_reference").string(name).key("definition");
  if (offered_[place->second]) {
    text += name;
    key.null();
  } else {
    offered_[place->second] = true;
    write_definition(tools_[place->second], text);
    write_tool_key(tools_[place->second], key);
  }
  key.end_object();
}

std::string describe(const Tool& tool) {
  std::string text = tool.description.value_or("");
  for (const JsonText& example : tool.input_examples) {
    text += text.empty() ? "Example input: " : "\nExample input: ";
    text += example.text();
  }
  return text;
}

void write_tool_key(const Tool& tool, JsonWriter& key) {
  key.begin_object().key("tool").string(tool.name);
  if (!tool.type.empty()) key.key("type").string(tool.type);
  key.key("description");
  write_or_null(tool.description, key);
  key.key("input_schema");
  if (tool.input_schema.empty()) {
    key.null();
  } else {
    key.raw(tool.input_schema.text());
  }
  key.key("input_examples").begin_array();
  for (const JsonText& example : tool.input_examples)
    key.raw(example.text());
  key.end_array().end_object();
}

bool wants_citations(const MessageRequest& request) {
  return std::ranges::any_of(request.messages, [](const MessageParam& message) {
    return std::ranges::any_of(message.content, asks_for_citations);
  });
}

}  // namespace incipit::gateway
