#include "sdk/src/retry.h"

#include "incipit/anthropic.h"
#include "sdk/src/sender.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace incipit {
namespace {

using std::chrono::milliseconds;
using testing::Environment;
using testing::FakeTransport;
using testing::header;
using testing::PaperTime;

constexpr const char* refused =
    R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})";

struct Fixture {
  Environment environment;
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  PaperTime time;
  ClientOptions options = {.api_key = "key"};

  RawResponse send(const RequestOptions& request = {}) {
    options.transport = transport;
    options.waiting = time.waiting();
    const Sender sender(options, testing::messages_provider());
    return sender.send_whole({.method = "POST", .path = "/x"}, request);
  }

  // The waits before an answer that follows one 529 with these headers.
  int wait_after(std::vector<HttpHeader> headers) {
    time.waits.clear();
    transport->answer(529, refused, std::move(headers)).answer(200);
    (void)send();
    return time.waits.at(0);
  }
};

TEST_CASE_FIXTURE(Fixture, "three attempts are made, each saying its number (W-40)") {
  transport->answer(500, "first")
      .answer(502, "second")
      .answer(529, refused, {{"request-id", "req_3"}});
  try {
    (void)send();
    FAIL("nothing was thrown");
  } catch (const ApiError& error) {  // the last attempt's
    CHECK(error.status == 529);
    CHECK(error.type == ErrorType::overloaded_error);
    CHECK(error.request_id == "req_3");
    CHECK(error.body == refused);
  }
  REQUIRE(transport->requests().size() == 3);
  for (std::size_t attempt = 0; attempt < 3; ++attempt)
    CHECK(header(transport->request(attempt), "x-stainless-retry-count")
          == std::to_string(attempt));
  CHECK(time.waits == std::vector{500, 1000});
}

TEST_CASE_FIXTURE(Fixture, "max_retries of a request overrides the client's") {
  options.max_retries = 5;
  transport->always([](const HttpRequest&) { return testing::response(500); });
  CHECK_THROWS_AS((void)send({.max_retries = 1}), ApiError);
  CHECK(transport->requests().size() == 2);
  CHECK_THROWS_AS((void)send({.max_retries = 0}), ApiError);
  CHECK(transport->requests().size() == 3);
  CHECK_THROWS_AS((void)send(), ApiError);
  CHECK(transport->requests().size() == 9);
}

TEST_CASE_FIXTURE(Fixture,
                  "408, 409, 429 and 500 and above are tried again, no other status (W-41)") {
  for (int status = 400; status < 600; ++status) {
    CAPTURE(status);
    const std::size_t before = transport->requests().size();
    transport->answer(status, "{}");
    const bool again = status == 408 || status == 409 || status == 429 || status >= 500;
    if (again) {
      transport->answer(200);
      CHECK_NOTHROW((void)send());
    } else {
      CHECK_THROWS_AS((void)send(), ApiError);
    }
    CHECK(transport->requests().size() - before == (again ? 2 : 1));
  }
}

TEST_CASE_FIXTURE(Fixture, "x-should-retry overrides the status (W-41)") {
  transport->answer(400, "{}", {{"X-Should-Retry", "true"}}).answer(200, "ok");
  CHECK(send().body == "ok");
  transport->answer(529, refused, {{"x-should-retry", "false"}});
  CHECK_THROWS_AS((void)send(), ApiError);
  transport->answer(529, refused, {{"x-should-retry", "perhaps"}}).answer(200, "ok");
  CHECK(send().body == "ok");
}

TEST_CASE_FIXTURE(
    Fixture, "connection errors and timeouts are tried again, what has begun to arrive is not") {
  using Kind = TransportError::Kind;
  for (const Kind kind :
       {Kind::resolve, Kind::connect, Kind::tls, Kind::proxy, Kind::timeout, Kind::broken}) {
    transport->fail(kind).answer(200, "ok");
    CHECK(send().body == "ok");
  }
  for (const Kind kind : {Kind::broken, Kind::timeout}) {
    transport->fail(kind, false);
    CHECK_THROWS_AS((void)send(), TransportError);
  }
  transport->fail(Kind::cancelled);
  CHECK_THROWS_AS((void)send(), TransportError);
}

