#include "gateway/api/anthropic_file_text.h"

#include "gateway/prompt/utf8.h"

#include <utility>

namespace incipit::gateway {
namespace {

// A short body may name a large file many times: what all mentions add up to is bounded by what a
// body could have held itself.
constexpr std::size_t most_bytes = std::size_t{32} << 20;

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (step.kind != Utf8Step::Kind::character) return false;
    bytes.remove_prefix(step.length);
  }
  return true;
}

std::string_view essence(std::string_view mime_type) {
  const std::string_view type = mime_type.substr(0, mime_type.find(';'));
  return type.substr(0, type.find_last_not_of(' ') + 1);
}

}  // namespace

std::string_view FileTexts::text(const std::string& id, const std::string& path) {
  auto known = texts_.find(id);
  if (known == texts_.end()) {
    const auto& find_file = reading_.context.find_file;
    std::optional<FoundFile> file = find_file ? find_file(id) : std::nullopt;
    if (!file) throw ApiError(404, "not_found_error", "File not found: " + shown(id));
    const std::string_view type = essence(file->mime_type);
    if (type == "application/pdf") {
      reading_.refuse(path, "file '" + shown(id)
                                + "' is a PDF document: the model of this gateway takes text only; "
                                  "upload its text as text/plain");
      file->bytes.clear();
    } else if (!type.starts_with("text/")) {
      throw invalid_request(path + ": file '" + shown(id) + "' is of type '" + shown(type)
                            + "'; a document is application/pdf or text/plain");
    } else if (!is_utf8(file->bytes)) {
      throw invalid_request(path + ": file '" + shown(id) + "' is not text in UTF-8");
    }
    known = texts_.emplace(id, std::move(file->bytes)).first;
  }
  used_ += known->second.size();
  if (used_ > most_bytes) {
    throw ApiError(413, "request_too_large",
                   path + ": the files of this request hold more than "
                       + std::to_string(most_bytes >> 20) + " MB of text");
  }
  return known->second;
}

}  // namespace incipit::gateway
