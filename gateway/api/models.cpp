#include "gateway/api/anthropic_request.h"

#include <algorithm>
#include <string>

namespace incipit::gateway {

namespace {

// `created_at` is the date in the id where it has one, else the release date where the
// documentation states it (the 5.2 models), else the earliest date it could be: that of the newest
// dated model before it. Clients only need an RFC 3339 string that sorts newest first.
constexpr std::string_view not_before = "2025-11-01T00:00:00Z";
constexpr int output_of_current = 128'000;
constexpr int output_of_4_5 = 64'000;

ModelRow current(std::string_view id, std::string_view display_name, std::string_view line,
                 std::string_view created_at = not_before, std::string_view lifecycle = "active",
                 std::string_view retires_at = "") {
  return {id, "", display_name, created_at, line, lifecycle, output_of_current, retires_at};
}

// A name that becomes part of log lines, headers and answers: nothing but what model ids are made
// of.
bool is_claude_name(std::string_view name) {
  constexpr std::string_view prefix = "claude-";
  constexpr std::size_t longest = 128;
  return name.size() > prefix.size() && name.size() <= longest && name.starts_with(prefix)
         && std::all_of(name.begin(), name.end(), [](char c) {
              return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                     || c == '-' || c == '.' || c == '_' || c == '@' || c == ':';
            });
}

}  // namespace

const std::vector<ModelRow>& model_table() {
  static const std::vector<ModelRow> table = {
      current("claude-fable-5-2", "Claude Fable 5.2", "fable", "2026-11-09T00:00:00Z"),
      current("claude-mythos-5-2", "Claude Mythos 5.2", "mythos", "2026-11-09T00:00:00Z"),
      current("claude-haiku-5-5", "Claude Haiku 5.5", "haiku"),
      current("claude-sonnet-5-5", "Claude Sonnet 5.5", "sonnet"),
      current("claude-fable-5-1", "Claude Fable 5.1", "fable"),
      current("claude-opus-5-5", "Claude Opus 5.5", "opus"),
      current("claude-mythos-5-1", "Claude Mythos 5.1", "mythos"),
      current("claude-sonnet-5", "Claude Sonnet 5", "sonnet"),
      current("claude-fable-5", "Claude Fable 5", "fable"),
      current("claude-mythos-5", "Claude Mythos 5", "mythos"),
      current("claude-opus-5", "Claude Opus 5", "opus"),
      current("claude-opus-4-8", "Claude Opus 4.8", "opus"),
      current("claude-opus-4-7", "Claude Opus 4.7", "opus"),
      current("claude-mythos-preview", "Claude Mythos Preview", "mythos", not_before, "retired",
              "2026-06-30T00:00:00Z"),
      current("claude-opus-4-6", "Claude Opus 4.6", "opus"),
      current("claude-sonnet-4-6", "Claude Sonnet 4.6", "sonnet"),
      {"claude-opus-4-5-20251101", "claude-opus-4-5", "Claude Opus 4.5", "2025-11-01T00:00:00Z",
       "opus", "deprecated", output_of_4_5, "2027-01-22T00:00:00Z"},
      {"claude-haiku-4-5-20251001", "claude-haiku-4-5", "Claude Haiku 4.5", "2025-10-01T00:00:00Z",
       "haiku", "active", output_of_4_5, ""},
      {"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "Claude Sonnet 4.5",
       "2025-09-29T00:00:00Z", "sonnet", "deprecated", output_of_4_5, "2026-11-30T00:00:00Z"},
  };
  return table;
}

std::optional<std::string> resolve_model(std::string_view name, std::string_view local_model) {
  for (const ModelRow& row : model_table()) {
    if (name == row.id || (!row.alias.empty() && name == row.alias)) return std::string(row.id);
  }
  if (is_claude_name(name)) return std::string(name);
  if (!name.empty() && name == local_model) return std::string(local_model);
  return std::nullopt;
}

}  // namespace incipit::gateway
