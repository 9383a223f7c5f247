#include "gateway/api/keys.h"

#include "gateway/api/error.h"
#include "incipit/json.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

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

// A member that must be a string that is not empty; `otherwise` when it is not there.
std::string member(const JsonValue& line, std::string_view name, std::string_view otherwise) {
  const JsonValue* value = line.find(name);
  if (value == nullptr && !otherwise.empty()) return std::string(otherwise);
  if (value == nullptr || !value->is_string() || value->as_string().empty()) {
    throw std::runtime_error(fmt::format("\"{}\" must be a string that is not empty", name));
  }
  return value->as_string();
}

std::pair<std::string, Scope> read_key(std::string_view text) {
  const JsonValue line = JsonValue::parse(text);
  if (!line.is_object()) {
    throw std::runtime_error(R"(expected {"key": "…", "organization": "…", "workspace": "…"})");
  }
  for (const JsonMember& known : line.as_object()) {
    if (known.name != "key" && known.name != "organization" && known.name != "workspace") {
      throw std::runtime_error(fmt::format("there is no field \"{}\"", known.name));
    }
  }
  return {member(line, "key", {}),
          Scope{member(line, "organization", "local"), member(line, "workspace", "default")}};
}

}  // namespace

Keys::Keys(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("cannot read the keys file {}", file.string()));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      if (!scopes_.insert(read_key(line)).second) {
        throw std::runtime_error("this key was already given");
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{} line {}: {}", file.string(), number, error.what()));
    }
  }
  if (in.bad() || scopes_.empty()) {
    throw std::runtime_error(fmt::format("the keys file {} holds no key", file.string()));
  }
}

Scope Keys::scope_of(const HttpRequest& request) const {
  if (!required()) return {"local", "default"};
  const Scope& scope = key_scope(request);
  const std::string* workspace = request.header("anthropic-workspace-id");
  if (workspace != nullptr && *workspace != scope.workspace) {
    throw ApiError(
        403, "permission_error",
        fmt::format("anthropic-workspace-id: this key belongs to the workspace '{}'; send "
                    "that one or leave the header out",
                    scope.workspace));
  }
  return scope;
}

const Scope& Keys::key_scope(const HttpRequest& request) const {
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
