// Errors of a server. Data: the table of anthropic-wire section 11.
#include "incipit/anthropic.h"
#include "tests/support/test_data.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace incipit {
namespace {

const std::map<std::string, ErrorType> types = {
    {"unknown", ErrorType::unknown},
    {"invalid_request_error", ErrorType::invalid_request_error},
    {"authentication_error", ErrorType::authentication_error},
    {"billing_error", ErrorType::billing_error},
    {"permission_error", ErrorType::permission_error},
    {"not_found_error", ErrorType::not_found_error},
    {"conflict_error", ErrorType::conflict_error},
    {"request_too_large", ErrorType::request_too_large},
    {"rate_limit_error", ErrorType::rate_limit_error},
    {"api_error", ErrorType::api_error},
    {"timeout_error", ErrorType::timeout_error},
    {"overloaded_error", ErrorType::overloaded_error},
};

TEST_CASE("every type of error in its envelope") {
  const JsonValue cases = JsonValue::parse(test_data("wire/sdk_errors.json"));
  REQUIRE(cases.as_array().size() == 14);
  for (const JsonValue& one : cases.as_array()) {
    const std::string body = one.find("body")->minified();
    CAPTURE(body);
    const auto status = static_cast<int>(*one.find("status")->as_integer());
    const ApiError error = parse_api_error(status, body);
    CHECK(error.type.known == types.at(one.find("known")->as_string()));
    CHECK(error.type.text == one.find("body")->find("error")->find("type")->as_string());
    CHECK(error.status == status);
    CHECK(error.what() == one.find("what")->as_string());
    CHECK(error.message == one.find("body")->find("error")->find("message")->as_string());
    CHECK(error.error_code == (one.find("code") != nullptr ? one.find("code")->as_string() : ""));
    CHECK(error.body == body);
    CHECK_FALSE(error.retry_after);
  }
}

TEST_CASE("a body that is no envelope: the type follows from the status") {
  struct Case {
    int status;
    std::string body;
    ErrorType type;
    std::string what;
  };

  for (const Case& one : {
           Case{502, "<html>\r\n<title>502 Bad Gateway</title>\n", ErrorType::api_error,
                "502 error: <html> <title>502 Bad Gateway</title> "},
           Case{413, "", ErrorType::request_too_large, "413 error: no body"},
           Case{404, R"({"detail":"Not Found"})", ErrorType::not_found_error,
                R"(404 error: {"detail":"Not Found"})"},
           Case{400, R"({"error":"bad"})", ErrorType::invalid_request_error,
                R"(400 error: {"error":"bad"})"},
           Case{529, R"({"error":{"type":5}})", ErrorType::overloaded_error,
                R"(529 error: {"error":{"type":5}})"},
           Case{422, "[]", ErrorType::unknown, "422 error: []"},
           Case{500, "\xff\xfe", ErrorType::api_error, "500 error: \xEF\xBF\xBD\xEF\xBF\xBD"},
       }) {
    CAPTURE(one.body);
    const ApiError error = parse_api_error(one.status, one.body);
    CHECK(error.type.known == one.type);
    CHECK(error.type.text.empty());
    CHECK(error.what() == one.what);
    CHECK(error.body == one.body);
    CHECK(error.request_id.empty());
  }
}

TEST_CASE("a long text is cut at a character, in what() alone when it is the server's message") {
  std::string page;
  for (int i = 0; i < 5000; ++i)
    page += "é";
  const ApiError from_proxy = parse_api_error(503, page);
  CHECK(from_proxy.message.size() < 210);
  CHECK(from_proxy.message.ends_with("é…"));
  const ApiError from_server = parse_api_error(
      400, R"({"error":{"type":"invalid_request_error","message":")" + page + R"("}})");
  CHECK(from_server.message == page);
  CHECK(std::string(from_server.what()).size() < 1100);
}

}  // namespace
}  // namespace incipit
