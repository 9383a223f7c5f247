#include "gateway/api/file_routes.h"

#include "gateway/api/anthropic_fields.h"
#include "gateway/api/multipart.h"
#include "gateway/api/paging.h"
#include "incipit/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace incipit::gateway {

namespace {

constexpr int shortest_life = 3600;      // seconds
constexpr int longest_life = 7'776'000;  // ninety days
constexpr std::size_t most_ids = 100;
constexpr std::string_view cursor_prefix = "page_";

void write_file(JsonWriter& json, const StoredFile& file) {
  json.begin_object();
  json.key("type").string("file");
  json.key("id").string(file.id);
  json.key("filename").string(file.filename);
  json.key("mime_type").string(file.mime_type);
  json.key("size_bytes").integer(static_cast<std::int64_t>(file.size));
  json.key("created_at").string(file.created_at);
  json.key("downloadable").boolean(false);  // only what tools make is, and none runs here
  json.key("expires_at");
  if (file.expires_at.empty()) {
    json.null();
  } else {
    json.string(file.expires_at);
  }
  json.end_object();
}

StoredFile existing_file(const HttpRequest& request, Services& services, const Scope& scope) {
  const std::string id = path_segment(request.path, 2);
  std::optional<StoredFile> file = services.files.find(scope, id);
  if (!file) throw ApiError(404, "not_found_error", "File not found: " + shown(id));
  return *std::move(file);
}

std::chrono::seconds lifetime_of(std::string_view text) {
  int seconds = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (code != std::errc{} || end != text.data() + text.size()) {
    throw invalid_request("expires_in_seconds: Input should be a valid integer");
  }
  if (seconds < shortest_life) {
    throw invalid_request(fmt::format(
        "expires_in_seconds: Input should be greater than or equal to {}", shortest_life));
  }
  if (seconds > longest_life) {
    throw invalid_request(
        fmt::format("expires_in_seconds: Input should be less than or equal to {}", longest_life));
  }
  return std::chrono::seconds(seconds);
}

// `ids` in any of the spellings of a list: repeated, with brackets, with commas.
std::set<std::string> wanted_ids(const HttpRequest& request) {
  std::set<std::string> ids;
  for (const std::string_view name : {"ids", "ids[]"}) {
    for (const std::string& value : request.query_values(name)) {
      for (std::size_t begin = 0; begin <= value.size();) {
        const std::size_t end = std::min(value.find(',', begin), value.size());
        if (end > begin) ids.insert(value.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }
  if (ids.size() > most_ids) {
    throw invalid_request(
        fmt::format("ids: at most {} may be asked for, not {}", most_ids, ids.size()));
  }
  return ids;
}

// A cursor names the last file of its page: it holds when that is deleted.
Page page_by_cursor(const HttpRequest& request, const std::string& cursor,
                    const std::vector<StoredFile>& files) {
  if (one_value(request, "after_id") || one_value(request, "before_id")) {
    throw invalid_request("page: cannot be combined with after_id or before_id");
  }
  const std::string_view text(cursor);
  std::uint64_t number = 0;
  const char* begin = text.data() + std::min(cursor_prefix.size(), text.size());
  const auto [end, code] = std::from_chars(begin, text.data() + text.size(), number);
  if (!text.starts_with(cursor_prefix) || code != std::errc{} || end != text.data() + text.size()) {
    throw invalid_request("page: '" + shown(cursor) + "' is not a next_page of this list");
  }
  const auto first =
      std::ranges::find_if(files, [&](const StoredFile& file) { return file.number < number; });
  Page page;
  page.begin = static_cast<std::size_t>(first - files.begin());
  page.end = std::min(files.size(), page.begin + page_limit(request));
  page.has_more = page.end < files.size();
  return page;
}

}  // namespace

Response upload_file(const HttpRequest& request, Services& services, const Scope& scope,
                     RequestRecord& /*record*/) {
  const FormPart* file = nullptr;
  NewFile upload;
  const std::vector<FormPart> parts = parse_form_data(request.header("content-type"), request.body);
  for (const FormPart& part : parts) {
    if (part.name == "file") {
      if (file != nullptr) throw invalid_request("file: given more than once");
      file = &part;
    } else if (part.name == "expires_in_seconds") {
      if (upload.lifetime) throw invalid_request("expires_in_seconds: given more than once");
      upload.lifetime = lifetime_of(part.content);
    } else {
      throw invalid_request(shown(part.name) + ": Extra inputs are not permitted");
    }
  }
  if (file == nullptr) throw invalid_request("file: Field required");
  upload.filename = file->filename.value_or("");
  upload.mime_type = file->content_type;
  upload.content = std::string(file->content);
  Response response;
  JsonWriter json(response.body);
  write_file(json, services.files.add(scope, std::move(upload)));
  return response;
}

Response list_files(const HttpRequest& request, Services& services, const Scope& scope,
                    RequestRecord& /*record*/) {
  const std::set<std::string> wanted = wanted_ids(request);
  const std::optional<std::string> cursor = one_value(request, "page");
  std::vector<StoredFile> files;
  if (!wanted.empty()) {
    for (const std::string_view other : {"page", "limit", "after_id", "before_id"}) {
      if (one_value(request, other)) {
        throw invalid_request(fmt::format("ids: cannot be combined with {}", other));
      }
    }
    for (const std::string& id : wanted) {
      if (std::optional<StoredFile> file = services.files.find(scope, id)) {
        files.push_back(*std::move(file));
      }
    }
    std::ranges::sort(files, std::greater<>(), &StoredFile::number);
  } else {
    files = services.files.list(scope);
  }
  std::vector<std::string_view> ids;
  for (const StoredFile& file : files)
    ids.emplace_back(file.id);
  Page page;
  if (!wanted.empty()) {
    page.end = files.size();
  } else if (cursor) {
    page = page_by_cursor(request, *cursor, files);
  } else {
    page = page_of(request, ids, "file");
  }

  Response response;
  JsonWriter json(response.body);
  json.begin_object().key("data").begin_array();
  for (std::size_t i = page.begin; i < page.end; ++i)
    write_file(json, files[i]);
  json.end_array().key("next_page");
  if (page.end < files.size() && page.begin < page.end) {
    json.string(fmt::format("{}{}", cursor_prefix, files[page.end - 1].number));
  } else {
    json.null();
  }
  write_page_ends(json, page, ids);
  json.end_object();
  return response;
}

Response show_file(const HttpRequest& request, Services& services, const Scope& scope,
                   RequestRecord& /*record*/) {
  Response response;
  JsonWriter json(response.body);
  write_file(json, existing_file(request, services, scope));
  return response;
}

Response download_file(const HttpRequest& request, Services& services, const Scope& scope,
                       RequestRecord& /*record*/) {
  const StoredFile file = existing_file(request, services, scope);
  if (!file.content) {
    ApiError error(404, "not_found_error",
                   fmt::format("File expired: {} at {}", file.id, file.expires_at));
    error.error_code = "file_expired";
    throw error;
  }
  ApiError error = invalid_request(fmt::format(
      "File not downloadable: {} was uploaded; only files that tools made can be read back",
      file.id));
  error.error_code = "file_not_downloadable";
  throw error;
}

Response delete_file(const HttpRequest& request, Services& services, const Scope& scope,
                     RequestRecord& /*record*/) {
  const std::string id = path_segment(request.path, 2);
  if (!services.files.remove(scope, id)) {
    throw ApiError(404, "not_found_error", "File not found: " + shown(id));
  }
  Response response;
  JsonWriter(response.body)
      .begin_object()
      .key("id")
      .string(id)
      .key("type")
      .string("file_deleted")
      .end_object();
  return response;
}

}  // namespace incipit::gateway
