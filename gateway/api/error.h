// A request that ends with an error answer, in the provider's vocabulary.
// Source: anthropic-wire section 11.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace incipit::gateway {

// Thrown anywhere in `api/`; caught once, in `routes.cpp`.
struct ApiError : std::runtime_error {
  ApiError(int status_, std::string type_, const std::string& message)
      : std::runtime_error(message), status(status_), type(std::move(type_)) {}

  int status;
  std::string type;                // "invalid_request_error", "not_found_error", …
  std::optional<int> retry_after;  // seconds
  std::string error_code;          // details.error_code, or empty
};

[[nodiscard]] inline ApiError invalid_request(const std::string& message) {
  return {400, "invalid_request_error", message};
}

// {"type":"error","error":{"type":…,"message":…},"request_id":…}
[[nodiscard]] std::string error_body(const ApiError& error, std::string_view request_id);

}  // namespace incipit::gateway
