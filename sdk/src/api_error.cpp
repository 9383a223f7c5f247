#include "incipit/anthropic.h"
#include "json_place.h"
#include "utf8.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

struct KnownError {
  std::string_view word;
  ErrorType type;
  int status;
};

// anthropic-wire section 11
constexpr std::array<KnownError, 11> known_errors{
    {{"invalid_request_error", ErrorType::invalid_request_error, 400},
     {"authentication_error", ErrorType::authentication_error, 401},
     {"billing_error", ErrorType::billing_error, 402},
     {"permission_error", ErrorType::permission_error, 403},
     {"not_found_error", ErrorType::not_found_error, 404},
     {"conflict_error", ErrorType::conflict_error, 409},
     {"request_too_large", ErrorType::request_too_large, 413},
     {"rate_limit_error", ErrorType::rate_limit_error, 429},
     {"api_error", ErrorType::api_error, 500},
     {"timeout_error", ErrorType::timeout_error, 504},
     {"overloaded_error", ErrorType::overloaded_error, 529}}};

// The start of a text in one line, cut at a character: a page of a proxy, say, is not worth
// repeating whole.
std::string beginning(std::string_view text, std::size_t most) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Sequence sequence = utf8_sequence(text, at);
    if (line.size() + sequence.length > most) return line.append("…");
    if (!sequence.well_formed) {
      line += "\xEF\xBF\xBD";
    } else if (static_cast<unsigned char>(text[at]) > ' ') {
      line += text.substr(at, sequence.length);
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    at += sequence.length;
  }
  return line;
}

// What the envelope says; false when the body is none.
bool read_envelope(std::string_view body, ApiError& error) {
  try {
    const JsonObject envelope(JsonPlace::check(body));
    const auto inner = envelope.find("error");
    if (!inner || !inner->is_object()) return false;
    const JsonObject object(*inner);
    error.type.text = object.string_or_empty("type");
    error.message = object.string_or_empty("message");
    error.request_id = envelope.string_or_empty("request_id");
    if (const auto details = object.find("details"); details && details->is_object()) {
      error.error_code = JsonObject(*details).string_or_empty("error_code");
    }
    return true;
  } catch (const ParseError&) {
    return false;
  }
}

}  // namespace

ApiError parse_api_error(int status, std::string_view body) {
  ApiError parts("");
  if (!read_envelope(body, parts)) {
    parts.type = {};
    parts.message = body.empty() ? "no body" : beginning(body, 200);
  }
  const std::string_view word = parts.type.text;
  const auto known = std::ranges::find_if(known_errors, [&](const KnownError& error) {
    return word.empty() ? error.status == status : error.word == word;
  });
  if (known != known_errors.end()) {
    parts.type.known = known->type;
  } else if (word.empty() && status >= 500) {
    parts.type.known = ErrorType::api_error;
  }
  std::string what = status == 0 ? std::string() : std::to_string(status) + ' ';
  what += word.empty() ? "error" : word;
  what += ": " + beginning(parts.message, 1000);
  if (!parts.request_id.empty()) what += " (request id " + parts.request_id + ")";
  ApiError error(what);
  error.type = std::move(parts.type);
  error.status = status;
  error.error_code = std::move(parts.error_code);
  error.message = std::move(parts.message);
  error.request_id = std::move(parts.request_id);
  error.body = body;
  return error;
}

}  // namespace incipit
