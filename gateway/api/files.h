// Uploaded files, in memory. Source: anthropic-wire section 16.
#pragma once

#include "gateway/api/calendar.h"
#include "gateway/cache/ledger.h"
#include "gateway/clock.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace incipit::gateway {

struct NewFile {
  std::string filename;   // as sent; only what is behind the last separator of folders is kept
  std::string mime_type;  // empty: told by the name's ending
  std::string content;
  std::optional<std::chrono::seconds> lifetime;  // none: until it is deleted
};

struct StoredFile {
  std::string id;
  std::uint64_t number = 0;  // grows with each file of the gateway
  std::string filename;
  std::string mime_type;
  std::size_t size = 0;
  std::string created_at;                      // RFC 3339
  std::string expires_at;                      // empty: never
  std::shared_ptr<const std::string> content;  // null once it has expired
};

// The files of all workspaces; no workspace sees another's. A file that has expired loses its
// content and is listed until it is deleted. Any thread.
class Files {
 public:
  // `memory`: the most that all files may take, in bytes.
  Files(const Clock& clock, std::size_t memory)
      : clock_(clock), calendar_(clock), memory_(memory) {}

  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  // Throws ApiError 400 storage_quota_exceeded.
  StoredFile add(const Scope& scope, NewFile file);
  [[nodiscard]] std::optional<StoredFile> find(const Scope& scope, std::string_view id);
  [[nodiscard]] std::vector<StoredFile> list(const Scope& scope);  // newest first
  // Whether there was one.
  bool remove(const Scope& scope, std::string_view id);

 private:
  struct Entry {
    StoredFile file;
    std::optional<TimePoint> expires;
  };

  using Shelf = std::map<std::uint64_t, Entry, std::greater<>>;

  struct Workspace {
    Shelf files;
    std::unordered_map<std::string, std::uint64_t> numbers;  // by id
  };

  Workspace* workspace(const Scope& scope);
  void expire();

  const Clock& clock_;
  const Calendar calendar_;
  const std::size_t memory_;
  std::mutex mutex_;
  std::map<Scope, Workspace> workspaces_;
  std::map<std::pair<TimePoint, std::uint64_t>, Scope> expiries_;  // by time and number
  std::size_t used_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace incipit::gateway
