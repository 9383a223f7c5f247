#include "openai_read.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace incipit::openai {
namespace {

// The official SDKs tell errors apart by their status alone: `error.type` says
// "invalid_request_error" for a wrong key too.
ErrorType by_status(int status) {
  switch (status) {
    case 400:
    case 405:
    case 422:
      return ErrorType::invalid_request_error;
    case 401:
      return ErrorType::authentication_error;
    case 402:
      return ErrorType::billing_error;
    case 403:
      return ErrorType::permission_error;
    case 404:
      return ErrorType::not_found_error;
    case 409:
      return ErrorType::conflict_error;
    case 413:
      return ErrorType::request_too_large;
    case 429:
      return ErrorType::rate_limit_error;
    case 503:
    case 529:
      return ErrorType::overloaded_error;
    case 408:
    case 504:
      return ErrorType::timeout_error;
    default:
      return status >= 500 && status < 600 ? ErrorType::api_error : ErrorType::unknown;
  }
}

// Streams have no status. The spellings of both APIs, as `type` and as `code`.
ErrorType by_word(std::string_view word) {
  static constexpr std::pair<std::string_view, ErrorType> words[] = {
      {"invalid_request_error", ErrorType::invalid_request_error},
      {"invalid_prompt", ErrorType::invalid_request_error},
      {"context_length_exceeded", ErrorType::invalid_request_error},
      {"authentication_error", ErrorType::authentication_error},
      {"invalid_api_key", ErrorType::authentication_error},
      {"billing_error", ErrorType::billing_error},
      {"permission_error", ErrorType::permission_error},
      {"not_found_error", ErrorType::not_found_error},
      {"model_not_found", ErrorType::not_found_error},
      {"conflict_error", ErrorType::conflict_error},
      {"request_too_large", ErrorType::request_too_large},
      {"rate_limit_error", ErrorType::rate_limit_error},
      {"rate_limit_exceeded", ErrorType::rate_limit_error},
      {"insufficient_quota", ErrorType::rate_limit_error},
      {"requests", ErrorType::rate_limit_error},
      {"tokens", ErrorType::rate_limit_error},
      {"api_error", ErrorType::api_error},
      {"server_error", ErrorType::api_error},
      {"timeout_error", ErrorType::timeout_error},
      {"overloaded_error", ErrorType::overloaded_error},
      {"service_unavailable_error", ErrorType::overloaded_error},
      {"slow_down", ErrorType::overloaded_error},
  };
  for (const auto& [text, type] : words) {
    if (text == word) return type;
  }
  return ErrorType::unknown;
}

// A code is a string, but was a number at times.
std::string word_or_number(const JsonObject& object, std::string_view name) {
  const auto place = object.find(name);
  if (!place || place->is_object() || place->is_array()) return {};
  return place->is_string() ? place->string() : std::string(place->text());
}

// Of a proxy's page, say: not worth repeating whole.
std::string beginning(std::string_view body) {
  constexpr std::size_t most = 200;
  return std::string(body.substr(0, most)) + (body.size() > most ? "…" : "");
}

struct Fields {
  std::string type = {};
  std::string code = {};
  std::string param = {};
  std::string message = {};
};

Fields read_fields(const JsonObject& error) {
  return {word_or_number(error, "type"), word_or_number(error, "code"),
          word_or_number(error, "param"), word_or_number(error, "message")};
}

ApiError make_error(int status, Fields fields, std::string_view body) {
  std::string what = status == 0 ? std::string() : std::to_string(status) + ' ';
  what += fields.type.empty() ? "error" : fields.type;
  what += ": " + fields.message;
  ApiError error(what);
  error.status = status;
  error.type.known = by_status(status);
  for (const std::string* word : {&fields.type, &fields.code}) {
    if (error.type.known == ErrorType::unknown) error.type.known = by_word(*word);
  }
  error.type.text = std::move(fields.type);
  error.error_code = std::move(fields.code);
  error.param = std::move(fields.param);
  error.message = std::move(fields.message);
  error.body = body;
  return error;
}

}  // namespace

ApiError parse_api_error(int status, std::string_view body) {
  Fields fields;
  try {
    const JsonObject root(JsonPlace::check(body));
    const JsonPlace error = root.at("error");
    if (error.is_string()) {
      fields.message = error.string();
    } else {
      fields = read_fields(JsonObject(error));
    }
  } catch (const ParseError&) {
    fields.message = body.empty() ? "no body" : beginning(body);
  }
  return make_error(status, std::move(fields), body);
}

void throw_if_error(std::string_view name, const JsonObject& event) {
  const auto nested = event.find("error");
  if (nested && nested->is_object()) {
    throw make_error(0, read_fields(JsonObject(*nested)), event.place().text());
  }
  if (nested && nested->is_string()) {
    throw make_error(0, {.message = nested->string()}, event.place().text());
  }
  const auto says_error = [&](std::string_view member) {
    const auto word = event.find(member);
    return word && word->text() == "\"error\"";
  };
  if (name != "error" && !says_error("type") && !says_error("object")) return;
  Fields fields = read_fields(event);
  if (fields.type == "error") fields.type = {};  // the event's, not the error's
  throw make_error(0, std::move(fields), event.place().text());
}

}  // namespace incipit::openai
