#include "gateway/api/routes.h"

#include "gateway/api/anthropic_betas.h"
#include "gateway/api/anthropic_fields.h"
#include "gateway/api/anthropic_reply.h"
#include "gateway/api/batch_routes.h"
#include "gateway/api/file_routes.h"
#include "gateway/api/generate.h"
#include "gateway/api/listing.h"

#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;
using Answering = Response (*)(const HttpRequest&, Services&, const Scope&, RequestRecord&);
// Sends its reply itself.
using Sending = asio::awaitable<void> (*)(const HttpRequest&, Reply&, Services&, const Scope&,
                                          RequestRecord&);

struct Route {
  std::string_view method;
  std::string_view path;  // * stands for one segment
  Answering answer = nullptr;
  Sending send = nullptr;  // where there is no `answer`
  bool needs_key = true;
  bool quiet = false;  // a 200 of it is not logged: something polls it
};

constexpr std::array routes{
    Route{"POST", "/v1/messages", nullptr, &generate},
    Route{"POST", "/v1/messages/count_tokens", &count_tokens},
    Route{"POST", "/v1/messages/batches", &create_batch},
    Route{"GET", "/v1/messages/batches", &list_batches},
    Route{"GET", "/v1/messages/batches/*", &show_batch},
    Route{"DELETE", "/v1/messages/batches/*", &delete_batch},
    Route{"POST", "/v1/messages/batches/*/cancel", &cancel_batch},
    Route{"GET", "/v1/messages/batches/*/results", nullptr, &send_batch_results},
    Route{"POST", "/v1/files", &upload_file},
    Route{"GET", "/v1/files", &list_files},
    Route{"GET", "/v1/files/*", &show_file},
    Route{"DELETE", "/v1/files/*", &delete_file},
    Route{"GET", "/v1/files/*/content", &download_file},
    Route{"GET", "/v1/models", &list_models},
    Route{"GET", "/v1/models/*", &show_model},
    Route{"GET", "/health", &show_health, nullptr, false, true},
    Route{"GET", "/metrics", &show_metrics, nullptr, true, true},
    Route{"GET", "/incipit/entries", &list_entries, nullptr, true, true},
    Route{"POST", "/incipit/clock", &advance_clock},
};

// Other APIs of the same host: said so rather than a bare "not found".
constexpr std::array<std::string_view, 3> not_served{"/v1/complete", "/v1/skills",
                                                     "/v1/organizations"};

bool matches(const Route& route, std::string_view path) {
  const std::size_t star = route.path.find('*');
  if (star == std::string_view::npos) return path == route.path;
  const std::string_view before = route.path.substr(0, star);
  const std::string_view behind = route.path.substr(star + 1);
  if (path.size() <= before.size() + behind.size()) return false;
  const std::string_view segment =
      path.substr(before.size(), path.size() - before.size() - behind.size());
  return path.starts_with(before) && path.ends_with(behind)
         && segment.find('/') == std::string_view::npos;
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// The verbs of a path, "GET, HEAD, OPTIONS"; empty for an unknown path.
std::string allowed_verbs(std::string_view path) {
  std::string verbs;
  for (const Route& route : routes) {
    if (!matches(route, path)) continue;
    verbs += fmt::format("{}{}, ", route.method, route.method == "GET" ? ", HEAD" : "");
  }
  return verbs.empty() ? verbs : verbs + "OPTIONS";
}

// The route, or null when the verb is OPTIONS. Throws ApiError 404 for an unknown path.
const Route* find_route(const HttpRequest& request, bool virtual_clock) {
  for (const std::string_view folder : not_served) {
    if (is_below(request.path, folder)) {
      throw ApiError(
          404, "not_found_error",
          fmt::format("{} is part of the hosted API but not served by this gateway", request.path));
    }
  }
  const std::string verbs = allowed_verbs(request.path);
  if (verbs.empty() || (request.path == "/incipit/clock" && !virtual_clock)) {
    throw ApiError(404, "not_found_error", fmt::format("no such path: {}", request.path));
  }
  const std::string_view sent = request.method;
  const std::string_view method = sent == "HEAD" ? "GET" : sent;  // the writer leaves the body out
  for (const Route& route : routes) {
    if (matches(route, request.path) && route.method == method) return &route;
  }
  return nullptr;
}

// Any date counts as a version (W-6).
bool is_date(std::string_view text) {
  constexpr std::string_view shape = "0000-00-00";
  return std::equal(text.begin(), text.end(), shape.begin(), shape.end(), [](char c, char model) {
    return model == '-' ? c == '-' : c >= '0' && c <= '9';
  });
}

void check_version(const HttpRequest& request) {
  const std::string* version = request.header("anthropic-version");
  if (version == nullptr || version->empty()) {
    throw invalid_request("anthropic-version: header is required");  // W-2
  }
  if (is_date(*version)) return;
  throw invalid_request(fmt::format(
      "anthropic-version: '{}' is not a version; send 2023-06-01 or 2026-10-21", shown(*version)));
}

// What every request below /v1 must bring besides its key.
void check_head(const HttpRequest& request, bool strict_betas) {
  if (is_below(request.path, "/v1")) {
    check_version(request);
    if (strict_betas) check_betas(betas_of(request));
  }
  if (const std::string* encoding = request.header("content-encoding");
      encoding != nullptr && *encoding != "identity") {
    ApiError error = invalid_request(fmt::format(
        "content-encoding: '{}' is not supported; send the body uncompressed", *encoding));
    error.error_code = "request_body_encoding_unsupported";
    throw error;
  }
}

asio::awaitable<void> dispatch(const HttpRequest& request, Reply& reply, Services& services,
                               RequestRecord& record, bool& quiet) {
  const Route* route = find_route(request, services.virtual_clock);
  if (route == nullptr) {
    const std::string verbs = allowed_verbs(request.path);
    Response response;
    response.headers = {{"allow", verbs}};
    if (request.method == "OPTIONS") {
      response.status = 204;
    } else {
      const ApiError error(
          405, "invalid_request_error",
          fmt::format("{} is not possible on {}; use {}", request.method, request.path, verbs));
      response = error_response(error, request.id);
      response.headers.emplace_back("allow", verbs);
    }
    record.status = response.status;
    co_await reply.send(std::move(response));
    co_return;
  }
  Scope scope;
  if (route->needs_key) scope = services.keys.scope_of(request);
  record.key_scope = fmt::format("{}/{}", scope.organization, scope.workspace);
  check_head(request, services.strict_betas);
  if (route->answer == nullptr) {
    co_await route->send(request, reply, services, scope, record);
    co_return;
  }
  quiet = route->quiet;
  Response response = route->answer(request, services, scope, record);
  if (is_below(request.path, "/v1")) add_account_headers(response, services, scope, record.model);
  record.status = response.status;
  co_await reply.send(std::move(response));
}

// How a dispatch ended. `gone`: nobody is left to answer.
struct Outcome {
  std::optional<ApiError> error;
  bool gone = false;
};

// The one catch. Never throws, so that it can run beside a timer.
asio::awaitable<Outcome> attempt(const HttpRequest& request, Reply& reply, Services& services,
                                 RequestRecord& record, bool& quiet) {
  Outcome outcome;
  try {
    co_await dispatch(request, reply, services, record, quiet);
  } catch (const ApiError& error) {
    outcome.error = error;
  } catch (const PeerGone&) {
    outcome.gone = true;
  } catch (const std::exception& error) {
    outcome.error = ApiError(500, "api_error", "Internal server error");
    if (record.error.empty()) record.error = error.what();
  }
  // The peer watch or the request's timer ended the coroutine: what was thrown only says so.
  const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    outcome = {std::nullopt, true};
    record.error.clear();
  }
  co_return outcome;
}

}  // namespace

