#include "sdk/src/sender.h"

#include "incipit/anthropic.h"
#include "sdk/src/url.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

using testing::Environment;
using testing::FakeTransport;
using testing::header;

constexpr const char* key = "sk-marker-0123456789";

// The request that reaches the network.
HttpRequest sent(ClientOptions options, const RequestOptions& request_options = {},
                 Call call = {.method = "POST",
                              .path = "/v1/messages",
                              .body = std::make_shared<const std::string>("{}")}) {
  const auto transport = std::make_shared<FakeTransport>();
  transport->answer(200);
  options.transport = transport;
  (void)Sender(std::move(options), testing::messages_provider()).send(call, request_options);
  return transport->request();
}

std::string refusal(const ClientOptions& options, const RequestOptions& request_options = {}) {
  try {
    (void)sent(options, request_options);
  } catch (const PromptError& error) {
    return error.what();
  }
  return "(sent)";
}

std::string url(const std::string& base, const std::string& path, const Query& client = {},
                const Query& request = {}) {
  return sent({.api_key = key, .base_url = base, .query = client}, {.query = request},
              {.method = "GET", .path = path})
      .url;
}

TEST_CASE("a request has the headers of section 3.1") {
  const Environment environment;
  const HttpRequest request = sent({.api_key = key});
  CHECK(request.method == "POST");
  CHECK(request.url == "https://api.anthropic.com/v1/messages");
  CHECK(header(request, "content-type") == "application/json");
  CHECK(header(request, "accept") == "application/json");
  CHECK(header(request, "anthropic-version") == "2026-10-21");
  CHECK(header(request, "x-api-key") == key);
  CHECK(header(request, "authorization") == "(none)");
  CHECK(header(request, "anthropic-beta") == "(none)");
  CHECK(header(request, "x-stainless-retry-count") == "0");
  CHECK(header(request, "user-agent").starts_with("Incipit/0."));
  CHECK(request.timeout == std::chrono::minutes(10));
  CHECK(request.connect_timeout == std::chrono::seconds(5));
  CHECK(header(sent({.api_key = key}, {}, {.method = "GET", .path = "/v1/models"}), "content-type")
        == "(none)");
}

TEST_CASE("a credential comes from the options, or else from the environment (W-7)") {
  SUBCASE("a token goes out as Bearer") {
    const Environment environment;
    const HttpRequest request = sent({.auth_token = "token"});
    CHECK(header(request, "authorization") == "Bearer token");
    CHECK(header(request, "x-api-key") == "(none)");
  }
  SUBCASE("the environment's key, trimmed, wins over its token, with a warning") {
    const Environment environment(
        {{"ANTHROPIC_API_KEY", "  env-key\n"}, {"ANTHROPIC_AUTH_TOKEN", "t"}});
    std::string log;
    const HttpRequest request = sent({.log = [&](LogLevel level, std::string_view line) {
      if (level == LogLevel::warn) log += line;
    }});
    CHECK(header(request, "x-api-key") == "env-key");
    CHECK(header(request, "authorization") == "(none)");
    CHECK(log == "ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are both set: the first is used");
  }
  SUBCASE("an empty variable is unset") {
    const Environment environment(
        {{"ANTHROPIC_API_KEY", " \t"}, {"ANTHROPIC_AUTH_TOKEN", "token"}});
    CHECK(header(sent({}), "authorization") == "Bearer token");
  }
  SUBCASE("with a credential in the options the environment's is not looked at") {
    const Environment environment({{"ANTHROPIC_API_KEY", "env-key"}});
    const HttpRequest request = sent({.auth_token = "token"});
    CHECK(header(request, "authorization") == "Bearer token");
    CHECK(header(request, "x-api-key") == "(none)");
  }
  SUBCASE("an option that is blank is unset") {
    const Environment environment({{"ANTHROPIC_API_KEY", "env-key"}});
    CHECK(header(sent({.api_key = " "}), "x-api-key") == "env-key");
  }
  SUBCASE("a header of the options is a credential as well") {
    const Environment environment({{"ANTHROPIC_API_KEY", "env-key"}});
    const HttpRequest request = sent({.headers = {{"Authorization", "Basic abc"}}});
    CHECK(header(request, "authorization") == "Basic abc");
    CHECK(header(request, "x-api-key") == "(none)");
  }
  SUBCASE("none at all, or two, are refused") {
    const Environment environment;
    CHECK(refusal({}).find("ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN") != std::string::npos);
    CHECK(refusal({.api_key = key, .auth_token = "t"}).find("exclude each other")
          != std::string::npos);
    CHECK(refusal({.api_key = key, .token_provider = [](bool) { return "t"; }}).find("exclude")
          != std::string::npos);
    try {
      (void)sent({});
    } catch (const PromptError& error) {
      CHECK(error.rule == "W-7");
    }
  }
}

