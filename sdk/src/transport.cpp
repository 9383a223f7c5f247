#include "incipit/transport.h"

#include <algorithm>
#include <utility>

namespace incipit {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

auto has_name(std::string_view name) {
  return [name](const HttpHeader& header) {
    return std::equal(name.begin(), name.end(), header.name.begin(), header.name.end(),
                      [](char a, char b) { return lower(a) == lower(b); });
  };
}

class WholeBody final : public HttpBody {
 public:
  explicit WholeBody(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string_view read() override {
    return std::exchange(read_, true) ? std::string_view() : std::string_view(bytes_);
  }

 private:
  std::string bytes_;
  bool read_ = false;
};

}  // namespace

void HttpRequest::set_header(std::string_view name, std::optional<std::string> value) {
  auto found = std::find_if(headers.begin(), headers.end(), has_name(name));
  if (value) {
    if (found == headers.end()) {
      headers.push_back({std::string(name), std::move(*value)});
      return;
    }
    found->value = std::move(*value);
    ++found;
  }
  headers.erase(std::remove_if(found, headers.end(), has_name(name)), headers.end());
}

const std::string* HttpResponse::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), has_name(name));
  return found == headers.end() ? nullptr : &found->value;
}

std::string HttpResponse::text() {
  std::string whole;
  while (body != nullptr) {
    const std::string_view bytes = body->read();
    if (bytes.empty()) break;
    whole += bytes;
  }
  return whole;
}

std::unique_ptr<HttpBody> whole_body(std::string bytes) {
  return std::make_unique<WholeBody>(std::move(bytes));
}

}  // namespace incipit
