// Rules for one block: text that is UTF-8, in a message of a role that may hold it.
// Source: anthropic-wire sections 1, 4.1, 4.2 and 5.
#include "checks.h"
#include "utf8.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace incipit {
namespace {

// The first byte of `text` that is not UTF-8; its size when all is.
std::size_t utf8_end(std::string_view text) {
  if (is_utf8(text)) return text.size();
  std::size_t at = 0;
  while (utf8_sequence(text, at).well_formed)
    at += utf8_sequence(text, at).length;
  return at;
}

// Checks all strings of a block, and what is to be said of its kind. `direct`: an element of a
// message's content, and not of a tool result or document there.
class BlockCheck {
 public:
  BlockCheck(const Path& path, MessageRole role, WireVersion version, bool direct, bool sent_text)
      : path_(path), role_(role), version_(version), direct_(direct), received_(sent_text) {}

  void operator()(const TextBlock& block) const {
    if (block.cache_control && block.text.empty()) {
      refuse("E-5", path_, "cache_control cannot be set for empty text blocks");
    }
    const Path text(path_, "text");
    if (direct_ && block.text.empty()) {
      refuse("W-4.1", text, "text content blocks must be non-empty; leave the block out");
    }
    if (direct_ && is_blank(block.text)) {
      refuse("W-4.1", text,
             "text content blocks must contain non-whitespace text; leave the block out");
    }
    utf8("text", block.text);
    const Path citations(path_, "citations");
    if (role_ == MessageRole::user && !block.citations.empty()
        && version_ == WireVersion::of_2026) {
      refuse("W-4", citations,
             "version 2026-10-21 takes no citations on text of the user; leave them out");
    }
    for (std::size_t i = 0; i < block.citations.size(); ++i) {
      const Citation& citation = block.citations[i];
      if (!citation.json.empty()) continue;
      BlockCheck(Path(citations, i), role_, version_, false, received_).citation(citation);
    }
  }

  void operator()(const ImageBlock& block) const { source(block.source); }

  void operator()(const DocumentBlock& block) const {
    if (direct_ && role_ == MessageRole::assistant && version_ == WireVersion::of_2026) {
      refuse("W-4", path_,
             "version 2026-10-21 takes no document directly in an assistant message; put it into a "
             "user message");
    }
    if (block.title) utf8("title", *block.title);
    if (block.context) utf8("context", *block.context);
    source(block.source);
  }

  void operator()(const SearchResultBlock& block) const {
    utf8("source", block.source);
    utf8("title", block.title);
    const Path content(path_, "content");
    for (std::size_t i = 0; i < block.content.size(); ++i) {
      BlockCheck(Path(content, i), role_, version_, false, received_)(block.content[i]);
    }
  }

  void operator()(const ThinkingBlock& block) const {
    only(MessageRole::assistant);
    utf8("thinking", block.thinking);
    utf8("signature", block.signature);
  }

  void operator()(const RedactedThinkingBlock& block) const {
    only(MessageRole::assistant);
    utf8("data", block.data);
  }

  void operator()(const ToolUseBlock& block) const {
    only(MessageRole::assistant);
    identifier("id", block.id);
    utf8("name", block.name);
    if (!block.input.empty() && !block.input.is_object()) {
      refuse("W-4.2", Path(path_, "input"), "the input of a tool must be a JSON object");
    }
  }

  void operator()(const ToolResultBlock& block) const {
    only(MessageRole::user);
    identifier("tool_use_id", block.tool_use_id);
    nested(Path(path_, "content"), block.content);
  }

  void operator()(const ServerToolUseBlock& block) const {
    utf8("id", block.id);
    utf8("name", block.name);
  }

  void operator()(const ServerToolResultBlock& block) const {
    utf8("type", block.type);
    utf8("tool_use_id", block.tool_use_id);
    utf8("error_code", block.error_code);
  }

  void operator()(const ContainerUploadBlock& block) const { utf8("file_id", block.file_id); }

  void operator()(const UnknownBlock& block) const {
    utf8("type", block.type);
    if (!block.json.is_object()) {
      refuse("W-4.1", path_, "a content block must be a JSON object with a \"type\"");
    }
  }