TEST_CASE("a token provider is asked at each request") {
  const Environment environment;
  std::vector<bool> asked;
  const ClientOptions options{.token_provider = [&](bool refresh) {
    asked.push_back(refresh);
    return " fresh ";
  }};
  CHECK(header(sent(options), "authorization") == "Bearer fresh");
  (void)sent(options);
  CHECK(asked == std::vector{false, false});
  CHECK(refusal({.token_provider = [](bool) { return ""; }})
        == "token_provider returned an empty token");
}

TEST_CASE("a later header replaces an earlier one, and null removes it") {
  const Environment environment(
      {{"ANTHROPIC_CUSTOM_HEADERS", "X-One: env\r\n\n x-two :  a: b \nX-Three: env"}});
  const HttpRequest request =
      sent({.api_key = key,
            .headers = {{"x-one", "client"}, {"x-three", std::nullopt}, {"user-agent", "mine"}}},
           {.headers = {{"X-ONE", "request"}, {"X-Api-Key", "other"}, {"accept", std::nullopt}}});
  CHECK(header(request, "x-one") == "request");
  CHECK(header(request, "x-two") == "a: b");
  CHECK(header(request, "x-three") == "(none)");
  CHECK(header(request, "user-agent") == "mine");
  CHECK(header(request, "x-api-key") == "other");
  CHECK(header(request, "accept") == "(none)");
}

TEST_CASE("a bad line of the custom headers is named by its number, never by its text") {
  const Environment environment(
      {{"ANTHROPIC_CUSTOM_HEADERS", "X-Good: 1\n\nsecret without colon"}});
  CHECK(refusal({.api_key = key})
        == "ANTHROPIC_CUSTOM_HEADERS: line 3 is not of the form `Name: value`");
}

TEST_CASE("a header cannot smuggle in another") {
  const Environment environment;
  for (const std::string& value :
       {std::string("a\r\nx-evil: 1"), std::string("a\nb"), std::string("a\0b", 3)}) {
    CHECK(refusal({.api_key = key, .headers = {{"x-a", value}}}).find("'x-a'")
          != std::string::npos);
    const std::string message = refusal({.api_key = key + value});
    CHECK(message.find("'x-api-key'") != std::string::npos);
    CHECK(message.find(key) == std::string::npos);
    CHECK(refusal({.api_key = key}, {.headers = {{"x-a", value}}}) != "(sent)");
  }
  CHECK(refusal({.api_key = key, .headers = {{"x a", "1"}}}) != "(sent)");
  CHECK(refusal({.api_key = key, .headers = {{"", "1"}}}) != "(sent)");
  CHECK(refusal({.api_key = key, .headers = {{"x-a", "tab\tand é"}}}) == "(sent)");
}

TEST_CASE("betas are joined in order and without duplicates") {
  const Environment environment;
  ClientOptions options{
      .api_key = key, .betas = {"a", "b"}, .headers = {{"anthropic-beta", "h, a"}}};
  const HttpRequest request = sent(options, {.betas = {"b", "c"}},
                                   {.method = "GET", .path = "/v1/models", .betas = {"call"}});
  CHECK(header(request, "anthropic-beta") == "a,b,call,c,h");
  CHECK(header(sent(options, {.headers = {{"Anthropic-Beta", std::nullopt}}}), "anthropic-beta")
        == "(none)");
}

TEST_CASE("a path is joined to the base URL, whose own path is a prefix") {
  const Environment environment;
  CHECK(url("http://host:8080/proxy", "/v1/messages") == "http://host:8080/proxy/v1/messages");
  CHECK(url("http://host:8080/proxy//", "v1/x") == "http://host:8080/proxy/v1/x");
  const Environment variable({{"ANTHROPIC_BASE_URL", " http://localhost:1/ "}});
  CHECK(sent({.api_key = key}).url == "http://localhost:1/v1/messages");
  CHECK(sent({.api_key = key, .base_url = "http://b"}).url == "http://b/v1/messages");
  CHECK(sent({.api_key = key, .base_url = "http://b"}, {.base_url = "http://c/d/"}).url
        == "http://c/d/v1/messages");
}