asio::awaitable<void> serve(const HttpRequest& request, Reply& reply, Services& services) {
  using asio::experimental::awaitable_operators::operator||;
  RequestRecord record;
  record.request_id = request.id;
  record.method = request.method;
  record.path = request.path;
  bool quiet = false;
  bool gone = false;
  try {
    asio::steady_timer timer(co_await asio::this_coro::executor, services.request_timeout);
    auto ended = co_await (attempt(request, reply, services, record, quiet)
                           || timer.async_wait(asio::experimental::as_tuple(asio::use_awaitable)));
    Outcome outcome;
    if (ended.index() == 0) {
      outcome = std::get<0>(std::move(ended));
    } else if (std::get<0>(std::get<1>(ended))) {
      outcome.gone = true;  // the timer was cancelled from outside
    } else {
      outcome.error = ApiError(504, "timeout_error",
                               fmt::format("the request took longer than {} s; raise "
                                           "--request-timeout or ask for fewer tokens",
                                           services.request_timeout.count() / 1000.0));
    }
    gone = outcome.gone;
    if (outcome.error && !gone && !reply.complete()) {
      record.status = outcome.error->status;
      if (record.error.empty()) record.error = outcome.error->what();
      if (reply.begun()) {
        co_await reply.finish(AnthropicReply::error(*outcome.error, request.id));
      } else {
        co_await reply.send(error_response(*outcome.error, request.id));
      }
    }
  } catch (const PeerGone&) {
    gone = true;
  } catch (const std::exception&) {
    gone = true;  // cancelled while answering; or no memory is left to answer with
  }
  // A client that leaves with its whole answer has not left early.
  if (gone && !reply.complete()) record.status = 499;
  services.metrics.count(record);
  if (!quiet || record.status != 200) services.log.write(record);
}

Response error_response(const ApiError& error, std::string_view request_id) {
  Response response;
  response.status = error.status;
  response.body = error_body(error, request_id);
  if (error.retry_after) {
    response.headers.emplace_back("retry-after", std::to_string(*error.retry_after));
  }
  const bool may_retry =
      error.status == 408 || error.status == 409 || error.status == 429 || error.status >= 500;
  if (!may_retry) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

std::size_t body_limit(const HttpRequest& head, const BodyLimits& limits) {
  if (head.path == "/v1/messages/batches") return limits.batch;
  if (head.path == "/v1/files") return limits.file;
  return limits.message;
}

void add_account_headers(Response& response, Services& services, const Scope& scope,
                         std::string_view model) {
  response.headers.emplace_back("anthropic-organization-id", scope.organization);
  response.headers.emplace_back("anthropic-workspace-id", scope.workspace);
  services.limits.add_headers(response.headers, scope.organization, model, services.clock.now());
}

}  // namespace incipit::gateway
