#include "incipit/client.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

using testing::Environment;
using testing::FakeTransport;
using testing::header;

std::string batch(const std::string& status, const std::string& results_url = "null") {
  return R"({"id":"msgbatch_1","type":"message_batch","processing_status":")" + status
         + R"(","request_counts":{"processing":1,"succeeded":2,"errored":3,"canceled":4,"expired":5},"ended_at":null,"created_at":"2026-12-01T00:00:00Z","expires_at":"2026-12-02T00:00:00Z","cancel_initiated_at":null,"archived_at":null,"results_url":)"
         + results_url + "}";
}

BatchRequest entry(std::string id) {
  BatchRequest request{std::move(id), {}};
  request.params.model = "claude-opus-5-5";
  request.params.max_tokens = 10;
  request.params.messages.push_back({MessageRole::user, {TextBlock{"Hello"}}});
  return request;
}

struct Fixture {
  Environment environment;
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  testing::PaperTime time;
  Client client{{.api_key = "key", .transport = transport, .waiting = time.waiting()}};

  [[nodiscard]] std::string refused_path(const std::vector<BatchRequest>& requests) const {
    try {
      (void)client.batches().create(requests);
    } catch (const PromptError& error) {
      return error.path;
    }
    return "(sent)";
  }
};

TEST_CASE_FIXTURE(Fixture, "a batch is created from its requests") {
  transport->answer(200, batch("in_progress"));
  const MessageBatch made = client.batches().create({entry("a"), entry("B_-9")});
  CHECK(transport->request().method == "POST");
  CHECK(transport->request().url == "https://api.anthropic.com/v1/messages/batches");
  CHECK(*transport->request().body
        == R"({"requests":[{"custom_id":"a","params":)" + to_json(entry("a").params)
               + R"(},{"custom_id":"B_-9","params":)" + to_json(entry("a").params) + "}]}");
  CHECK(made.id == "msgbatch_1");
  CHECK(made.processing_status == "in_progress");
  CHECK(made.processing == 1);
  CHECK(made.succeeded == 2);
  CHECK(made.errored == 3);
  CHECK(made.canceled == 4);
  CHECK(made.expired == 5);
  CHECK(made.created_at == "2026-12-01T00:00:00Z");
  CHECK(made.expires_at == "2026-12-02T00:00:00Z");
  CHECK(made.ended_at.empty());
  CHECK(made.results_url.empty());
  CHECK(made.json.text() == batch("in_progress"));
}

TEST_CASE_FIXTURE(Fixture, "what a batch refuses is not sent (C-105)") {
  CHECK(refused_path({}) == "requests");
  CHECK(refused_path(std::vector<BatchRequest>(100'001)) == "requests");
  for (const std::string& id :
       {std::string(), std::string("a b"), std::string("é"), std::string(65, 'a')})
    CHECK(refused_path({entry("ok"), entry(id)}) == "requests.1.custom_id");
  CHECK(refused_path({entry("a"), entry("b"), entry("a")}) == "requests.2.custom_id");
  BatchRequest bad = entry("a");
  bad.params.max_tokens = 0;
  CHECK(refused_path({bad}) == "requests.0.params.max_tokens");
  bad = entry("a");
  bad.params.stream = true;
  CHECK(refused_path({bad}) == "requests.0.params.stream");
  bad = entry("a");
  bad.params.speed = "fast";
  CHECK(refused_path({bad}) == "requests.0.params.speed");
  bad = entry("a");
  bad.params.messages[0].content[0] = TextBlock{"\xff"};
  CHECK(refused_path({entry("b"), bad}).starts_with("requests.1.params.messages.0"));
  CHECK(transport->requests().empty());
  transport->answer(200, batch("in_progress"));
  CHECK(refused_path({entry(std::string(64, 'a'))}) == "(sent)");
}

TEST_CASE_FIXTURE(Fixture, "one batch is asked for, cancelled and removed by its id") {
  transport->answer(200, batch("ended"))
      .answer(200, batch("canceling"))
      .answer(200, R"({"id":"msgbatch_1","type":"message_batch_deleted"})");
  CHECK(client.batches().get("msgbatch_1").processing_status == "ended");
  CHECK(client.batches().cancel("a/b").processing_status == "canceling");
  client.batches().remove("msgbatch_1");
  const std::string base = "https://api.anthropic.com/v1/messages/batches/";
  CHECK(transport->request(0).method + transport->request(0).url == "GET" + base + "msgbatch_1");
  CHECK(transport->request(1).method + transport->request(1).url == "POST" + base + "a%2Fb/cancel");
  CHECK(transport->request(2).method + transport->request(2).url == "DELETE" + base + "msgbatch_1");
  CHECK_FALSE(transport->request(1).body);
  CHECK_THROWS_AS(client.batches().remove(""), PromptError);
}

TEST_CASE_FIXTURE(Fixture, "waiting asks again and again until the batch has ended") {
  transport->answer(200, batch("in_progress"))
      .answer(200, batch("canceling"))
      .answer(200, batch("ended"));
  CHECK(client.batches().wait("msgbatch_1", std::chrono::seconds(5)).processing_status == "ended");
  CHECK(time.waits == std::vector{5000, 5000});
}

TEST_CASE_FIXTURE(Fixture, "waiting ends when it is stopped") {
  std::stop_source stop;
  transport->then([&](const HttpRequest&) {
    stop.request_stop();
    return testing::response(200, batch("in_progress"));
  });
  CHECK_THROWS_AS(
      (void)client.batches().wait("b", std::chrono::hours(1), {.stop = stop.get_token()}),
      TransportError);
}

constexpr const char* message =
    R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1,"service_tier":"batch"}})";