TEST_CASE("a later query replaces names of an earlier one (section 19.2)") {
  const Environment environment;
  CHECK(url("http://h", "/p?a=1&b=2", {{"b", "3"}, {"c", "4"}}, {{"c", "5"}, {"c", "6"}})
        == "http://h/p?a=1&b=3&c=5&c=6");
  CHECK(url("http://h", "/p", {}, {{"lifecycle[]", "a b&c/é"}})
        == "http://h/p?lifecycle%5B%5D=a%20b%26c%2F%C3%A9");
}

TEST_CASE("base URLs that cannot be meant are refused without repeating them (W-1)") {
  const Environment environment;
  for (const char* base : {"api.anthropic.com", "ftp://host", "http://", "http://:80",
                           "https://me:hunter2@host", "http://host?x=1", "http://host#f",
                           "http://ho st", "http://host\\x", "/v1", "http:///path"}) {
    CAPTURE(base);
    const std::string message = refusal({.api_key = key, .base_url = base});
    CHECK(message.starts_with("the base URL "));
    CHECK(message.find("hunter2") == std::string::npos);
  }
  CHECK(refusal({.api_key = key, .base_url = "HTTPS://Host"}) == "(sent)");
  CHECK(refusal({.api_key = key, .base_url = "http://[::1]:80/p"}) == "(sent)");
  CHECK(refusal({.api_key = key}, {.base_url = "nonsense"}) != "(sent)");
}

TEST_CASE("an absolute URL is asked only at the origin that the credential is for") {
  const Environment environment;
  CHECK(url("https://host/prefix", "https://HOST:443/other?x=1") == "https://HOST:443/other?x=1");
  for (const char* elsewhere :
       {"https://evil.com/x", "http://host/x", "https://host:8443/x", "https://host.evil.com/x",
        "https://host@evil.com/x", "https://host\\@evil.com/x", "https://me@host/x"}) {
    CAPTURE(elsewhere);
    CHECK_THROWS_AS((void)url("https://host", elsewhere), PromptError);
  }
  CHECK_THROWS_AS((void)url("https://host", "/a b"), PromptError);
  CHECK_THROWS_AS((void)url("https://host", "/a\r\nb"), PromptError);
}

TEST_CASE("middleware wraps each attempt, the client's outermost first") {
  const Environment environment;
  std::string order;
  const auto named = [&](const std::string& name) -> Middleware {
    return [&order, name](HttpRequest& request, const NextAttempt& next) {
      order += "<" + name + std::to_string(request.attempt);
      request.set_header("x-" + name, "1");
      HttpResponse response = next(request);
      order += name + ">";
      return response;
    };
  };
  const auto transport = std::make_shared<FakeTransport>();
  transport->answer(500, "{}").answer(200, "body");
  testing::PaperTime time;
  const Sender sender({.api_key = key,
                       .transport = transport,
                       .middleware = {named("a"), named("b")},
                       .waiting = time.waiting()},
                      testing::messages_provider());
  const RawResponse response =
      sender.send_whole({.method = "GET", .path = "/x"}, {.middleware = {named("c")}});
  CHECK(response.body == "body");
  CHECK(order == "<a0<b0<c0c>b>a><a1<b1<c1c>b>a>");
  CHECK(header(transport->request(1), "x-c") == "1");
}

TEST_CASE("middleware may answer itself, replace the response, and ask for another attempt") {
  const Environment environment;
  const auto transport = std::make_shared<FakeTransport>();
  transport->answer(200, "from afar");
  testing::PaperTime time;
  int calls = 0;
  const Middleware middleware = [&](HttpRequest& request, const NextAttempt& next) -> HttpResponse {
    if (++calls == 1) throw RetryableError("not yet");
    if (request.url.ends_with("/cached")) return testing::response(200, "from here");
    HttpResponse response = next(request);
    response.body = whole_body("changed " + response.text());
    return response;
  };
  const Sender sender({.api_key = key,
                       .transport = transport,
                       .middleware = {middleware},
                       .waiting = time.waiting()},
                      testing::messages_provider());
  CHECK(sender.send_whole({.method = "GET", .path = "/cached"}, {}).body == "from here");
  CHECK(calls == 2);
  CHECK(time.waits == std::vector{500});
  CHECK(sender.send_whole({.method = "GET", .path = "/x"}, {}).body == "changed from afar");
  CHECK(transport->requests().size() == 1);
}

