// Text with its citations, documents, search results and images.
#include "gateway/api/anthropic_content.h"

#include <algorithm>
#include <array>
#include <utility>

namespace incipit::gateway {
namespace {

// A citation as a request carries it. Each of `numbers` is required, and `title` may be null.
struct CitationShape {
  std::string_view tag;
  std::array<std::string_view, 3> texts;
  std::string_view title;
  std::array<std::string_view, 3> numbers;
};

constexpr std::array citation_shapes = {
    CitationShape{"char_location",
                  {"cited_text"},
                  "document_title",
                  {"document_index", "start_char_index", "end_char_index"}},
    CitationShape{"content_block_location",
                  {"cited_text"},
                  "document_title",
                  {"document_index", "start_block_index", "end_block_index"}},
    CitationShape{"page_location",
                  {"cited_text"},
                  "document_title",
                  {"document_index", "start_page_number", "end_page_number"}},
    CitationShape{"search_result_location",
                  {"cited_text", "source"},
                  "title",
                  {"search_result_index", "start_block_index", "end_block_index"}},
    CitationShape{
        "web_search_result_location", {"cited_text", "url", "encrypted_index"}, "title", {}},
};

Citation read_citation(const JsonValue& value, const std::string& path) {
  Fields head(value, path);
  const std::string& tag = read_string(head.required("type"), head.at("type"));
  const auto shape = std::ranges::find(citation_shapes, std::string_view(tag), &CitationShape::tag);
  if (shape == citation_shapes.end()) {
    std::vector<std::string_view> tags;
    for (const CitationShape& known : citation_shapes)
      tags.push_back(known.tag);
    reject_tag(path, tag, tags);
  }
  Fields fields(value, head.at(tag));
  (void)fields.required("type");
  for (const std::string_view name : shape->texts) {
    if (!name.empty()) (void)read_string(fields.required(name), fields.at(name));
  }
  for (const std::string_view name : shape->numbers) {
    if (!name.empty()) (void)read_integer(fields.required(name), fields.at(name));
  }
  const JsonValue& title = fields.required(shape->title);
  if (!title.is_null()) (void)read_string(title, fields.at(shape->title));
  // Replies carry it, and clients send replies back as they are.
  if (const JsonValue* file = fields.unless_null("file_id")) {
    (void)read_string(*file, fields.at("file_id"));
  }
  fields.reject_others();
  Citation citation;
  citation.type = tag;
  citation.json = value;
  return citation;
}

// `citations` on a text block: what an earlier answer rested on.
std::vector<Citation> read_citations(Fields& fields, MessageRole role, const Reading& reading) {
  std::vector<Citation> citations;
  const JsonValue* value = fields.unless_null("citations");
  if (value == nullptr) return citations;
  const std::string path = fields.at("citations");
  const JsonValue::Array& list = read_list(*value, path);
  if (!list.empty() && role == MessageRole::user && reading.context.version_2026_10_21) {
    throw invalid_request(path + ": citations are not permitted on text blocks in user messages");
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    citations.push_back(read_citation(list[i], element(path, i)));
  return citations;
}

// `citations` on a source of text: whether it may be cited.
bool read_citable(Fields& fields) {
  const JsonValue* value = fields.unless_null("citations");
  if (value == nullptr) return false;
  Fields config(*value, fields.at("citations"));
  const JsonValue* enabled = config.unless_null("enabled");
  const bool citable = enabled != nullptr && read_boolean(*enabled, config.at("enabled"));
  config.reject_others();
  return citable;
}

std::optional<std::string> read_optional_string(Fields& fields, std::string_view name) {
  const JsonValue* value = fields.unless_null(name);
  if (value == nullptr) return std::nullopt;
  return read_string(*value, fields.at(name));
}

struct Source {
  std::string tag;
  Fields fields;  // their paths name the tag
};

Source open_source(Fields& block, const std::vector<std::string_view>& tags) {
  const JsonValue& value = block.required("source");
  Fields head(value, block.at("source"));
  const std::string& tag = read_string(head.required("type"), head.at("type"));
  if (std::ranges::find(tags, std::string_view(tag)) == tags.end()) {
    reject_tag(head.path(), tag, tags);
  }
  Source source{tag, Fields(value, head.at(tag))};
  (void)source.fields.required("type");
  return source;
}

// How many bytes `text` stands for; none unless it is base64 (RFC 4648 section 4).
std::optional<std::size_t> base64_size(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const auto in_alphabet = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+'
           || c == '/';
  };
  if (!std::ranges::all_of(text.substr(0, text.size() - padding), in_alphabet)) return std::nullopt;
  return text.size() / 4 * 3 - padding;
}

std::size_t read_base64(Fields& source, std::initializer_list<std::string_view> media_types) {
  (void)source.choice("media_type", media_types);
  const auto size = base64_size(read_string(source.required("data"), source.at("data")));
  if (!size) throw invalid_request(source.at("data") + ": invalid base64 data");
  if (*size == 0) throw invalid_request(source.at("data") + ": the data is empty");
  return *size;
}

void read_image_source(Fields& block) {
  Source source = open_source(block, {"base64", "file", "url"});
  Fields& fields = source.fields;
  if (source.tag == "base64") {
    constexpr std::size_t limit = 5 << 20;
    const std::size_t size =
        read_base64(fields, {"image/jpeg", "image/png", "image/gif", "image/webp"});
    if (size > limit) {
      throw invalid_request(fields.path() + ": image exceeds 5 MB maximum: " + std::to_string(size)
                            + " bytes > " + std::to_string(limit) + " bytes");
    }
  } else {
    const std::string_view name = source.tag == "url" ? "url" : "file_id";
    (void)read_string(fields.required(name), fields.at(name));
  }
  fields.reject_others();
}

std::vector<ContentBlock> read_document_content(const JsonValue& value, const std::string& path,
                                                MessageRole role, Reading& reading) {
  std::vector<ContentBlock> content;
  if (value.is_string()) {
    content.emplace_back(TextBlock{value.as_string()});
    return content;
  }
  if (!value.is_array()) throw invalid_request(path + ": Input should be a valid string or list");
  const JsonValue::Array& list = value.as_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string base = element(path, i);
    Fields head(list[i], base);
    const std::string& tag = read_string(head.required("type"), head.at("type"));
    if (tag == "text") {
      content.emplace_back(read_text(list[i], head.at(tag), role, reading));
    } else if (tag == "image") {
      content.push_back(read_image(list[i], base, reading));
    } else {
      reject_tag(base, tag, {"image", "text"});
    }
  }
  return content;
}

constexpr std::string_view send_text =
    "; send the text itself, as source {\"type\":\"text\",\"media_type\":\"text/plain\","
    "\"data\":\"…\"}";

void read_document_source(Fields& block, DocumentBlock& document, const std::string& base,
                          MessageRole role, Reading& reading) {
  Source source = open_source(block, {"base64", "content", "file", "text", "url"});
  Fields& fields = source.fields;
  if (source.tag == "base64") {
    (void)read_base64(fields, {"application/pdf"});
    document.source = Base64Source{"application/pdf"};
    reading.refuse(base,
                   "PDF documents are not supported: the model of this gateway takes text only"
                       + std::string(send_text));
  } else if (source.tag == "url") {
    document.source = UrlSource{read_string(fields.required("url"), fields.at("url"))};
    reading.refuse(base, "this gateway does not fetch documents by URL" + std::string(send_text));
  } else if (source.tag == "file") {
    document.source = FileSource{read_string(fields.required("file_id"), fields.at("file_id"))};
  } else if (source.tag == "content") {
    document.source = ContentSource{
        read_document_content(fields.required("content"), fields.at("content"), role, reading)};
  } else {
    (void)fields.choice("media_type", {"text/plain"});
    document.source = TextSource{read_string(fields.required("data"), fields.at("data"))};
  }
  fields.reject_others();
}

}  // namespace

