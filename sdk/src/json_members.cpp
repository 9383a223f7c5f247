#include "json_members.h"

#include <algorithm>
#include <cstring>

namespace incipit {

std::size_t json_string_end(std::string_view text, std::size_t at) {
  for (std::size_t from = at + 1; from < text.size();) {
    const auto* quote =
        static_cast<const char*>(std::memchr(text.data() + from, '"', text.size() - from));
    if (quote == nullptr) break;
    const auto end = static_cast<std::size_t>(quote - text.data());
    std::size_t backslashes = 0;
    while (end - backslashes > from && text[end - backslashes - 1] == '\\')
      ++backslashes;
    if (backslashes % 2 == 0) return end + 1;
    from = end + 1;
  }
  return text.size();
}

std::size_t json_value_end(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = json_string_end(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
      continue;
    } else if (c == '}' || c == ']') {
      ++at;
      if (depth > 0) --depth;
    } else if (depth > 0) {
      ++at;
      continue;
    } else {
      return std::min(text.find_first_of(",]} \t\n\r", at), text.size());
    }
    if (depth == 0) return at;
  }
  return text.size();
}

std::size_t json_token(std::string_view text, std::size_t at) {
  return at >= text.size() ? text.size()
                           : std::min(text.find_first_not_of(" \t\n\r", at), text.size());
}

}  // namespace incipit