const std::string results = std::string(R"({"custom_id":"a","result":{"type":"succeeded","message":)") + message
                            + "}}\n\r\n  \n"
                              R"({"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"bad"},"request_id":null}}})"
                              "\r\n"
                              R"({"custom_id":"c","result":{"type":"canceled"}})"
                              "\n"
                              R"({"custom_id":"d","result":{"type":"expired"}})";

MessageBatch ended(std::string results_url) {
  MessageBatch batch;
  batch.id = "msgbatch_1";
  batch.processing_status = "ended";
  batch.results_url = std::move(results_url);
  return batch;
}

constexpr const char* results_url =
    "https://api.anthropic.com/v1/messages/batches/msgbatch_1/results";

TEST_CASE_FIXTURE(Fixture, "results are read line by line, however the lines are cut") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{10}, results.size()}) {
    CAPTURE(size);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < results.size(); at += size)
      pieces.push_back(results.substr(at, size));
    transport->then([&](const HttpRequest&) -> HttpResponse {
      return {200, {}, std::make_unique<testing::ScriptedBody>(pieces)};
    });
    std::vector<BatchResult> read;
    for (const BatchResult& result : client.batches().results(ended(results_url)))
      read.push_back(result);
    REQUIRE(read.size() == 4);
    CHECK(read[0].custom_id + read[1].custom_id + read[2].custom_id + read[3].custom_id == "abcd");
    CHECK(read[0].type == "succeeded");
    REQUIRE(read[0].message);
    CHECK(read[0].message->text() == "Hi");
    CHECK(read[0].message->usage.service_tier == "batch");
    CHECK(read[1].type == "errored");
    REQUIRE(read[1].error);
    CHECK(read[1].error->type == ErrorType::invalid_request_error);
    CHECK(read[1].error->message == "bad");
    CHECK(read[2].type == "canceled");
    CHECK_FALSE(read[2].message);
    CHECK_FALSE(read[2].error);
    CHECK(read[3].type == "expired");
    CHECK(read[3].json.text() == R"({"custom_id":"d","result":{"type":"expired"}})");
  }
  CHECK(transport->request().url == results_url);
  CHECK(header(transport->request(), "x-api-key") == "key");
  CHECK(header(transport->request(), "accept") == "application/binary");
}

TEST_CASE_FIXTURE(Fixture, "results arrive when they are asked for, and leaving early closes") {
  const auto closed = std::make_shared<bool>(false);
  transport->then([&](const HttpRequest&) -> HttpResponse {
    return {200,
            {},
            std::make_unique<testing::ScriptedBody>(
                std::vector<std::string>{results.substr(0, 400)},
                TransportError(TransportError::Kind::broken, "cut", false), closed)};
  });
  {
    Sequence<BatchResult> sequence = client.batches().results(ended(results_url));
    const auto first = sequence.next();
    REQUIRE(first);
    CHECK(first->custom_id == "a");
    CHECK_THROWS_AS((void)sequence.next(), TransportError);
    CHECK_FALSE(*closed);
  }
  CHECK(*closed);
}

TEST_CASE_FIXTURE(Fixture, "a line that is no result is a ParseError") {
  transport->answer(200, "{\"custom_id\":\"a\"}\n").answer(200, "nonsense");
  Sequence<BatchResult> sequence = client.batches().results(ended(results_url));
  CHECK_THROWS_AS((void)sequence.next(), ParseError);
  CHECK_FALSE(sequence.next());
  CHECK_THROWS_AS((void)client.batches().results(ended(results_url)).next(), ParseError);
}

TEST_CASE_FIXTURE(Fixture, "a batch without results is named, with its status") {
  MessageBatch batch = ended("");
  batch.processing_status = "in_progress";
  try {
    (void)client.batches().results(batch);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(std::string(error.what())
          == "batch msgbatch_1 has no results yet: its status is in_progress");
  }
}

TEST_CASE_FIXTURE(Fixture, "credentials never follow a results_url to another origin") {
  for (const char* url : {"https://evil.com/results", "http://api.anthropic.com/results",
                          "https://api.anthropic.com@evil.com/results"})
    CHECK_THROWS_AS((void)client.batches().results(ended(url)), PromptError);
  CHECK(transport->requests().empty());
}

}  // namespace
}  // namespace incipit
