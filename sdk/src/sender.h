// One call to a provider: headers, middleware, retries, errors. What both clients are made of.
// Source: anthropic-wire section 19 (W-40 to W-50). Private to the SDK.
#pragma once

#include "incipit/client.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// Trimmed; nothing when it is unset or blank. Null names no variable.
[[nodiscard]] std::optional<std::string> environment_variable(const char* name);

// What differs between providers.
struct Provider {
  std::string base_url;                  // when neither option nor environment names one
  const char* base_url_variable;         // ANTHROPIC_BASE_URL
  const char* api_key_variable;          // ANTHROPIC_API_KEY
  const char* auth_token_variable;       // ANTHROPIC_AUTH_TOKEN; null: none
  const char* custom_headers_variable;   // ANTHROPIC_CUSTOM_HEADERS
  bool api_key_is_bearer = false;        // else x-api-key
  bool sends_version = true;             // anthropic-version and anthropic-beta
  std::string_view request_id_header;    // "request-id"
  std::vector<HttpHeader> headers = {};  // organisation, project
  ApiError (*parse_error)(int status, std::string_view body);
};

struct Call {
  std::string_view method;
  std::string
      path;  // "/v1/messages", below the base URL and with its own query; or an absolute URL
  std::shared_ptr<const std::string> body = {};  // null: none
  std::string content_type = "application/json";
  std::string accept = "application/json";
  std::vector<std::string> betas = {};
};

// Safe for several threads at once.
//
// Headers, a later one in the place of an earlier: the SDK's own, the credential, those of the
// environment, of the client's options, of the request's; one without a value takes the header
// away. `anthropic-beta` alone is joined instead of replaced. Each attempt says in
// `x-stainless-retry-count` how many came before it, in the words of the official SDKs, which
// servers and proxies know.
class Sender {
 public:
  // Reads the environment. Throws PromptError when there is no credential ("W-7"), more than one,
  // or an option that cannot be sent.
  Sender(ClientOptions options, Provider provider);

  // The response of the attempt that was answered with a status below 400; the body is still to be
  // read. Throws ApiError, TransportError, and whatever a middleware throws.
  [[nodiscard]] HttpResponse send(const Call& call, const RequestOptions& options) const;

  // The same with the body read.
  [[nodiscard]] RawResponse send_whole(const Call& call, const RequestOptions& options) const;

  // Waits between polls and attempts. Throws TransportError `cancelled` when stopped.
  void wait(std::chrono::milliseconds time, const std::stop_token& stop) const;

  // Empty when there is none.
  [[nodiscard]] std::string request_id(const std::vector<HttpHeader>& headers) const;

  // Calls the log, if there is one. For lines without keys and prompt text.
  void log(LogLevel level, std::string_view line) const;

  // As given, environment filled in.
  [[nodiscard]] const ClientOptions& options() const { return options_; }

  [[nodiscard]] const std::shared_ptr<Transport>& transport() const { return transport_; }

 private:
  struct Outcome;

  void read_environment();
  [[nodiscard]] std::string credential(bool refresh) const;
  [[nodiscard]] HttpRequest prepare(const Call& call, const RequestOptions& options,
                                    const std::string& credential, int attempt) const;
  [[nodiscard]] std::string joined_betas(const Call& call, const RequestOptions& options) const;
  [[nodiscard]] Outcome attempt(HttpRequest& request, const RequestOptions& options,
                                const std::string& credential) const;
  [[nodiscard]] HttpResponse through(const std::vector<const Middleware*>& chain, std::size_t from,
                                     HttpRequest& request) const;
  [[nodiscard]] ApiError refusal(HttpResponse& response, const std::string& credential) const;

  ClientOptions options_;
  Provider provider_;
  std::shared_ptr<Transport> transport_;
};

}  // namespace incipit