TEST_CASE_FIXTURE(Fixture, "a body that breaks after the headers is not asked for again (W-43)") {
  transport->then([](const HttpRequest&) -> HttpResponse {
    return {200,
            {},
            std::make_unique<testing::ScriptedBody>(
                std::vector<std::string>{"half"},
                TransportError(TransportError::Kind::broken, "cut", false))};
  });
  CHECK_THROWS_AS((void)send(), TransportError);
  CHECK(transport->requests().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "an error body that breaks leaves the status to be judged") {
  transport->then([](const HttpRequest&) -> HttpResponse {
    return {529,
            {},
            std::make_unique<testing::ScriptedBody>(
                std::vector<std::string>{"half"},
                TransportError(TransportError::Kind::broken, "cut", false))};
  });
  transport->answer(200, "ok");
  CHECK(send().body == "ok");
}

TEST_CASE_FIXTURE(Fixture, "of an error body without end only the beginning is read") {
  struct Endless : HttpBody {
    std::string piece = std::string(100'000, 'x');
    int* reads;

    explicit Endless(int* counter) : reads(counter) {}

    std::string_view read() override {
      ++*reads;
      return piece;
    }
  };

  int reads = 0;
  transport->then([&](const HttpRequest&) -> HttpResponse {
    return {400, {}, std::make_unique<Endless>(&reads)};
  });
  CHECK_THROWS_AS((void)send(), ApiError);
  CHECK(reads == 11);  // 1 MiB
}

TEST_CASE("the backoff doubles from half a second to eight, less up to a quarter (W-42)") {
  const std::vector<int> longest = {500, 1000, 2000, 4000, 8000, 8000, 8000};
  for (int retries = 0; retries < 7; ++retries) {
    const int most = longest[static_cast<std::size_t>(retries)];
    CHECK(retry_wait(std::nullopt, retries, 0).count() == most);
    CHECK(retry_wait(std::nullopt, retries, 0.4).count() == most * 9 / 10);
    // The shortest is three quarters: 0.375, 0.75, 1.5, …
    const auto shortest = retry_wait(std::nullopt, retries, 0.999).count();
    CHECK(shortest >= most * 3 / 4);
    CHECK(shortest <= most * 3 / 4 + 3);
  }
  CHECK(retry_wait(std::nullopt, 1'000'000, 0).count() == 8000);
}

TEST_CASE_FIXTURE(Fixture, "each wait of one request has its own jitter") {
  time.random = 0.999;
  transport->answer(500).answer(500).answer(200);
  CHECK_NOTHROW((void)send());
  CHECK(time.waits == std::vector{375, 750});
}

TEST_CASE_FIXTURE(
    Fixture,
    "retry-after is obeyed up to a minute, in milliseconds, seconds, or as a date (W-42)") {
  CHECK(wait_after({{"retry-after-ms", "1234.4"}}) == 1234);
  CHECK(wait_after({{"Retry-After", "7"}}) == 7000);
  CHECK(wait_after({{"retry-after", "0.25"}}) == 250);
  CHECK(wait_after({{"retry-after-ms", "20"}, {"retry-after", "9"}}) == 20);
  CHECK(wait_after({{"retry-after-ms", "soon"}, {"retry-after", "9"}}) == 9000);
  CHECK(wait_after({{"retry-after", "60"}}) == 60000);
  // Not obeyed: too long, nothing, the past, nonsense.
  for (const char* value :
       {"60.001", "3600", "0", "-1", "", "soon", "1 s", "nan", "inf", "1e300"}) {
    CAPTURE(value);
    CHECK(wait_after({{"retry-after", value}}) == 500);
  }
  // Python: datetime(2026, 12, 1, 0, 0, 0, tzinfo=utc).timestamp() == 1796083200
  time.now = std::chrono::system_clock::time_point(std::chrono::seconds(1796083200));
  CHECK(wait_after({{"retry-after", "Tue, 01 Dec 2026 00:00:30 GMT"}}) == 30000);
  time.now += milliseconds(500);
  CHECK(wait_after({{"retry-after", "Tue, 01 Dec 2026 00:00:30 GMT"}}) == 29500);
  for (const char* date : {"Tue, 01 Dec 2026 00:00:00 GMT", "Tue, 01 Dec 2026 00:02:00 GMT",
                           "Tue, 01 Dez 2026 00:00:30 GMT", "Tue, 41 Dec 2026 00:00:30 GMT",
                           "Tue, 1 Dec 2026 00:00:30 GMT"}) {
    CAPTURE(date);
    CHECK(wait_after({{"retry-after", date}}) == 500);
  }
}

TEST_CASE_FIXTURE(Fixture, "an error carries retry-after, however long") {
  transport->answer(429, "{}", {{"retry-after", "120"}});
  try {
    (void)send({.max_retries = 0});
    FAIL("nothing was thrown");
  } catch (const ApiError& error) {
    CHECK(error.retry_after == milliseconds(120'000));
  }
}

TEST_CASE_FIXTURE(Fixture, "a refused token is replaced and tried once more, at once (W-49)") {
  int tokens = 0;
  options.api_key.reset();
  options.token_provider = [&](bool refresh) {
    CHECK(refresh == (tokens > 0));
    return "token-" + std::to_string(++tokens);
  };
  SUBCASE("also where nothing else is tried again") {
    transport->answer(401, "{}", {{"x-should-retry", "false"}}).answer(200, "ok");
    CHECK(send({.max_retries = 0}).body == "ok");
    CHECK(header(transport->request(0), "authorization") == "Bearer token-1");
    CHECK(header(transport->request(1), "authorization") == "Bearer token-2");
    CHECK(time.waits.empty());
  }
  SUBCASE("only once") {
    transport->answer(401, "{}").answer(401, "{}");
    CHECK_THROWS_AS((void)send(), ApiError);
    CHECK(tokens == 2);
  }
  SUBCASE("and what the provider throws ends the request") {
    options.token_provider = [](bool refresh) -> std::string {
      if (refresh) throw RetryableError("no token to be had");
      return "token";
    };
    transport->answer(401, "{}");
    CHECK_THROWS_AS((void)send(), RetryableError);
  }
}

TEST_CASE_FIXTURE(Fixture, "a key that is refused is not sent again") {
  transport->answer(401, "{}");
  CHECK_THROWS_AS((void)send(), ApiError);
  CHECK(transport->requests().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a middleware's RetryableError is tried again like a 500, then thrown") {
  options.middleware = {
      [](HttpRequest&, const NextAttempt&) -> HttpResponse { throw RetryableError("again"); }};
  CHECK_THROWS_AS((void)send(), RetryableError);
  CHECK(time.waits == std::vector{500, 1000});
}

bool is_cancelled(const std::function<void()>& action) {
  try {
    action();
  } catch (const TransportError& error) {
    return error.kind == TransportError::Kind::cancelled;
  }
  return false;
}

TEST_CASE_FIXTURE(Fixture, "a request that was cancelled before it began is not sent") {
  std::stop_source stop;
  stop.request_stop();
  CHECK(is_cancelled([&] { (void)send({.stop = stop.get_token()}); }));
  CHECK(transport->requests().empty());
}

TEST_CASE_FIXTURE(Fixture, "an injected wait that was cut short ends the request (W-44)") {
  transport->answer(529, refused);
  options.transport = transport;
  Waiting waiting = time.waiting();
  waiting.wait = [](milliseconds, const std::stop_token&) { return false; };
  const Sender sender({.api_key = "key", .transport = transport, .waiting = waiting},
                      testing::messages_provider());
  CHECK(is_cancelled([&] { (void)sender.send({.method = "GET", .path = "/"}, {}); }));
}

TEST_CASE(
    "the real wait ends at once when it is cancelled, and otherwise lasts as long as asked "
    "(W-44)") {
  const Environment environment({{"ANTHROPIC_API_KEY", "key"}});
  const auto transport = std::make_shared<FakeTransport>();
  transport->always([](const HttpRequest&) {
    return testing::response(529, refused, {{"retry-after", "50"}});
  });
  const Sender sender({.transport = transport}, testing::messages_provider());
  const auto start = std::chrono::steady_clock::now();
  std::stop_source stop;
  std::jthread canceller([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stop.request_stop();
  });
  CHECK(is_cancelled(
      [&] { (void)sender.send({.method = "GET", .path = "/"}, {.stop = stop.get_token()}); }));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));

  const auto before = std::chrono::steady_clock::now();
  sender.wait(milliseconds(30), {});
  CHECK(std::chrono::steady_clock::now() - before >= milliseconds(30));
}

}  // namespace
}  // namespace incipit