TEST_CASE("what a middleware throws besides ends the request") {
  const Environment environment;

  struct Mine : Error {
    using Error::Error;
  };

  const Middleware middleware = [](HttpRequest&, const NextAttempt&) -> HttpResponse {
    throw Mine("no");
  };
  CHECK_THROWS_AS((void)sent({.api_key = key, .middleware = {middleware}}), Mine);
}

TEST_CASE("timeouts of a request override the client's") {
  const Environment environment;
  using std::chrono::milliseconds;
  const ClientOptions options{.api_key = key, .timeout = milliseconds(7000)};
  CHECK(sent(options).timeout == milliseconds(7000));
  const HttpRequest request = sent(options, {.timeout = milliseconds(300)});
  CHECK(request.timeout == milliseconds(300));
  CHECK(request.connect_timeout == milliseconds(300));
  CHECK(refusal(options, {.timeout = milliseconds(0)}) != "(sent)");
}

TEST_CASE("ids become one segment of a path") {
  // As encodeURIComponent does it, but for !'()* which may be encoded as well.
  CHECK(path_segment("msgbatch_01-a.~", "the id") == "msgbatch_01-a.~");
  CHECK(path_segment("a/b?c#d%é", "the id") == "a%2Fb%3Fc%23d%25%C3%A9");
  CHECK(path_segment("...", "the id") == "...");
  for (const char* id : {"", ".", ".."})
    CHECK_THROWS_AS((void)path_segment(id, "the id"), PromptError);
}

// Every error and log line that a request can end in, as one text.
std::string all_words(const std::function<void(const std::shared_ptr<FakeTransport>&)>& script,
                      RequestOptions request_options = {}) {
  std::string words;
  testing::PaperTime time;
  const auto transport = std::make_shared<FakeTransport>();
  script(transport);
  const auto log = [&](LogLevel, std::string_view line) { words += std::string(line) + "\n"; };
  try {
    const Sender sender(
        {.api_key = key, .transport = transport, .waiting = time.waiting(), .log = log},
        testing::messages_provider());
    (void)sender.send_whole({.method = "POST", .path = "/v1/messages?beta=true"}, request_options);
  } catch (const ApiError& error) {
    words += error.what() + error.body + error.message + error.param + error.request_id + "\n";
  } catch (const Error& error) {
    words += std::string(error.what()) + "\n";
  }
  return words;
}

TEST_CASE("log lines tell the attempts, and neither they nor errors ever hold the key") {
  const Environment environment;
  const std::string echo =
      R"({"type":"error","error":{"type":"invalid_request_error","message":"x-api-key: )"
      + std::string(key) + "\"}}";
  CHECK(all_words([](const auto& transport) {
          transport->answer(529).fail(TransportError::Kind::timeout).answer(200, "", {{"request-id", "req_1"}});
        })
        == "POST /v1/messages, attempt 1: status 529; trying again in 500 ms\n"
           "POST /v1/messages, attempt 2: timeout; trying again in 1000 ms\n"
           "POST /v1/messages, attempt 3: status 200, req_1\n");
  std::string words;
  for (const int status : {400, 401, 404, 413, 429, 500, 529})
    words += all_words([&](const auto& transport) {
      transport->always([=](const HttpRequest&) { return testing::response(status, echo); });
    });
  words += all_words(
      [&](const auto& transport) { transport->answer(403, "<html>" + std::string(key) + key); });
  words +=
      all_words([](const auto& transport) { transport->fail(TransportError::Kind::tls, false); });
  words += all_words([](const auto& transport) { transport->answer(200); },
                     {.headers = {{"x-other", std::string(key) + "\n"}}});
  CHECK(words.find("[redacted]") != std::string::npos);
  CHECK(words.find(key) == std::string::npos);
}

}  // namespace
}  // namespace incipit
