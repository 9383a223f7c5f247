#include "gateway/api/batch_routes.h"

#include "gateway/api/anthropic_fields.h"
#include "gateway/api/generate.h"
#include "gateway/api/paging.h"
#include "incipit/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace incipit::gateway {

namespace {

constexpr std::size_t most_requests = 100'000;
constexpr std::size_t piece = std::size_t{256} << 10;

std::string_view name_of(BatchStatus status) {
  switch (status) {
    case BatchStatus::in_progress:
      return "in_progress";
    case BatchStatus::canceling:
      return "canceling";
    case BatchStatus::ended:
      break;
  }
  return "ended";
}

// Clients send their key to `results_url`, so it must lead back to where they asked: the address
// that they know this gateway by. Without one that can be put in an address it has no host.
std::string base_of(const HttpRequest& request, const Services& services) {
  if (!services.public_url.empty()) return services.public_url;
  const std::string* host = request.header("host");
  const bool usable = host != nullptr && !host->empty() && std::ranges::all_of(*host, [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                               || (c >= '0' && c <= '9')
                               || std::string_view(".-_:[]").find(c) != std::string_view::npos;
                      });
  return usable ? "http://" + *host : "";
}

void write_batch(JsonWriter& json, const BatchView& batch, const std::string& base) {
  const auto date = [&](std::string_view name, const std::string& value) {
    json.key(name);
    if (value.empty()) {
      json.null();
    } else {
      json.string(value);
    }
  };
  json.begin_object();
  json.key("id").string(batch.id);
  json.key("type").string("message_batch");
  json.key("processing_status").string(name_of(batch.status));
  json.key("request_counts").begin_object();
  json.key("processing").integer(batch.counts.processing);
  json.key("succeeded").integer(batch.counts.succeeded);
  json.key("errored").integer(batch.counts.errored);
  json.key("canceled").integer(batch.counts.canceled);
  json.key("expired").integer(batch.counts.expired);
  json.end_object();
  date("ended_at", batch.ended_at);
  date("created_at", batch.created_at);
  date("expires_at", batch.expires_at);
  date("archived_at", batch.archived_at);
  date("cancel_initiated_at", batch.cancel_initiated_at);
  const bool has_results = batch.status == BatchStatus::ended && batch.archived_at.empty();
  date("results_url",
       has_results ? fmt::format("{}/v1/messages/batches/{}/results", base, batch.id) : "");
  json.end_object();
}

Response batch_response(const HttpRequest& request, const Services& services,
                        const BatchView& batch) {
  Response response;
  JsonWriter json(response.body);
  write_batch(json, batch, base_of(request, services));
  return response;
}

bool is_custom_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '-';
  });
}

// What is refused before the batch begins; all else that is wrong with a request is its result.
void check_params(const JsonValue& params, const std::string& path) {
  const JsonValue* stream = params.find("stream");
  if (stream != nullptr && !stream->is_null() && !(stream->is_boolean() && !stream->as_boolean())) {
    throw invalid_request(path + ".stream: the requests of a batch are not streamed");
  }
  if (const JsonValue* speed = params.find("speed"); speed != nullptr && !speed->is_null()) {
    throw invalid_request(path + ".speed: a batch takes no speed");
  }
  if (const JsonValue* most = params.find("max_tokens");
      most != nullptr && most->as_integer() == 0) {
    throw invalid_request(
        path + ".max_tokens: 0 (pre-warming) is not possible in a batch; send it by itself");
  }
  if (const JsonValue* thread = params.find("thread"); thread != nullptr && !thread->is_null()) {
    ApiError error = invalid_request(path + ".thread: message threads are not possible in a batch");
    error.error_code = "thread_unsupported_request";
    throw error;
  }
}

std::vector<BatchItem> read_items(const JsonValue& document) {
  Fields body(document, "");
  const JsonValue::Array& requests = read_list(body.required("requests"), "requests");
  body.reject_others();
  if (requests.empty()) {
    throw invalid_request("requests: List should have at least 1 item after validation, not 0");
  }
  if (requests.size() > most_requests) {
    throw invalid_request(
        fmt::format("requests: List should have at most {} items after validation, not {}",
                    most_requests, requests.size()));
  }
  std::vector<BatchItem> items;
  items.reserve(requests.size());
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string path = element("requests", i);
    Fields fields(requests[i], path);
    const std::string& id = read_string(fields.required("custom_id"), fields.at("custom_id"));
    if (!is_custom_id(id)) {
      throw invalid_request(fields.at("custom_id")
                            + ": String should match pattern '^[a-zA-Z0-9_-]{1,64}$'");
    }
    const JsonValue& params = read_object(fields.required("params"), fields.at("params"));
    fields.reject_others();
    check_params(params, fields.at("params"));
    const auto [found, is_new] = places.emplace(id, i);
    if (!is_new) {
      throw invalid_request(fmt::format(
          "{}: '{}' is the custom_id of requests.{} already; each must be unique in its batch",
          fields.at("custom_id"), id, found->second));
    }
    items.push_back({id, params.minified()});
  }
  return items;
}

std::string batch_id(const HttpRequest& request) {
  return path_segment(request.path, 3);
}

}  // namespace

Response create_batch(const HttpRequest& request, Services& services, const Scope& scope,
                      RequestRecord& /*record*/) {
  std::vector<BatchItem> items = read_items(read_json(request.body));
  return batch_response(
      request, services,
      services.batches.create(scope, std::move(items), request_context(request, services, scope)));
}

Response list_batches(const HttpRequest& request, Services& services, const Scope& scope,
                      RequestRecord& /*record*/) {
  const std::vector<BatchView> batches = services.batches.list(scope);
  std::vector<std::string_view> ids;
  for (const BatchView& batch : batches)
    ids.emplace_back(batch.id);
  const Page page = page_of(request, ids, "message batch");
  const std::string base = base_of(request, services);
  Response response;
  JsonWriter json(response.body);
  json.begin_object().key("data").begin_array();
  for (std::size_t i = page.begin; i < page.end; ++i)
    write_batch(json, batches[i], base);
  json.end_array();
  write_page_ends(json, page, ids);
  json.end_object();
  return response;
}

Response show_batch(const HttpRequest& request, Services& services, const Scope& scope,
                    RequestRecord& /*record*/) {
  return batch_response(request, services, services.batches.get(scope, batch_id(request)));
}

Response cancel_batch(const HttpRequest& request, Services& services, const Scope& scope,
                      RequestRecord& /*record*/) {
  return batch_response(request, services, services.batches.cancel(scope, batch_id(request)));
}

Response delete_batch(const HttpRequest& request, Services& services, const Scope& scope,
                      RequestRecord& /*record*/) {
  const std::string id = batch_id(request);
  services.batches.remove(scope, id);
  Response response;
  JsonWriter(response.body)
      .begin_object()
      .key("id")
      .string(id)
      .key("type")
      .string("message_batch_deleted")
      .end_object();
  return response;
}

boost::asio::awaitable<void> send_batch_results(const HttpRequest& request, Reply& reply,
                                                Services& services, const Scope& scope,
                                                RequestRecord& record) {
  const BatchResults results = services.batches.results(scope, batch_id(request));
  Response head;
  head.content_type = "application/x-jsonl";
  add_account_headers(head, services, scope, record.model);
  record.status = 200;
  co_await reply.begin(std::move(head));
  std::string lines;
  for (const std::string& line : *results) {
    lines += line;
    if (lines.size() >= piece) co_await reply.write(std::exchange(lines, {}));
  }
  co_await reply.finish(std::move(lines));
}

}  // namespace incipit::gateway
