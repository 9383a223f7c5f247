#include "gateway/api/exchange.h"

#include <charconv>

namespace incipit::gateway {

const std::string* HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::vector<std::string> HttpRequest::query_values(std::string_view name) const {
  std::vector<std::string> values;
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (percent_decoded(pair.substr(0, equals)) == name) {
      values.push_back(percent_decoded(pair.substr(std::min(equals + 1, pair.size()))));
    }
  }
  return values;
}

std::string path_segment(std::string_view path, std::size_t index) {
  for (std::size_t slashes = 0; path.starts_with('/'); ++slashes) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    if (slashes == index) return percent_decoded(path.substr(0, end));
    path.remove_prefix(end);
  }
  return {};
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size()
        && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace incipit::gateway
