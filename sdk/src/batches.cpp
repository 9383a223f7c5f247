#include "client_state.h"
#include "incipit/prompt.h"
#include "json_place.h"
#include "listing.h"
#include "url.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace incipit {
namespace {

constexpr std::string_view batches_path = "/v1/messages/batches";

std::string batch_path(std::string_view id, std::string_view end = {}) {
  return std::string(batches_path) + "/" + path_segment(id, "the batch id") + std::string(end);
}

bool is_custom_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '-';
  });
}

void check_params(const MessageRequest& params, const std::string& path, std::string_view version) {
  if (params.stream)
    throw PromptError("W-15", path + "stream",
                      path + "stream: the requests of a batch are not streamed");
  if (params.speed) throw PromptError("W-15", path + "speed", path + "speed: a batch takes none");
  if (params.max_tokens == 0)
    throw PromptError(
        "C-105", path + "max_tokens",
        path + "max_tokens: 0 (pre-warming) is refused in a batch; send it by itself");
  try {
    check(params, version);
  } catch (const PromptError& error) {
    throw PromptError(error.rule, path + error.path, path + error.what());
  }
}

void check_requests(const std::vector<BatchRequest>& requests, std::string_view version) {
  if (requests.empty() || requests.size() > 100'000)
    throw PromptError(
        "W-15", "requests",
        "requests: a batch has 1 to 100 000 of them, not " + std::to_string(requests.size()));
  std::unordered_set<std::string_view> ids;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const std::string path = "requests." + std::to_string(index) + ".";
    const std::string& id = requests[index].custom_id;
    if (!is_custom_id(id))
      throw PromptError("W-15", path + "custom_id",
                        path + "custom_id: 1 to 64 letters, digits, '_' and '-' are allowed");
    if (!ids.insert(id).second)
      throw PromptError("W-15", path + "custom_id",
                        path + "custom_id: '" + id + "' is there already");
    check_params(requests[index].params, path + "params.", version);
  }
}

MessageBatch read_batch(const JsonPlace& place) {
  const JsonObject batch(place);
  MessageBatch result;
  result.id = batch.at("id").string();
  result.processing_status = batch.at("processing_status").string();
  const JsonObject counts(batch.at("request_counts"));
  result.processing = counts.integer("processing").value_or(0);
  result.succeeded = counts.integer("succeeded").value_or(0);
  result.errored = counts.integer("errored").value_or(0);
  result.canceled = counts.integer("canceled").value_or(0);
  result.expired = counts.integer("expired").value_or(0);
  result.created_at = batch.string_or_empty("created_at");
  result.expires_at = batch.string_or_empty("expires_at");
  result.ended_at = batch.string_or_empty("ended_at");
  result.results_url = batch.string_or_empty("results_url");
  result.json = place.json();
  return result;
}

BatchResult read_result(std::string_view line) {
  const JsonPlace place = JsonPlace::check(line);
  const JsonObject entry(place);
  const JsonObject result(entry.at("result"));
  BatchResult read;
  read.custom_id = entry.at("custom_id").string();
  read.type = result.at("type").string();
  read.json = place.json();
  if (read.type == "succeeded") read.message = parse_message(result.at("message").text());
  if (read.type == "errored") read.error = parse_api_error(0, result.at("error").text());
  return read;
}

// The lines of a body, as they arrive.
class Lines {
 public:
  explicit Lines(HttpResponse response) : response_(std::move(response)) {}

  // Nothing at the end. A line that was not empty; valid until the next call.
  std::optional<std::string_view> next() {
    for (;;) {
      const std::size_t end = buffer_.find('\n', searched_);
      if (end == std::string::npos && !ended_) {
        read();
        continue;
      }
      std::string_view line = std::string_view(buffer_).substr(start_, end - start_);
      start_ = searched_ = end == std::string::npos ? buffer_.size() : end + 1;
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) return line;
      if (end == std::string::npos) return std::nullopt;
    }
  }

 private:
  void read() {
    buffer_.erase(0, start_);
    start_ = 0;
    searched_ = buffer_.size();
    const std::string_view bytes = response_.body->read();
    ended_ = bytes.empty();
    buffer_ += bytes;
  }

  HttpResponse response_;
  std::string buffer_;
  std::size_t start_ = 0;     // of the next line
  std::size_t searched_ = 0;  // no line end between start_ and here
  bool ended_ = false;
};

}  // namespace

MessageBatch Batches::create(const std::vector<BatchRequest>& requests,
                             const RequestOptions& options) const {
  check_requests(requests, client_.state_->given.version);
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().key("requests").begin_array();
  for (const BatchRequest& request : requests)
    writer.begin_object()
        .key("custom_id")
        .string(request.custom_id)
        .key("params")
        .raw(to_json(request.params))
        .end_object();
  writer.end_array().end_object();
  return read_batch(JsonPlace::check(client_.call("POST", batches_path, body, options).body));
}

MessageBatch Batches::get(std::string_view id, const RequestOptions& options) const {
  return read_batch(JsonPlace::check(client_.call("GET", batch_path(id), {}, options).body));
}

Paged<MessageBatch> Batches::list(const ListOptions& list, const RequestOptions& options) const {
  return first_page(Client::State::sender_of(client_.state_), std::string(batches_path), list,
                    options, &read_batch);
}

MessageBatch Batches::cancel(std::string_view id, const RequestOptions& options) const {
  return read_batch(
      JsonPlace::check(client_.call("POST", batch_path(id, "/cancel"), {}, options).body));
}

void Batches::remove(std::string_view id, const RequestOptions& options) const {
  (void)client_.call("DELETE", batch_path(id), {}, options);
}

MessageBatch Batches::wait(std::string_view id, std::chrono::milliseconds every,
                           const RequestOptions& options) const {
  for (;;) {
    MessageBatch batch = get(id, options);
    if (batch.processing_status == "ended") return batch;
    client_.state_->sender.wait(every, options.stop);
  }
}

Sequence<BatchResult> Batches::results(const MessageBatch& batch,
                                       const RequestOptions& options) const {
  if (batch.results_url.empty())
    throw Error("batch " + batch.id + " has no results yet: its status is "
                + batch.processing_status);
  const Call call{.method = "GET", .path = batch.results_url, .accept = "application/binary"};
  const auto lines = std::make_shared<Lines>(client_.state_->sender.send(call, options));
  return Sequence<BatchResult>([lines]() -> std::optional<BatchResult> {
    if (const auto line = lines->next()) return read_result(*line);
    return std::nullopt;
  });
}

}  // namespace incipit
