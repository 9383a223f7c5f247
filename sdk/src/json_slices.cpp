#include "json_slices.h"

#include <charconv>
#include <cstddef>

namespace incipit {
namespace {

constexpr std::string_view white_space = " \t\n\r";

// Of a position, or npos: that position, or the end.
std::size_t or_end(std::size_t at, std::string_view text) {
  return at == text.npos ? text.size() : at;
}

// Past the comma after a value.
std::size_t next_value(std::string_view text, std::size_t at) {
  at = json_token(text, at);
  return at < text.size() && text[at] == ',' ? json_token(text, at + 1) : text.size();
}

void append_utf8(std::string& out, unsigned code) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

unsigned code_unit(std::string_view text, std::size_t at) {
  unsigned unit = 0;
  const std::string_view digits = text.substr(or_end(at, text), 4);
  std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
  return unit;
}

// Appends what the escape after the backslash at `at` stands for; returns where it ends.
std::size_t append_unescaped(std::string& out, std::string_view text, std::size_t at) {
  static constexpr std::string_view names = "bfnrt";
  static constexpr std::string_view characters = "\b\f\n\r\t";
  if (at + 1 >= text.size()) return text.size();
  const char c = text[at + 1];
  if (c != 'u') {
    const std::size_t which = names.find(c);
    out += which == names.npos ? c : characters[which];
    return at + 2;
  }
  const unsigned unit = at + 6 <= text.size() ? code_unit(text, at + 2) : 0;
  if (unit < 0xD800 || unit > 0xDBFF || at + 12 > text.size()) {
    append_utf8(out, unit);
    return at + 6;
  }
  append_utf8(out, 0x10000 + ((unit - 0xD800) << 10U) + (code_unit(text, at + 8) - 0xDC00));
  return at + 12;
}

}  // namespace

std::size_t json_token(std::string_view text, std::size_t at) {
  while (at < text.size() && white_space.find(text[at]) != white_space.npos)
    ++at;
  return at;
}

std::size_t json_string_end(std::string_view text, std::size_t at) {
  const std::size_t start = at + 1;
  for (at = text.find('"', start); at != text.npos; at = text.find('"', at + 1)) {
    std::size_t backslashes = 0;
    while (at - backslashes > start && text[at - backslashes - 1] == '\\')
      ++backslashes;
    if (backslashes % 2 == 0) return at + 1;
  }
  return text.size();
}

std::size_t json_value_end(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = json_string_end(text, at);
      if (depth == 0) return at;
      continue;
    }
    if (c == '[' || c == '{') {
      ++depth;
    } else if (depth == 0) {
      return or_end(text.find_first_of(",]} \t\n\r", at), text);
    } else if ((c == ']' || c == '}') && --depth == 0) {
      return at + 1;
    }
    ++at;
  }
  return text.size();
}

bool JsonMemberSlice::is_named(std::string_view name) const {
  if (key.find('\\') != key.npos) return json_unescaped(key) == name;
  return key.size() == name.size() + 2 && key.substr(1, name.size()) == name;
}

std::vector<JsonMemberSlice> json_members(std::string_view object) {
  std::vector<JsonMemberSlice> members;
  std::size_t at = json_token(object, 1);
  while (at < object.size() && object[at] == '"') {
    const std::size_t key_end = json_string_end(object, at);
    const std::size_t start = json_token(object, json_token(object, key_end) + 1);
    if (start >= object.size()) break;
    const std::size_t end = json_value_end(object, start);
    if (members.empty()) members.reserve(4);
    members.push_back({object.substr(at, key_end - at), object.substr(start, end - start)});
    at = next_value(object, end);
  }
  return members;
}

std::vector<std::string_view> json_items(std::string_view array) {
  std::vector<std::string_view> items;
  std::size_t at = json_token(array, 1);
  while (at < array.size() && array[at] != ']') {
    const std::size_t end = json_value_end(array, at);
    items.push_back(array.substr(at, end - at));
    at = next_value(array, end);
  }
  return items;
}

std::string_view json_inside(std::string_view container) {
  if (container.size() < 2) return {};
  const std::size_t start = json_token(container, 1);
  const std::size_t last = container.find_last_not_of(white_space, container.size() - 2);
  return last < start ? std::string_view() : container.substr(start, last + 1 - start);
}

std::string json_unescaped(std::string_view literal) {
  if (literal.size() < 2) return {};
  const std::string_view text = literal.substr(1, literal.size() - 2);
  std::string out;
  std::size_t at = text.find('\\');
  if (at == text.npos) {
    out = text;
    return out;
  }
  out.reserve(text.size());
  std::size_t done = 0;
  while (at != text.npos) {
    out.append(text, done, at - done);
    done = append_unescaped(out, text, at);
    at = done < text.size() ? text.find('\\', done) : text.npos;
  }
  return out.append(text, done < text.size() ? done : text.size());
}

std::string json_without(std::string_view object, std::string_view name) {
  const std::vector<JsonMemberSlice> members = json_members(object);
  const auto start = [&](std::size_t i) {
    return static_cast<std::size_t>(members[i].key.data() - object.data());
  };
  const auto end = [&](std::size_t i) {
    const std::string_view value = members[i].value;
    return static_cast<std::size_t>(value.data() + value.size() - object.data());
  };
  if (members.empty()) return std::string(object);
  std::string out;
  out.reserve(object.size());
  out.append(object, 0, start(0));
  bool first = true;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].is_named(name)) continue;
    const std::size_t from = first ? start(i) : end(i - 1);  // with the comma before it
    out.append(object, from, end(i) - from);
    first = false;
  }
  return out.append(object, end(members.size() - 1));
}

}  // namespace incipit