TextBlock read_text(const JsonValue& value, const std::string& path, MessageRole role,
                    Reading& reading) {
  Fields fields(value, path);
  (void)fields.choice("type", {"text"});
  TextBlock block;
  block.text = read_string(fields.required("text"), fields.at("text"));
  block.citations = read_citations(fields, role, reading);
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  if (block.cache_control && block.text.empty()) {
    throw invalid_request(path + ": cache_control cannot be set for empty text blocks");
  }
  return block;
}

ContentBlock read_image(const JsonValue& value, const std::string& base, Reading& reading) {
  Fields fields(value, base + ".image");
  (void)fields.required("type");
  read_image_source(fields);
  if (const JsonValue* transformations = fields.unless_null("transformations")) {
    Fields inner(*transformations, fields.at("transformations"));
    if (inner.unless_null("oversized_image") != nullptr) {
      (void)inner.choice("oversized_image", {"downsize", "error"});
    }
    inner.reject_others();
  }
  UnknownBlock block{"image"};
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  reading.refuse(base,
                 "`image` blocks are not supported: the model of this gateway takes text only; say "
                 "what the image shows in a `text` block");
  return block;
}

ContentBlock read_document(const JsonValue& value, const std::string& base, MessageRole role,
                           Reading& reading) {
  Fields fields(value, base + ".document");
  (void)fields.required("type");
  DocumentBlock block;
  read_document_source(fields, block, base, role, reading);
  block.title = read_optional_string(fields, "title");
  block.context = read_optional_string(fields, "context");
  block.citations = read_citable(fields);
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  return block;
}

ContentBlock read_search_result(const JsonValue& value, const std::string& base, MessageRole role,
                                Reading& reading) {
  Fields fields(value, base + ".search_result");
  (void)fields.required("type");
  SearchResultBlock block;
  block.source = read_string(fields.required("source"), fields.at("source"));
  block.title = read_string(fields.required("title"), fields.at("title"));
  const std::string path = fields.at("content");
  const JsonValue::Array& list = read_list(fields.required("content"), path);
  for (std::size_t i = 0; i < list.size(); ++i)
    block.content.push_back(read_text(list[i], element(path, i), role, reading));
  block.citations = read_citable(fields);
  block.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  return block;
}

}  // namespace incipit::gateway
