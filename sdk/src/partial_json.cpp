#include "incipit/json.h"
#include "json_fault.h"
#include "plain_text.h"
#include "utf8.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace incipit {
namespace {

// Copies the beginning of a document as far as it says something, and closes what is open.
class Completion {
 public:
  explicit Completion(std::string_view text) : text_(text) {}

  // Null for nothing.
  JsonValue run() {
    const bool any = value(0);
    skip_space();
    if (at_ < text_.size()) fail("text after the document");
    return any ? JsonValue::parse(out_) : JsonValue();
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw_parse_error(text_, problem, at_);
  }

  [[nodiscard]] bool ended() const { return at_ == text_.size(); }

  void skip_space() {
    while (!ended() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  // False, and nothing appended, when the text ends before the value says anything.
  bool value(int depth) {
    skip_space();
    if (ended()) return false;
    switch (text_[at_]) {
      case '{':
        object(depth + 1);
        return true;
      case '[':
        array(depth + 1);
        return true;
      case '"':
        (void)string();
        return true;
      case 't':
        return literal("true");
      case 'f':
        return literal("false");
      case 'n':
        return literal("null");
      default:
        return number();
    }
  }

  void check(int depth) const {
    if (depth > JsonLimits{}.depth) fail("nested too deeply");
  }

  void object(int depth) {
    check(depth);
    out_ += '{';
    ++at_;
    for (bool first = true;; first = false) {
      if (!another('}', first)) break;
      if (text_[at_] != '"') fail("expected a key in quotes");
      const std::size_t before = out_.size();
      if (!first) out_ += ',';
      const bool whole_key = string();
      skip_space();
      if (!ended() && text_[at_] != ':') fail("expected ':' after a key");
      const bool has_value = whole_key && !ended();
      if (has_value) {
        ++at_;
        out_ += ':';
      }
      if (!has_value || !value(depth)) {
        out_.resize(before);
        break;
      }
    }
    out_ += '}';
  }

  void array(int depth) {
    check(depth);
    out_ += '[';
    ++at_;
    for (bool first = true;; first = false) {
      if (!another(']', first)) break;
      const std::size_t before = out_.size();
      if (!first) out_ += ',';
      if (value(depth)) continue;
      out_.resize(before);
      break;
    }
    out_ += ']';
  }

  // Whether an element of a container follows: not at its bracket, which is passed, and not at the
  // end.
  bool another(char closing, bool first) {
    skip_space();
    if (ended()) return false;
    if (text_[at_] == closing) {
      ++at_;
      return false;
    }
    if (first) return true;
    if (text_[at_] != ',') fail(std::string("expected ',' or '") + closing + '\'');
    ++at_;
    skip_space();
    return !ended();
  }

  bool literal(std::string_view word) {
    const std::string_view found = text_.substr(at_, word.size());
    if (!word.starts_with(found)) fail("not a JSON value");
    at_ += found.size();
    if (found == word) out_ += word;
    return found == word;
  }

  bool number() {
    const std::size_t length = json_number_length(text_.substr(at_));
    const std::string_view rest = text_.substr(at_);
    std::size_t end = length;
    while (end < rest.size() && std::string_view("+-.0123456789eE").find(rest[end]) != rest.npos)
      ++end;
    // What no digit could mend is wrong; what ends with the text and one could is only unfinished.
    const bool mendable = json_number_length(std::string(rest.substr(0, end)) + '0') == end + 1;
    if (end == length && length > 0) {
      out_ += rest.substr(0, length);
      at_ += length;
      return true;
    }
    if (end < rest.size() || end == 0 || !mendable) fail("not a JSON value");
    at_ += end;
    return false;
  }

  // Appends the string, closed at the last whole character. False when the text ended inside it.
  bool string() {
    out_ += '"';
    ++at_;
    while (true) {
      const std::size_t plain = plain_end(text_, at_);
      out_ += text_.substr(at_, plain - at_);
      at_ = plain;
      if (ended()) break;
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') {
        ++at_;
        out_ += '"';
        return true;
      }
      if (byte < 0x20) fail("control character in a string");
      if (!(byte == '\\' ? escape() : character())) break;
    }
    at_ = text_.size();
    out_ += '"';
    return false;
  }

  // A character beyond ASCII; false when the text ends within it.
  bool character() {
    const Utf8Sequence sequence = utf8_sequence(text_, at_);
    const auto first = static_cast<unsigned char>(text_[at_]);
    if (!sequence.well_formed) {
      if (at_ + sequence.length < text_.size() || first < 0xC2 || first > 0xF4) {
        fail("ill-formed UTF-8");
      }
      return false;
    }
    out_ += text_.substr(at_, sequence.length);
    at_ += sequence.length;
    return true;
  }

  // False when the text ends within it, or after the first half of a surrogate pair.
  bool escape() {
    if (at_ + 1 == text_.size()) return false;
    if (text_[at_ + 1] != 'u') {
      if (std::string_view("\"\\/bfnrt").find(text_[at_ + 1]) == std::string_view::npos) {
        fail("unknown escape");
      }
      out_ += text_.substr(at_, 2);
      at_ += 2;
      return true;
    }
    const Unit unit = unit_at(at_);
    if (!unit.whole) return false;
    if (unit.code >= 0xDC00 && unit.code <= 0xDFFF) fail("lone surrogate");
    std::size_t length = 6;
    if (unit.code >= 0xD800 && unit.code <= 0xDBFF) {
      if (!std::string_view("\\u").starts_with(text_.substr(at_ + 6, 2))) fail("lone surrogate");
      const Unit low = unit_at(at_ + 6);
      if (!low.whole) return false;
      if (low.code < 0xDC00 || low.code > 0xDFFF) fail("lone surrogate");
      length = 12;
    }
    out_ += text_.substr(at_, length);
    at_ += length;
    return true;
  }

  struct Unit {
    unsigned code = 0;
    bool whole = false;
  };

  // The \uXXXX at that place; not whole when the text ends within it.
  [[nodiscard]] Unit unit_at(std::size_t at) const {
    Unit unit;
    for (std::size_t i = at + 2; i < at + 6; ++i) {
      if (i >= text_.size()) return unit;
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(static_cast<char>(text_[i] | 0x20));
      if (digit == std::string_view::npos || (digit < 10 && text_[i] < '0')) {
        fail("four hexadecimal digits expected after \\u");
      }
      unit.code = unit.code * 16 + static_cast<unsigned>(digit);
    }
    unit.whole = true;
    return unit;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

JsonValue parse_partial_json(std::string_view beginning) {
  return Completion(beginning).run();
}

}  // namespace incipit
