// API keys, and whose cache entries they may share. Source: anthropic-wire W-7..W-9, C-59..C-61.
#pragma once

#include "gateway/api/exchange.h"
#include "gateway/cache/ledger.h"

#include <filesystem>
#include <string>
#include <unordered_map>

namespace incipit::gateway {

// Immutable after construction; any thread.
class Keys {
 public:
  // No keys configured: every caller, with or without a key, is organization "local", workspace
  // "default".
  Keys() = default;

  // JSON lines: {"key": "…", "organization": "…", "workspace": "…"}; the last two may be left out
  // ("local", "default"). Empty lines are skipped. Throws std::runtime_error with file and line for
  // an unreadable file, a line that is not like that, a key given twice, or a file without a key;
  // no message repeats a key.
  explicit Keys(const std::filesystem::path& file);

  [[nodiscard]] bool required() const { return !scopes_.empty(); }

  // Throws ApiError 401. `x-api-key` and `Authorization: Bearer` are equal; one valid key suffices.
  // 403 when `anthropic-workspace-id` names another workspace than the key's (section 3.1).
  [[nodiscard]] Scope scope_of(const HttpRequest& request) const;

 private:
  [[nodiscard]] const Scope& key_scope(const HttpRequest& request) const;

  std::unordered_map<std::string, Scope> scopes_;
};

}  // namespace incipit::gateway
