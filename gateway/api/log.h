// One line per request, as JSON.
#pragma once

#include "incipit/usage.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace incipit::gateway {

// What became of a request. Filled in as the request proceeds; written once, at its end.
struct RequestRecord {
  std::string request_id;
  std::string method, path;
  std::string model;       // canonical id, once known
  std::string key_scope;   // "organization/workspace"
  int status = 0;          // 499: the client went away before the answer was complete
  bool generated = false;  // prefill ended, so `usage` and what follows are known
  Usage usage;
  std::int64_t kv_reused = 0;
  std::optional<double> ttft_ms;            // arrival to first token (to prefill's end without one)
  std::optional<double> tokens_per_second;  // of decoding, from the first token on
  int dropped_billing_lines = 0;
  std::string error;  // for the operator; may hold what the client is not told
};

// Threads: any. A line is written whole.
class RequestLog {
 public:
  // To standard error.
  RequestLog() = default;
  // Appends to `file`. Throws std::runtime_error when that cannot be opened.
  explicit RequestLog(const std::filesystem::path& file);

  void write(const RequestRecord& record);

 private:
  std::mutex mutex_;
  std::ofstream file_;
};

// The line without its end, times in RFC 3339.
[[nodiscard]] std::string log_line(const RequestRecord& record, std::string_view time);
// "2026-09-29T08:53:31Z", `offset_seconds` from now.
[[nodiscard]] std::string utc_time(int offset_seconds = 0);

}  // namespace incipit::gateway
