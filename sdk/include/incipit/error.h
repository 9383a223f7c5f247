// What can go wrong, by who can mend it. Every exception that the SDK throws is an `Error`.
// No message, here or in a log, ever contains a key.
#pragma once

#include "incipit/word.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace incipit {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Text that is not JSON, or more of it than the limits allow, or JSON of another shape than the
// wire's: then `path` says where (`content.0.text`), and is empty otherwise.
struct ParseError : Error {
  ParseError(const std::string& message, std::size_t bytes, std::size_t line_number,
             std::size_t column_number, std::size_t characters, std::string json_path = {})
      : Error(message),
        offset(bytes),
        line(line_number),
        column(column_number),
        character(characters),
        path(std::move(json_path)) {}

  std::size_t offset;     // bytes before the offending one
  std::size_t line;       // from 1
  std::size_t column;     // from 1, in characters
  std::size_t character;  // characters before the offending one
  std::string path;
};

// A request that the API would refuse, found before anything was sent.
struct PromptError : Error {
  PromptError(std::string rule_id, std::string json_path, const std::string& message)
      : Error(message), rule(std::move(rule_id)), path(std::move(json_path)) {}

  std::string rule;  // "E-1", "C-90", "W-46": ids of docs/prompt-caching.md and docs/sdk.md
  std::string path;  // what is wrong: `messages.3.content.1`; empty for the whole request
};

// No answer, or only a part of one: the network, TLS, a proxy, a timeout, a cancellation.
struct TransportError : Error {
  enum class Kind : std::uint8_t {
    resolve,  // no such host
    connect,  // refused, unreachable, not in time
    tls,
    proxy,
    timeout,    // nothing came for `timeout`
    broken,     // the connection closed before the message was complete
    cancelled,  // the caller's stop token
    other
  };

  TransportError(Kind what_kind, const std::string& message, bool retry)
      : Error(message), kind(what_kind), retry_is_safe(retry) {}

  Kind kind;
  bool retry_is_safe;  // no part of a reply had been seen, and another attempt may help
};

// Thrown by a middleware to have the attempt repeated as after a 500 (W-41).
struct RetryableError : Error {
  using Error::Error;
};

// `error.type` of the Messages API, and the statuses it stands for (anthropic-wire section 11).
enum class ErrorType : std::uint8_t {
  unknown,
  invalid_request_error,  // 400
  authentication_error,   // 401
  billing_error,          // 402
  permission_error,       // 403
  not_found_error,        // 404
  conflict_error,         // 409
  request_too_large,      // 413
  rate_limit_error,       // 429
  api_error,              // 500
  timeout_error,          // 504
  overloaded_error        // 529
};

// The server's refusal: a status of 400 or more, or an `error` event in a stream (then `status` is
// 0). Switch on `type`; when the body is no error envelope (a proxy's page), `type` follows from
// the status and `type.text` is empty.
struct ApiError : Error {
  using Error::Error;

  Word<ErrorType> type;
  int status = 0;
  std::string error_code;  // `error.details.error_code` (Anthropic) or `error.code` (OpenAI)
  std::string param;       // OpenAI: the field that is wrong
  std::string message;     // the server's own words, without status and id
  std::string request_id;
  std::optional<std::chrono::milliseconds> retry_after;
  std::string body;  // as received
};

}  // namespace incipit
