// What an organization may ask per minute: anthropic-wire sections 3.2 and 12, C-106.
#include "gateway/api/rate_limits.h"

#include "gateway/api/error.h"
#include "tests/gateway/request_bodies.h"
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using namespace std::chrono_literals;

namespace {

const TimePoint start = TimePoint{} + 1h;

// retry-after of a refusal, or nothing when it was let through.
std::optional<int> refused(RateLimits& limits, const std::string& organization,
                           std::string_view model, std::int64_t input, TimePoint at) {
  try {
    limits.admit(organization, model, input, at);
  } catch (const ApiError& error) {
    CHECK(error.status == 429);
    CHECK(error.type == "rate_limit_error");
    return error.retry_after;
  }
  return std::nullopt;
}

std::string header(RateLimits& limits, const std::string& name, TimePoint at) {
  HeaderList headers;
  limits.add_headers(headers, "acme", "claude-opus-5", at);
  CHECK(headers.size() == 12);
  for (const auto& [key, value] : headers) {
    if (key == "anthropic-ratelimit-" + name) return value;
  }
  return "missing";
}

}  // namespace

TEST_CASE("a bucket of requests empties at once and refills within a minute") {
  RateLimits limits({.requests = 2});
  CHECK(!refused(limits, "acme", "claude-opus-5", 10, start));
  CHECK(!refused(limits, "acme", "claude-opus-5", 10, start));
  CHECK(refused(limits, "acme", "claude-opus-5", 10, start) == 30);
  CHECK(refused(limits, "acme", "claude-opus-5", 10, start + 29s) == 1);
  CHECK(!refused(limits, "acme", "claude-opus-5", 10, start + 30s));
}

TEST_CASE("organizations and lines of models have buckets of their own") {
  RateLimits limits({.requests = 1});
  CHECK(!refused(limits, "acme", "claude-opus-5", 10, start));
  CHECK(refused(limits, "acme", "claude-opus-4-8", 10, start));
  CHECK(!refused(limits, "acme", "claude-sonnet-5", 10, start));
  CHECK(!refused(limits, "other", "claude-opus-5", 10, start));
}

TEST_CASE("input tokens wait for as long as they are missing; a whole bucket may go when full") {
  RateLimits limits({.input_tokens = 60'000});
  CHECK(!refused(limits, "acme", "claude-opus-5", 50'000, start));
  CHECK(refused(limits, "acme", "claude-opus-5", 20'000, start) == 10);  // 1,000 a second
  CHECK(!refused(limits, "acme", "claude-opus-5", 0, start));  // all of it read from the cache
  CHECK(!refused(limits, "acme", "claude-opus-5", 20'000, start + 10s));
  CHECK(refused(limits, "acme", "claude-opus-5", 200'000, start + 10s) == 60);
  CHECK(!refused(limits, "acme", "claude-opus-5", 200'000, start + 70s));
  CHECK(refused(limits, "acme", "claude-opus-5", 1, start + 70s) == 141);  // the debt is paid first
}

TEST_CASE("output is charged afterwards and holds up the next request") {
  RateLimits limits({.output_tokens = 600});
  CHECK(!refused(limits, "acme", "claude-opus-5", 1, start));
  limits.charge_output("acme", "claude-opus-5", 700, start);
  CHECK(refused(limits, "acme", "claude-opus-5", 1, start)
        == 11);  // 100 of debt and one, 10 a second
  CHECK(!refused(limits, "acme", "claude-opus-5", 1, start + 11s));
}

TEST_CASE("the headers tell limit, remainder to the nearest thousand, and when it is whole again") {
  RateLimits limits({.requests = 50, .input_tokens = 500'000, .output_tokens = 80'000});
  limits.admit("acme", "claude-opus-5", 12'400, start);
  limits.charge_output("acme", "claude-opus-5", 600, start);
  CHECK(header(limits, "requests-limit", start) == "50");
  CHECK(header(limits, "requests-remaining", start) == "49");
  CHECK(header(limits, "input-tokens-limit", start) == "500000");
  CHECK(header(limits, "input-tokens-remaining", start) == "488000");
  CHECK(header(limits, "output-tokens-remaining", start) == "79000");
  CHECK(header(limits, "tokens-limit", start) == "580000");
  CHECK(header(limits, "tokens-remaining", start) == "567000");
  CHECK(header(limits, "input-tokens-remaining", start + 60s) == "500000");
  CHECK(header(limits, "tokens-reset", start).size() == 20);
}

TEST_CASE("a list of limits is read, and a mistake in it named") {
  const LimitRates rates = parse_limits("input-tokens=40000,requests=50");
  CHECK(rates.requests == 50);
  CHECK(rates.input_tokens == 40'000);
  CHECK(rates.output_tokens == LimitRates{}.output_tokens);
  for (const std::string text :
       {"", "requests", "requests=", "requests=0", "requests=-1", "requests=5x", "tokens=5",
        "requests=1,requests=2", "requests=1,", "requests=99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)parse_limits(text), std::runtime_error);
  }
}

TEST_CASE("over HTTP the request too many is a 429 with retry-after, and no count of tokens") {
  GatewaySetup setup;
  setup.limits.requests = 2;
  const LoopbackGateway gateway(setup);
  const std::string body =
      R"({"model":"claude-opus-4-8","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]})";
  CHECK(ask(gateway, post("/v1/messages", body)).header("anthropic-ratelimit-requests-remaining")
        == "1");
  CHECK(ask(gateway, post("/v1/messages", body)).status == 200);
  const Answer refused = ask(gateway, post("/v1/messages", body));
  CHECK(refused.status == 429);
  CHECK(refused.body.find("\"rate_limit_error\"") != std::string::npos);
  CHECK(refused.body.find("of 2 requests per minute") != std::string::npos);
  CHECK(!refused.header("retry-after").empty());
  CHECK(refused.header("x-should-retry").empty());
  CHECK(ask(gateway,
            post("/v1/messages/count_tokens",
                 R"({"model":"claude-opus-4-8","messages":[{"role":"user","content":"Hi"}]})"))
            .status
        == 200);
}

TEST_CASE("what is read from the cache costs no input tokens (C-106, C-108)") {
  GatewaySetup setup;
  setup.limits.input_tokens = 3000;
  const LoopbackGateway gateway(setup);
  const auto ask_about = [&](char system, const std::string& question) {
    return ask(
        gateway,
        post(
            "/v1/messages",
            R"({"model":"claude-sonnet-4-6","max_tokens":1,"system":[{"type":"text","text":")"
                + std::string(2000, system)
                + R"(","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":")"
                + question + R"("}]})"));
  };
  const Answer written = ask_about('s', "0");
  CHECK(written.status == 200);
  CHECK(written.header("anthropic-ratelimit-input-tokens-remaining") == "1000");
  // Five times 2,000 tokens, of a bucket that has 1,000 left.
  for (int i = 1; i <= 5; ++i) {
    const Answer read = ask_about('s', std::to_string(i));
    CHECK(read.status == 200);
    CHECK(number_in(read.body, "cache_read_input_tokens") >= 2000);
  }
  const Answer cold = ask_about('t', "6");
  CHECK(cold.status == 429);
  CHECK(cold.body.find("of 3000 input tokens per minute") != std::string::npos);
}
