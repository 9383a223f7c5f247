#include "sender.h"

#include "retry.h"
#include "url.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <random>
#include <utility>

namespace incipit {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds default_timeout{600'000};  // W-45
constexpr std::size_t largest_refusal = std::size_t{1}
                                        << 20U;  // bytes of an error body that are kept

std::string trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return std::string(text);
}

void unset_if_blank(std::optional<std::string>& option) {
  if (option) *option = trimmed(*option);
  if (option && option->empty()) option.reset();
}

bool is_header_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_named(const HeaderOption& header, std::string_view name) {
  return find_header({{header.name, {}}}, name) != nullptr;
}

// A line break in a value would let it speak for another header.
void check_header(std::string_view name, const std::optional<std::string>& value) {
  if (!is_header_name(name))
    throw PromptError("W-19.2", {},
                      "the name of a header is empty or holds a character that no name may have");
  const auto is_control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7F; };
  if (value && std::any_of(value->begin(), value->end(), is_control))
    throw PromptError("W-19.2", {},
                      "the value of the header '" + std::string(name)
                          + "' holds a line break or another control character");
}

// Values may be secrets: a bad line is named by its number.
std::vector<HeaderOption> parse_custom_headers(std::string_view text, const char* variable_name) {
  std::vector<HeaderOption> headers;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    HeaderOption header{trimmed(std::string_view(line).substr(0, colon)), std::nullopt};
    if (colon == std::string::npos || !is_header_name(header.name))
      throw PromptError("W-19.2", {},
                        std::string(variable_name) + ": line " + std::to_string(number)
                            + " is not of the form `Name: value`");
    header.value = trimmed(std::string_view(line).substr(colon + 1));
    headers.push_back(std::move(header));
  }
  return headers;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

double random_fraction() {
  std::random_device device;
  return std::generate_canonical<double, 32>(device);
}

TransportError cancelled() {
  return {TransportError::Kind::cancelled, "the request was cancelled", true};
}

void check_timeout(const std::optional<milliseconds>& timeout) {
  if (timeout && *timeout <= milliseconds(0))
    throw PromptError(
        "W-45", {},
        "a timeout of " + std::to_string(timeout->count()) + " ms leaves no time for an answer");
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* text = name == nullptr ? nullptr : std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::optional<std::string> value = text;
  unset_if_blank(value);
  return value;
}

Sender::Sender(ClientOptions options, Provider provider)
    : options_(std::move(options)), provider_(std::move(provider)) {
  unset_if_blank(options_.api_key);
  unset_if_blank(options_.auth_token);
  unset_if_blank(options_.base_url);
  if (options_.api_key.has_value() + options_.auth_token.has_value()
          + (options_.token_provider != nullptr)
      > 1)
    throw PromptError("W-7", {},
                      "api_key, auth_token and token_provider exclude each other: set one of them");
  read_environment();
  options_.base_url = checked_base_url(*options_.base_url);
  check_timeout(options_.timeout);
  for (const HeaderOption& header : options_.headers)
    check_header(header.name, header.value);
  transport_ = options_.transport ? options_.transport : curl_transport(options_.curl);
}

void Sender::read_environment() {
  if (!options_.base_url) options_.base_url = environment_variable(provider_.base_url_variable);
  if (!options_.base_url) options_.base_url = provider_.base_url;
  if (const auto text = environment_variable(provider_.custom_headers_variable)) {
    const auto headers = parse_custom_headers(*text, provider_.custom_headers_variable);
    options_.headers.insert(options_.headers.begin(), headers.begin(), headers.end());
  }

  // A header of that name is a credential too, or says that none is wanted.
  if (options_.api_key || options_.auth_token || options_.token_provider
      || std::any_of(options_.headers.begin(), options_.headers.end(),
                     [](const HeaderOption& header) {
                       return is_named(header, "authorization") || is_named(header, "x-api-key");
                     }))
    return;
  options_.api_key = environment_variable(provider_.api_key_variable);
  options_.auth_token = environment_variable(provider_.auth_token_variable);
  if (options_.api_key && options_.auth_token) {
    options_.auth_token.reset();
    log(LogLevel::warn, std::string(provider_.api_key_variable) + " and "
                            + provider_.auth_token_variable + " are both set: the first is used");
  }
  if (options_.api_key || options_.auth_token) return;
  std::string message =
      "no credential: set api_key, auth_token or token_provider, or the environment variable ";
  message += provider_.api_key_variable;
  if (provider_.auth_token_variable != nullptr)
    message += std::string(" or ") + provider_.auth_token_variable;
  throw PromptError("W-7", {}, message);
}

