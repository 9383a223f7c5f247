#include "gateway/api/files.h"

#include "gateway/api/anthropic_reply.h"
#include "gateway/api/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace incipit::gateway {

namespace {

struct Kind {
  std::string_view ending;
  std::string_view mime_type;  // the first row of one names its ending
};

constexpr std::array kinds{
    Kind{".txt", "text/plain"},        Kind{".md", "text/markdown"},    Kind{".csv", "text/csv"},
    Kind{".html", "text/html"},        Kind{".htm", "text/html"},       Kind{".xml", "text/xml"},
    Kind{".json", "application/json"}, Kind{".pdf", "application/pdf"}, Kind{".png", "image/png"},
    Kind{".jpg", "image/jpeg"},        Kind{".jpeg", "image/jpeg"},     Kind{".gif", "image/gif"},
    Kind{".webp", "image/webp"},       Kind{".zip", "application/zip"},
};

constexpr std::string_view unknown_type = "application/octet-stream";

std::string_view type_of(std::string_view filename) {
  const auto found = std::ranges::find_if(
      kinds, [&](const Kind& kind) { return filename.ends_with(kind.ending); });
  return found == kinds.end() ? unknown_type : found->mime_type;
}

std::string_view ending_of(std::string_view mime_type) {
  const std::string_view essence = mime_type.substr(0, mime_type.find(';'));
  const auto found = std::ranges::find(kinds, essence, &Kind::mime_type);
  return found == kinds.end() ? std::string_view() : found->ending;
}

std::string last_component(const std::string& path) {
  const std::size_t separator = path.find_last_of("/\\");
  return separator == std::string::npos ? path : path.substr(separator + 1);
}

// What an entry takes besides its content.
std::size_t overhead(const StoredFile& file) {
  return 512 + file.filename.size() + file.mime_type.size();
}

}  // namespace

StoredFile Files::add(const Scope& scope, NewFile file) {
  const TimePoint now = clock_.now();
  Entry entry;
  StoredFile& stored = entry.file;
  stored.id = make_id("file_01");
  stored.filename = last_component(file.filename);
  stored.mime_type = file.mime_type.empty() ? type_of(stored.filename) : file.mime_type;
  if (stored.filename.empty())
    stored.filename = fmt::format("unnamed{}", ending_of(stored.mime_type));
  stored.size = file.content.size();
  stored.created_at = calendar_.date(now);
  if (file.lifetime) {
    entry.expires = now + *file.lifetime;
    stored.expires_at = calendar_.date(*entry.expires);
  }
  stored.content = std::make_shared<const std::string>(std::move(file.content));

  const std::scoped_lock lock(mutex_);
  expire();
  const std::size_t bytes = stored.size + overhead(stored);
  if (bytes > memory_ - used_) {
    ApiError error = invalid_request(
        fmt::format("file: {} bytes do not fit beside the {} of {} that are used; delete files, or "
                    "start the gateway with a larger --files-memory",
                    stored.size, used_, memory_));
    error.error_code = "storage_quota_exceeded";
    throw error;
  }
  used_ += bytes;
  stored.number = ++last_number_;
  Workspace& workspace = workspaces_[scope];
  workspace.numbers.emplace(stored.id, stored.number);
  if (entry.expires) expiries_.emplace(std::pair(*entry.expires, stored.number), scope);
  return workspace.files.emplace(stored.number, std::move(entry)).first->second.file;
}

Files::Workspace* Files::workspace(const Scope& scope) {
  expire();
  const auto found = workspaces_.find(scope);
  return found == workspaces_.end() ? nullptr : &found->second;
}

std::optional<StoredFile> Files::find(const Scope& scope, std::string_view id) {
  const std::scoped_lock lock(mutex_);
  const Workspace* files = workspace(scope);
  if (files == nullptr) return std::nullopt;
  const auto number = files->numbers.find(std::string(id));
  if (number == files->numbers.end()) return std::nullopt;
  return files->files.at(number->second).file;
}

std::vector<StoredFile> Files::list(const Scope& scope) {
  const std::scoped_lock lock(mutex_);
  std::vector<StoredFile> all;
  const Workspace* files = workspace(scope);
  if (files == nullptr) return all;
  all.reserve(files->files.size());
  for (const auto& [number, entry] : files->files)
    all.push_back(entry.file);
  return all;
}

bool Files::remove(const Scope& scope, std::string_view id) {
  const std::scoped_lock lock(mutex_);
  Workspace* files = workspace(scope);
  if (files == nullptr) return false;
  const auto number = files->numbers.find(std::string(id));
  if (number == files->numbers.end()) return false;
  const auto entry = files->files.find(number->second);
  const StoredFile& file = entry->second.file;
  used_ -= overhead(file) + (file.content ? file.size : 0);
  if (entry->second.expires) expiries_.erase({*entry->second.expires, number->second});
  files->files.erase(entry);
  files->numbers.erase(number);
  return true;
}

void Files::expire() {
  const TimePoint now = clock_.now();
  while (!expiries_.empty() && expiries_.begin()->first.first <= now) {
    const auto& [when, scope] = *expiries_.begin();
    StoredFile& file = workspaces_.at(scope).files.at(when.second).file;
    used_ -= file.size;
    file.content.reset();
    expiries_.erase(expiries_.begin());
  }
}

}  // namespace incipit::gateway
