#include "incipit/json.h"
#include "utf8.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace incipit {
namespace {

bool is_escaped(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// Of one of the 34 characters that JSON demands to be escaped.
std::string_view escape_of(char c) {
  static constexpr std::string_view controls =
      "\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\u0008\\u0009\\u000a\\u000b"
      "\\u000c\\u000d\\u000e\\u000f\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017"
      "\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f";
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return controls.substr(static_cast<unsigned char>(c) * 6U, 6);
  }
}

// How many of the eight bytes at `from` stand before the first that JSON escapes.
std::size_t plain_of_eight(const char* from) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t tops = ones * 0x80;
  if constexpr (std::endian::native != std::endian::little) {
    return static_cast<std::size_t>(std::find_if(from, from + 8, is_escaped) - from);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, from, 8);
  // Subtracting borrows from the bit above a byte that was smaller: exact for the lowest such byte.
  const auto below = [](std::uint64_t bytes, std::uint64_t limit) {
    return (bytes - ones * limit) & ~bytes & tops;
  };
  const std::uint64_t found =
      below(word, 0x20) | below(word ^ (ones * '"'), 1) | below(word ^ (ones * '\\'), 1);
  return static_cast<std::size_t>(std::countr_zero(found)) / 8;
}

void append_well_formed(std::string& out, std::string_view text) {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text.size() - at >= 8) {
      const std::size_t plain = plain_of_eight(text.data() + at);
      at += plain;
      if (plain == 8) continue;
    } else if (!is_escaped(text[at])) {
      ++at;
      continue;
    }
    out.append(text, done, at - done).append(escape_of(text[at]));
    done = ++at;
  }
  out.append(text, done);
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  if (is_utf8(text)) {
    append_well_formed(out, text);
  } else {
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Sequence sequence = utf8_sequence(text, at);
      if (sequence.well_formed) {
        append_well_formed(out, text.substr(at, sequence.length));
      } else {
        out += "\xEF\xBF\xBD";
      }
      at += sequence.length;
    }
  }
  out += '"';
}

}  // namespace

void JsonWriter::separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  out_ += '{';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  out_ += '}';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  separate();
  out_ += '[';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  out_ += ']';
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_string(out_, name);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  append_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  separate();
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out_.append(digits.data(), end);
  return *this;
}

JsonWriter& JsonWriter::number(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out_.append(digits.data(), end);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool truth) {
  return raw(truth ? "true" : "false");
}

JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

}  // namespace incipit