std::string Sender::credential(bool refresh) const {
  if (!options_.token_provider) return options_.api_key.value_or(options_.auth_token.value_or(""));
  std::string token = trimmed(options_.token_provider(refresh));
  if (token.empty()) throw PromptError("W-7", {}, "token_provider returned an empty token");
  return token;
}

std::string Sender::joined_betas(const Call& call, const RequestOptions& options) const {
  std::vector<std::string> betas;
  const auto add = [&](std::string_view list) {
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(','), list.size());
      std::string beta = trimmed(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
      if (!beta.empty() && std::find(betas.begin(), betas.end(), beta) == betas.end())
        betas.push_back(std::move(beta));
    }
  };
  for (const auto* list : {&options_.betas, &call.betas, &options.betas})
    for (const std::string& beta : *list)
      add(beta);
  for (const auto* headers : {&options_.headers, &options.headers})
    for (const HeaderOption& header : *headers) {
      if (!is_named(header, "anthropic-beta")) continue;
      if (header.value)
        add(*header.value);
      else
        betas.clear();
    }
  std::string joined;
  for (const std::string& beta : betas)
    joined += (joined.empty() ? "" : ",") + beta;
  return joined;
}

HttpRequest Sender::prepare(const Call& call, const RequestOptions& options,
                            const std::string& credential, int attempt) const {
  HttpRequest request;
  request.method = call.method;
  request.url =
      joined_url(options.base_url ? checked_base_url(*options.base_url) : *options_.base_url,
                 call.path, {&options_.query, &options.query});
  request.body = call.body;
  request.timeout = options.timeout.value_or(options_.timeout.value_or(default_timeout));
  request.connect_timeout = std::min(request.connect_timeout, request.timeout);
  request.stop = options.stop;
  request.attempt = attempt;

  const auto set = [&](std::string_view name, const std::optional<std::string>& value) {
    check_header(name, value);
    request.set_header(name, value);
  };
  set("accept", call.accept);
  if (call.body) set("content-type", call.content_type);
  set("user-agent", "Incipit/" INCIPIT_SDK_VERSION);
  set("x-stainless-retry-count", std::to_string(attempt));
  if (provider_.sends_version) set("anthropic-version", options_.version);
  for (const HttpHeader& header : provider_.headers)
    set(header.name, header.value);
  if (!credential.empty()) {
    if (options_.api_key && !provider_.api_key_is_bearer)
      set("x-api-key", credential);
    else
      set("authorization", "Bearer " + credential);
  }
  for (const auto* headers : {&options_.headers, &options.headers})
    for (const HeaderOption& header : *headers)
      set(header.name, header.value);
  if (provider_.sends_version) {
    const std::string betas = joined_betas(call, options);
    set("anthropic-beta", betas.empty() ? std::nullopt : std::optional(betas));
  }
  return request;
}

// What became of one attempt: a response, or the error to throw should it be the last.
struct Sender::Outcome {
  std::optional<HttpResponse> response = {};
  std::exception_ptr error = {};
  bool retried = false;
  int status = 0;
  std::optional<milliseconds> asked = {};  // to wait, by the server
  std::string what = {};                   // for the log
};

HttpResponse Sender::through(const std::vector<const Middleware*>& chain, std::size_t from,
                             HttpRequest& request) const {
  if (from == chain.size()) return transport_->start(request);
  return (*chain[from])(request,
                        [&, from](HttpRequest& inner) { return through(chain, from + 1, inner); });
}

