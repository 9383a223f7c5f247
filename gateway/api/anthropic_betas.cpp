#include "gateway/api/anthropic_betas.h"

#include "gateway/api/anthropic_fields.h"
#include "gateway/api/error.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace incipit::gateway {
namespace {

constexpr std::array<std::string_view, 51> known_betas = {
    "advanced-tool-use-2025-11-20",
    "advisor-tool-2026-03-01",
    "agent-memory-2026-07-22",
    "cache-diagnosis-2026-04-07",
    "claude-code-20250219",
    "code-execution-2025-05-22",
    "compact-2026-01-12",
    "compact-2026-09-04",
    "computer-use-2024-10-22",
    "computer-use-2025-01-24",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "dev-full-thinking-2025-05-14",
    "extended-cache-ttl-2025-04-11",
    "fallback-credit-2026-06-01",
    "fallback-credit-2026-07-01",
    "fast-mode-2026-02-01",
    "files-api-2025-04-14",
    "inline-tools-2026-09-15",
    "interleaved-thinking-2025-05-14",
    "mcp-client-2025-04-04",
    "mcp-client-2025-11-20",
    "mcp-client-2026-09-15",
    "message-batches-2024-09-24",
    "message-threads-2026-08-12",
    "mid-conversation-output-config-2026-07-01",
    "mid-conversation-system-clear-at-2026-08-21",
    "mid-conversation-tool-changes-2026-07-01",
    "model-context-window-exceeded-2025-08-26",
    "oauth-2025-04-20",
    "output-128k-2025-02-19",
    "output-300k-2026-03-24",
    "pdfs-2024-09-25",
    "prompt-caching-2024-07-31",
    "prompt-caching-scope-2026-01-05",
    "redact-thinking-2026-02-12",
    "server-side-fallback-2026-06-01",
    "server-side-fallback-2026-07-01",
    "skills-2025-10-02",
    "structured-outputs-2025-11-13",
    "task-budgets-2026-03-13",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
    "thinking-token-count-2026-05-13",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
    "user-profiles-2026-03-24",
    "user-profiles-2026-08-18",
    "user-profiles-2026-09-04",
    "user-profiles-billing-2026-10-01",
};

bool is_known(std::string_view beta) {
  return std::ranges::find(known_betas, beta) != known_betas.end()
         || beta.starts_with("managed-agents-") || beta.starts_with("admin-");
}

}  // namespace

std::vector<std::string> betas_of(const HttpRequest& request) {
  std::vector<std::string> betas;
  for (const auto& [name, value] : request.headers) {
    if (name != "anthropic-beta") continue;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const std::size_t first = value.find_first_not_of(" \t", begin);
      if (first < end) {
        const std::size_t last = value.find_last_not_of(" \t", end - 1);
        betas.push_back(value.substr(first, last + 1 - first));
      }
      begin = end + 1;
    }
  }
  return betas;
}

void check_betas(const std::vector<std::string>& betas) {
  std::string unknown;
  for (const std::string& beta : betas) {
    if (is_known(beta)) continue;
    unknown += (unknown.empty() ? "`" : ", `") + shown(beta) + "`";
  }
  if (unknown.empty()) return;
  throw invalid_request("Unexpected value(s) " + unknown
                        + " for the `anthropic-beta` header. Please consult our documentation at "
                          "platform.claude.com/docs or try again without the header.");
}

}  // namespace incipit::gateway
