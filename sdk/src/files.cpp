#include "client_state.h"
#include "json_place.h"
#include "listing.h"
#include "url.h"

#include <utility>

namespace incipit {
namespace {

constexpr std::string_view files_path = "/v1/files";

std::string file_path(std::string_view id, std::string_view end = {}) {
  return std::string(files_path) + "/" + path_segment(id, "the file id") + std::string(end);
}

FileMetadata read_file(const JsonPlace& place) {
  const JsonObject file(place);
  return {.id = file.at("id").string(),
          .filename = file.string_or_empty("filename"),
          .mime_type = file.string_or_empty("mime_type"),
          .size_bytes = file.integer("size_bytes").value_or(0),
          .created_at = file.string_or_empty("created_at"),
          .downloadable = file.boolean("downloadable").value_or(false),
          .expires_at = file.string_or_empty("expires_at"),
          .json = place.json()};
}

// As browsers do it (the HTML standard's multipart encoding): these three bytes would end the name.
std::string quoted_filename(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '"')
      result += "%22";
    else if (c == '\r')
      result += "%0D";
    else if (c == '\n')
      result += "%0A";
    else
      result += c;
  }
  return result;
}

// One that the content does not hold, the same for the same content.
std::string boundary_for(std::string_view content) {
  std::string boundary = "incipit-file-boundary";
  for (int number = 0; content.find(boundary) != std::string_view::npos; ++number)
    boundary = "incipit-file-boundary-" + std::to_string(number);
  return boundary;
}

Call upload_call(const FileUpload& file) {
  if (file.mime_type.empty() || file.mime_type.find_first_of("\r\n") != std::string::npos)
    throw PromptError("W-16", {}, "the MIME type of a file is empty or holds a line break");
  const std::string boundary = boundary_for(file.content);
  auto body = std::make_shared<std::string>();
  body->reserve(file.content.size() + file.filename.size() + 400);
  *body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\""
           + quoted_filename(file.filename) + "\"\r\nContent-Type: " + file.mime_type + "\r\n\r\n";
  *body += file.content;
  if (file.expires_in_seconds)
    *body += "\r\n--" + boundary
             + "\r\nContent-Disposition: form-data; name=\"expires_in_seconds\"\r\n\r\n"
             + std::to_string(*file.expires_in_seconds);
  *body += "\r\n--" + boundary + "--\r\n";
  return {.method = "POST",
          .path = std::string(files_path),
          .body = std::move(body),
          .content_type = "multipart/form-data; boundary=" + boundary};
}

}  // namespace

FileMetadata Files::upload(const FileUpload& file, const RequestOptions& options) const {
  const RawResponse response = client_.state_->sender.send_whole(upload_call(file), options);
  return read_file(JsonPlace::check(response.body));
}

FileMetadata Files::get(std::string_view id, const RequestOptions& options) const {
  return read_file(JsonPlace::check(client_.call("GET", file_path(id), {}, options).body));
}

Paged<FileMetadata> Files::list(const ListOptions& list, const RequestOptions& options) const {
  return first_page(Client::State::sender_of(client_.state_), std::string(files_path), list,
                    options, &read_file);
}

std::string Files::download(std::string_view id, const RequestOptions& options) const {
  const Call call{
      .method = "GET", .path = file_path(id, "/content"), .accept = "application/binary"};
  return client_.state_->sender.send_whole(call, options).body;
}

void Files::remove(std::string_view id, const RequestOptions& options) const {
  (void)client_.call("DELETE", file_path(id), {}, options);
}

}  // namespace incipit
