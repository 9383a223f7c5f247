#include "url.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace incipit {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_visible_ascii(char c) {
  return c > ' ' && c < 0x7F;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// Scheme, host and port in one spelling; empty when `url` is not absolute.
std::string origin(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos || url.find_first_of("/?#") < scheme) return {};
  const std::string_view rest = url.substr(scheme + 3);
  std::string result =
      lower(url.substr(0, scheme + 3)) + lower(rest.substr(0, rest.find_first_of("/?#")));
  for (const std::string_view default_port : {"http:80", "https:443"}) {
    const std::size_t colon = default_port.find(':');
    if (result.starts_with(std::string(default_port.substr(0, colon)) + "://")
        && result.ends_with(default_port.substr(colon)))
      result.resize(result.size() - (default_port.size() - colon));
  }
  return result;
}

// Parts of a query as they are sent, `name=value`.
void merge(std::vector<std::string>& parts, const Query& query) {
  const auto name_of = [](std::string_view part) { return part.substr(0, part.find('=')); };
  const auto replaced = [&](const std::string& part) {
    return std::any_of(query.begin(), query.end(), [&](const auto& pair) {
      return percent_encoded(pair.first) == name_of(part);
    });
  };
  parts.erase(std::remove_if(parts.begin(), parts.end(), replaced), parts.end());
  for (const auto& [name, value] : query)
    parts.push_back(percent_encoded(name) + "=" + percent_encoded(value));
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  static constexpr std::string_view hex = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    if (is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += '%';
    result += hex[byte >> 4U];
    result += hex[byte & 15U];
  }
  return result;
}

std::string path_segment(std::string_view id, std::string_view what) {
  if (id.empty() || id == "." || id == "..")
    throw PromptError("W-19.2", {},
                      std::string(what)
                          + (id.empty() ? " is empty" : " is '" + std::string(id) + "'")
                          + ", which would address something else");
  return percent_encoded(id);
}

std::string checked_base_url(std::string_view url) {
  const auto refuse = [](const char* why) -> PromptError {
    // Not the URL itself: it may hold a password.
    return {
        "W-1",
        {},
        std::string("the base URL ") + why
            + "; it should look like https://api.anthropic.com or http://localhost:8080/prefix"};
  };
  const std::string start = origin(url);
  const bool http = start.starts_with("http://");
  if (!http && !start.starts_with("https://"))
    throw refuse("does not start with http:// or https://");
  const std::string_view host = std::string_view(start).substr(http ? 7 : 8);
  if (host.empty() || host.starts_with(':')) throw refuse("names no host");
  if (host.find('@') != std::string_view::npos)
    throw refuse("holds a user name or password, which belong into a header");
  if (url.find_first_of("?#") != std::string_view::npos) throw refuse("has a query or fragment");
  for (const char c : url)
    if (!is_visible_ascii(c) || c == '\\')
      throw refuse("holds a blank, backslash, control or non-ASCII character");
  while (url.ends_with('/'))
    url.remove_suffix(1);
  return std::string(url);
}

std::string joined_url(std::string_view base, std::string_view path,
                       std::initializer_list<const Query*> queries) {
  for (const char c : path)
    if (!is_visible_ascii(c) || c == '#')
      throw PromptError("W-19.2", {},
                        "the path of a request holds a blank, '#', control or non-ASCII "
                        "character; percent-encode it");
  const std::string target = origin(path);
  if (!target.empty() && target != origin(base))
    throw PromptError("W-19.2", {},
                      "credentials for " + origin(base) + " are not sent to " + target
                          + "; make a client with that base URL");

  const std::size_t mark = path.find('?');
  std::vector<std::string> parts;
  if (mark != std::string_view::npos) {
    std::string_view rest = path.substr(mark + 1);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('&'), rest.size());
      if (end > 0) parts.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  for (const Query* query : queries)
    merge(parts, *query);

  std::string url;
  if (target.empty()) {
    url = base;
    if (!path.starts_with('/')) url += '/';
  }
  url += path.substr(0, mark);
  char separator = '?';
  for (const std::string& part : parts) {
    url += separator;
    url += part;
    separator = '&';
  }
  return url;
}

}  // namespace incipit
