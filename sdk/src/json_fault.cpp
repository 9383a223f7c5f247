#include "json_fault.h"

#include "plain_text.h"
#include "utf8.h"

#include <utility>

namespace incipit {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at]))
    ++at;
  return at;
}

// Reads one document from left to right and throws JsonFault at the first byte that cannot be
// right.
class Scan {
 public:
  Scan(std::string_view text, int depth) : text_(text), depth_(static_cast<std::size_t>(depth)) {}

  void document() {
    value();
    while (!open_.empty()) {
      skip_space();
      const bool object = open_.back() == '{';
      const char close = object ? '}' : ']';
      if (take(close)) {
        open_.pop_back();
      } else if (take(',')) {
        skip_space();
        member();
      } else {
        expected(object ? "',' or '}'" : "',' or ']'");
      }
    }
    skip_space();
    if (at_ < text_.size()) fail("unexpected text after the end of the document");
  }

 private:
  // A value, or the opening of an array or object with its first value.
  void value() {
    skip_space();
    while (peek() == '[' || peek() == '{') {
      if (open_.size() == depth_) {
        fail("nested deeper than " + std::to_string(depth_) + " levels");
      }
      open_ += text_[at_++];
      skip_space();
      if (take(open_.back() == '{' ? '}' : ']')) {
        open_.pop_back();
        return;
      }
      if (open_.back() == '{') key();
    }
    scalar();
  }

  void member() {
    if (open_.back() == '{') key();
    value();
  }

  void key() {
    if (peek() != '"') expected("a key in double quotes");
    string();
    skip_space();
    if (!take(':')) expected("':'");
    skip_space();
  }

  void scalar() {
    const std::string_view rest = text_.substr(at_);
    if (peek() == '"') return string();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (rest.starts_with(word)) {
        at_ += word.size();
        return;
      }
    }
    const std::size_t length = json_number_length(rest);
    if (length == 0) expected("a value");
    at_ += length;
  }

  void string() {
    const std::size_t start = at_++;
    while (true) {
      at_ = plain_end(text_, at_);
      if (at_ == text_.size()) {
        at_ = start;
        fail("unterminated string");
      }
      const char c = text_[at_];
      if (c == '"') break;
      if (c == '\\') {
        escape();
      } else if (static_cast<unsigned char>(c) < 0x20) {
        fail("control character in a string");
      } else {
        const Utf8Sequence sequence = utf8_sequence(text_, at_);
        if (!sequence.well_formed) fail("invalid UTF-8");
        at_ += sequence.length;
      }
    }
    ++at_;
  }

  void escape() {
    const std::size_t start = at_++;
    if (peek() != 'u') {
      if (at_ < text_.size() && std::string_view("\"\\/bfnrt").find(text_[at_]) != text_.npos) {
        ++at_;
        return;
      }
      at_ = start;
      fail("invalid escape");
    }
    const unsigned unit = code_unit(start);
    if (unit < 0xD800 || unit > 0xDFFF) return;
    const bool pair = unit < 0xDC00 && text_.substr(at_).starts_with("\\u");
    if (pair) {
      ++at_;
      const unsigned second = code_unit(at_ - 1);
      if (second >= 0xDC00 && second <= 0xDFFF) return;
    }
    at_ = start;
    fail("lone surrogate in a string");
  }

  // The four digits after the `u` at the current place; the escape began at `start`.
  unsigned code_unit(std::size_t start) {
    unsigned unit = 0;
    for (std::size_t i = 1; i <= 4; ++i) {
      const char c = at_ + i < text_.size() ? text_[at_ + i] : '\0';
      const char lower = static_cast<char>(c | 0x20);
      if (is_digit(c)) {
        unit = unit * 16 + static_cast<unsigned>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        unit = unit * 16 + static_cast<unsigned>(lower - 'a' + 10);
      } else {
        at_ = start;
        fail("invalid escape");
      }
    }
    at_ += 5;
    return unit;
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos)
      ++at_;
  }

  [[noreturn]] void expected(std::string_view what) const {
    fail("expected " + std::string(what)
         + (at_ == text_.size() ? ", found the end of the text" : ""));
  }

  [[noreturn]] void fail(std::string message) const { throw JsonFault{std::move(message), at_}; }

  std::string_view text_;
  std::size_t depth_;
  std::size_t at_ = 0;
  std::string open_;  // '[' and '{' not yet closed
};

}  // namespace

std::size_t json_number_length(std::string_view text) {
  std::size_t at = !text.empty() && text[0] == '-' ? 1 : 0;
  if (at == text.size() || !is_digit(text[at])) return 0;
  at = text[at] == '0' ? at + 1 : digits(text, at);
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) at = digits(text, at + 1);
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t power = at + 1;
    if (power < text.size() && (text[power] == '+' || text[power] == '-')) ++power;
    const std::size_t end = digits(text, power);
    if (end > power) at = end;
  }
  return at;
}

std::optional<JsonFault> find_json_fault(std::string_view text, int depth) {
  try {
    Scan(text, depth).document();
    return std::nullopt;
  } catch (JsonFault& fault) {
    return std::move(fault);
  }
}

void require_json(std::string_view text, int depth) {
  if (const auto fault = find_json_fault(text, depth)) {
    throw_parse_error(text, fault->message, fault->offset);
  }
}

void throw_parse_error(std::string_view text, const std::string& message, std::size_t offset,
                       std::string path) {
  std::size_t line = 1;
  std::size_t column = 1;
  std::size_t character = 0;
  for (const char c : text.substr(0, offset)) {
    if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) continue;
    ++character;
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  throw ParseError(message, offset, line, column, character, std::move(path));
}

}  // namespace incipit
