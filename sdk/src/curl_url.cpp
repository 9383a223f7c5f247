#include "sdk/src/curl_url.h"

#include "incipit/transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <new>

namespace incipit {
namespace {

struct Free {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }

  void operator()(char* text) const { curl_free(text); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
  return std::unique_ptr<char, Free>(text).get();
}

}  // namespace

HttpUrl read_url(const std::string& reference, const std::string& base) {
  const std::unique_ptr<CURLU, Free> url(curl_url());
  if (url == nullptr) throw std::bad_alloc();
  CURLUcode code = CURLUE_OK;
  if (!base.empty()) code = curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0);
  if (code == CURLUE_OK) code = curl_url_set(url.get(), CURLUPART_URL, reference.c_str(), 0);
  std::string scheme = part(url.get(), CURLUPART_SCHEME);
  if (code != CURLUE_OK || (scheme != "http" && scheme != "https")) {
    const std::string why =
        code != CURLUE_OK ? curl_url_strerror(code) : "only http and https are spoken";
    throw TransportError(TransportError::Kind::other, "the URL is not usable: " + why, false);
  }
  std::string host = part(url.get(), CURLUPART_HOST);
  std::transform(host.begin(), host.end(), host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return {.text = part(url.get(), CURLUPART_URL),
          .origin = scheme + "://" + host + ":" + part(url.get(), CURLUPART_PORT)};
}

}  // namespace incipit