 private:
  // Of a block that was received the JSON goes out, which its parser has looked at.
  void utf8(std::string_view name, std::string_view text) const {
    if (!received_) check_utf8(Path(path_, name), text);
  }

  void identifier(std::string_view name, std::string_view id) const {
    if (is_identifier(id, id.size())) return;
    utf8(name, id);
    refuse("W-4.2", Path(path_, name),
           "'" + shown(id) + "' should match '^[a-zA-Z0-9_-]+$': letters, digits, _ and -");
  }

  void only(MessageRole role) const {
    if (role_ == role || !direct_) return;
    const bool assistant = role == MessageRole::assistant;
    refuse(assistant ? "W-4.1" : "W-4.2", path_,
           std::string("a block of this kind can only stand in ")
               + (assistant ? "an assistant message" : "a user message"));
  }

  template <class... Sources>
  void source(const std::variant<Sources...>& any) const {
    const Path path(path_, "source");
    const BlockCheck at(path, role_, version_, false, received_);
    std::visit(
        [&]<class Source>(const Source& from) {
          if constexpr (requires { from.media_type; }) at.utf8("media_type", from.media_type);
          if constexpr (requires { from.data; }) at.utf8("data", from.data);
          if constexpr (requires { from.url; }) at.utf8("url", from.url);
          if constexpr (requires { from.file_id; }) at.utf8("file_id", from.file_id);
          if constexpr (requires { from.content; }) nested(Path(path, "content"), from.content);
        },
        any);
  }

  void nested(const Path& content, const std::vector<ContentBlock>& blocks) const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const bool received = received_ || !blocks[i].received().empty();
      std::visit(BlockCheck(Path(content, i), role_, version_, false, received), blocks[i].value());
    }
  }

  void citation(const Citation& citation) const {
    utf8("type", citation.type);
    utf8("cited_text", citation.cited_text);
    utf8("title", citation.title);
    utf8("source", citation.source);
    utf8("url", citation.url);
    utf8("file_id", citation.file_id);
  }

  const Path& path_;
  MessageRole role_;
  WireVersion version_;
  bool direct_;
  bool received_;
};

}  // namespace

std::string Path::text() const {
  std::string text = parent_ == nullptr ? std::string() : parent_->text();
  if (!text.empty()) text += '.';
  if (index_) return text + std::to_string(*index_);
  return text.append(name_);
}

void refuse(std::string_view rule, const Path& path, const std::string& why) {
  std::string place = path.text();
  const std::string message = place.empty() ? why : place + ": " + why;
  throw PromptError(std::string(rule), std::move(place), message);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos;
}

bool is_identifier(std::string_view text, std::size_t longest) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text.size() <= longest
         && text.find_first_not_of(letters) == std::string_view::npos;
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 80;
  std::size_t end = 0;
  while (end < text.size()) {
    const Utf8Sequence sequence = utf8_sequence(text, end);
    if (!sequence.well_formed || end + sequence.length > most) break;
    end += sequence.length;
  }
  return std::string(text.substr(0, end)) + (end < text.size() ? "…" : "");
}

void check_utf8(const Path& path, std::string_view text) {
  const std::size_t end = utf8_end(text);
  if (end == text.size()) return;
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(text[end]);
  refuse("W-1", path,
         "not UTF-8 at byte " + std::to_string(end) + " (0x" + digits[byte >> 4U]
             + digits[byte & 15U] + "); convert the text to UTF-8 first");
}

void check_block(const Path& path, const ContentBlock& block, MessageRole role,
                 WireVersion version) {
  if (role == MessageRole::system && !block.is<TextBlock>() && !block.is<UnknownBlock>()) {
    refuse("W-4.1", path, "a system message can only hold text");
  }
  const bool received = !block.received().empty();
  std::visit(BlockCheck(path, role, version, true, received), block.value());
}

void check_system_block(const Path& path, const TextBlock& block) {
  BlockCheck(path, MessageRole::system, WireVersion::of_2026, true, false)(block);
}

}  // namespace incipit
