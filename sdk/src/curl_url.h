// URLs, as libcurl reads them. Private to the SDK.
#pragma once

#include <string>

namespace incipit {

struct HttpUrl {
  std::string text;
  std::string origin;  // "https://api.anthropic.com:443": what may share a connection and a key
};

// The absolute URL of `reference`, seen from the URL `base` if there is one. Throws TransportError
// (other), quoting neither: keys travel in URLs too.
[[nodiscard]] HttpUrl read_url(const std::string& reference, const std::string& base = {});

}  // namespace incipit
