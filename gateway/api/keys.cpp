#include "gateway/api/keys.h"

#include "gateway/api/error.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace incipit::gateway {

namespace {

// The token of "Bearer TOKEN", scheme in any case; empty for another scheme.
std::string bearer_token(std::string_view value) {
  constexpr std::string_view scheme = "bearer ";
  if (value.size() < scheme.size()) return {};
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    if ((value[i] | 0x20) != (scheme[i] | 0x20)) return {};
  }
  value.remove_prefix(scheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return std::string(value);
}

}  // namespace

Keys::Keys(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("cannot read the keys file {}", file.string()));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key) || key.front() == '#') continue;
    Scope scope{"local", "default"};
    std::string extra;
    if (words >> extra) scope.organization = extra;
    if (words >> extra) scope.workspace = extra;
    if (words >> extra) {
      throw std::runtime_error(
          fmt::format("{} line {}: expected `KEY ORGANIZATION WORKSPACE`, found a fourth word",
                      file.string(), number));
    }
    if (!scopes_.emplace(key, scope).second) {
      throw std::runtime_error(
          fmt::format("{} line {}: this key was already given", file.string(), number));
    }
  }
  if (in.bad() || scopes_.empty()) {
    throw std::runtime_error(fmt::format(
        "the keys file {} holds no key; write one `KEY ORGANIZATION WORKSPACE` per line",
        file.string()));
  }
}

Scope Keys::scope_of(const HttpRequest& request) const {
  if (!required()) return {"local", "default"};
  const std::string* key = request.header("x-api-key");
  const std::string* authorization = request.header("authorization");
  if (key != nullptr) {
    if (const auto found = scopes_.find(*key); found != scopes_.end()) return found->second;
  }
  if (authorization != nullptr) {
    if (const auto found = scopes_.find(bearer_token(*authorization)); found != scopes_.end()) {
      return found->second;
    }
  }
  if (key != nullptr) throw ApiError(401, "authentication_error", "invalid x-api-key");
  if (authorization != nullptr) {
    throw ApiError(401, "authentication_error", "invalid bearer token");
  }
  throw ApiError(401, "authentication_error", "x-api-key header is required");
}

}  // namespace incipit::gateway