ApiError Sender::refusal(HttpResponse& response, const std::string& credential) const {
  std::string body;
  try {
    for (std::string_view bytes; body.size() < largest_refusal; body += bytes) {
      bytes = response.body->read();
      if (bytes.empty()) break;
    }
  } catch (const TransportError& error) {
    // The status is the better news, unless nobody wants it any more.
    if (error.kind == TransportError::Kind::cancelled) throw;
  }
  replace_all(body, credential, "[redacted]");  // of a server that repeats what it was sent
  ApiError error = provider_.parse_error(response.status, body);
  if (std::string id = request_id(response.headers); !id.empty()) error.request_id = std::move(id);
  const auto& now = options_.waiting.now;
  error.retry_after = retry_after(response.headers, now ? now() : std::chrono::system_clock::now());
  return error;
}

Sender::Outcome Sender::attempt(HttpRequest& request, const RequestOptions& options,
                                const std::string& credential) const {
  std::vector<const Middleware*> chain;
  for (const auto* middleware : {&options_.middleware, &options.middleware})
    for (const Middleware& each : *middleware)
      chain.push_back(&each);
  Outcome outcome;
  try {
    HttpResponse response = through(chain, 0, request);
    if (!response.body) response.body = whole_body({});
    outcome.status = response.status;
    outcome.what = "status " + std::to_string(response.status);
    if (const std::string id = request_id(response.headers); !id.empty()) outcome.what += ", " + id;
    if (response.status < 400) {
      outcome.response = std::move(response);
      return outcome;
    }
    const ApiError error = refusal(response, credential);
    outcome.retried = is_retried(response.status, response.headers);
    outcome.asked = error.retry_after;
    outcome.error = std::make_exception_ptr(error);
  } catch (const TransportError& error) {
    outcome.retried = error.retry_is_safe && error.kind != TransportError::Kind::cancelled;
    outcome.error = std::current_exception();
    outcome.what = error.kind == TransportError::Kind::timeout ? "timeout" : "no answer";
  } catch (const RetryableError&) {
    outcome.retried = true;
    outcome.error = std::current_exception();
    outcome.what = "refused by a middleware";
  }
  return outcome;
}

HttpResponse Sender::send(const Call& call, const RequestOptions& options) const {
  check_timeout(options.timeout);
  const int most_retries = std::max(0, options.max_retries.value_or(options_.max_retries));
  std::string secret = credential(false);
  bool refreshed = false;
  int retries = 0;
  for (int number = 0;; ++number) {
    HttpRequest request = prepare(call, options, secret, number);
    if (options.stop.stop_requested()) throw cancelled();
    Outcome outcome = attempt(request, options, secret);
    const auto note = [&](LogLevel level, const std::string& next) {
      if (!options_.log) return;
      log(level, std::string(call.method) + " " + call.path.substr(0, call.path.find('?'))
                     + ", attempt " + std::to_string(number + 1) + ": " + outcome.what + next);
    };
    if (outcome.response) {
      note(LogLevel::debug, "");
      return std::move(*outcome.response);
    }
    if (outcome.status == 401 && options_.token_provider && !refreshed) {  // W-49
      note(LogLevel::info, "; asking for a new token");
      refreshed = true;
      secret = credential(true);
      continue;
    }
    if (!outcome.retried || retries == most_retries) {
      note(LogLevel::info, "; not tried again");
      std::rethrow_exception(outcome.error);
    }
    const auto& random = options_.waiting.random;
    const milliseconds time =
        retry_wait(outcome.asked, retries++, random ? random() : random_fraction());
    note(LogLevel::info, "; trying again in " + std::to_string(time.count()) + " ms");
    wait(time, options.stop);
  }
}

RawResponse Sender::send_whole(const Call& call, const RequestOptions& options) const {
  HttpResponse response = send(call, options);
  std::string body = response.text();
  return {response.status, std::move(response.headers), std::move(body)};
}

void Sender::wait(milliseconds time, const std::stop_token& stop) const {
  bool done = false;
  if (options_.waiting.wait) {
    done = options_.waiting.wait(time, stop);
  } else {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    done = !never.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
  }
  if (!done || stop.stop_requested()) throw cancelled();
}

std::string Sender::request_id(const std::vector<HttpHeader>& headers) const {
  const std::string* id = find_header(headers, provider_.request_id_header);
  return id == nullptr ? std::string() : *id;
}

void Sender::log(LogLevel level, std::string_view line) const {
  if (options_.log) options_.log(level, line);
}

}  // namespace incipit
