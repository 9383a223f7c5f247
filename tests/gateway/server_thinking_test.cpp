// Thinking blocks and edits of the conversation over a socket: usage, and what answers say of them.
#include "gateway/api/anthropic_request.h"
#include "gateway/api/signature.h"
#include "incipit/json.h"
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using incipit::JsonValue;

namespace {

const std::string first = R"({"role":"user","content":")" + std::string(1300, 'u') + R"("})";
const std::string call = R"({"type":"tool_use","id":"t1","name":"f","input":{}})";
const std::string result =
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"sunny",
        "cache_control":{"type":"ephemeral"}}]})";
const std::string next =
    R"({"role":"user","content":[{"type":"text","text":"and then?","cache_control":{"type":"ephemeral"}}]})";

std::string assistant(const std::string& blocks) {
  return R"({"role":"assistant","content":[)" + blocks + "]}";
}

std::string body_of(std::string_view model, const std::vector<std::string>& messages,
                    std::string_view more) {
  std::string body =
      R"({"model":")" + std::string(model) + R"(",)" + std::string(more) + R"(,"messages":[)";
  for (const std::string& message : messages)
    body += message + (&message == &messages.back() ? "" : ",");
  return body + "]}";
}

// What the gateway would have signed a thought of its answer with.
std::string thought(std::string_view text, const std::string& body) {
  const PrefixKey key = parse_messages(body, RequestContext()).content_key;
  return R"({"type":"thinking","thinking":"","signature":")" + sign_thought(text, key, false)
         + "\"}";
}

// The loop of section 13; returns the answers to its second and third request.
std::vector<Answer> run_loop(const LoopbackGateway& gateway, std::string_view model,
                             std::string_view more) {
  std::vector<Answer> answers;
  std::vector<std::string> messages = {first};
  const auto think = [&](std::string_view text) {
    return thought(text, body_of(model, messages, more));
  };
  messages.push_back(assistant(think("I should ask f about the weather.") + "," + call));
  messages.push_back(result);
  answers.push_back(ask(gateway, post("/v1/messages", body_of(model, messages, more))));
  messages.push_back(
      assistant(think("It is sunny.") + R"(,{"type":"text","text":"It is sunny."})"));
  messages.push_back(next);
  answers.push_back(ask(gateway, post("/v1/messages", body_of(model, messages, more))));
  for (const Answer& answer : answers) {
    CAPTURE(answer.body);
    REQUIRE(answer.status == 200);
  }
  return answers;
}

std::string message_of(const Answer& answer) {
  return JsonValue::parse(answer.body).find("error")->find("message")->as_string();
}

const std::string edits_beta = "anthropic-beta: context-management-2025-06-27\r\n";

// Two calls with their results; the edit clears the first.
std::string with_edit(std::string_view more) {
  std::string messages;
  for (const std::string id : {"t1", "t2"}) {
    messages += R"(,{"role":"assistant","content":[{"type":"tool_use","id":")" + id
                + R"(","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result",
                    "tool_use_id":")"
                + id + R"(","content":")" + std::string(500, 'r') + R"("}]})";
  }
  return R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"q"})" + messages
         + R"(],"context_management":{"edits":[{"type":"clear_tool_uses_20250919",
             "trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":1}}]})"
         + std::string(more) + "}";
}

}  // namespace

TEST_CASE("V22: on a last-turn model the user's next message loses what a thought was in") {
  const LoopbackGateway gateway;
  const std::vector<Answer> answers = run_loop(gateway, "claude-sonnet-4-5",
                                               R"("max_tokens":1025,"stop_sequences":["a","e","i"],
                  "thinking":{"type":"enabled","budget_tokens":1024})");
  CHECK(number_in(answers[0].body, "cache_creation_input_tokens") > 1300);
  CHECK(number_in(answers[1].body, "cache_read_input_tokens") == 0);
  CHECK(number_in(answers[1].body, "cache_creation_input_tokens") > 1300);
}

TEST_CASE("V23: on a keep-all model everything up to the result is read") {
  const LoopbackGateway gateway;
  const std::vector<Answer> answers = run_loop(gateway, "claude-opus-5", R"("max_tokens":1)");
  const long written = number_in(answers[0].body, "cache_creation_input_tokens");
  CHECK(written > 1300);
  CHECK(number_in(answers[1].body, "cache_read_input_tokens") == written);
  CHECK(number_in(answers[1].body, "cache_creation_input_tokens") > 0);
}

TEST_CASE("a foreign signature is a 400") {
  const LoopbackGateway gateway;
  const Answer answer = ask(
      gateway,
      post("/v1/messages",
           body_of("claude-opus-5",
                   {first,
                    assistant(R"({"type":"thinking","thinking":"x","signature":"abcd"},)" + call),
                    result},
                   R"("max_tokens":1)")));
  CHECK(answer.status == 400);
  CHECK(message_of(answer) == "messages.1.content.0: Invalid `signature` in `thinking` block");
}

TEST_CASE("applied edits are in the answer, in streams on message_delta") {
  const LoopbackGateway gateway;
  const auto edits = [](const JsonValue& holder) {
    const auto& list = holder.find("context_management")->find("applied_edits")->as_array();
    REQUIRE(list.size() == 1);
    CHECK(list[0].find("type")->as_string() == "clear_tool_uses_20250919");
    CHECK(list[0].find("cleared_tool_uses")->as_integer() == 1);
    return list[0].find("cleared_input_tokens")->as_integer().value();
  };
  const Answer whole =
      ask(gateway, post("/v1/messages", with_edit(R"(,"max_tokens":1)"), edits_beta));
  REQUIRE(whole.status == 200);
  const JsonValue body = JsonValue::parse(whole.body);
  // One token for each byte of the result, less the bytes of what stands there now.
  const long saved = edits(body);
  CHECK(saved > 400);
  CHECK(saved < 500);

  const Answer streamed =
      ask(gateway, post("/v1/messages", with_edit(R"(,"max_tokens":1,"stream":true)"), edits_beta));
  REQUIRE(streamed.status == 200);
  const std::size_t delta = streamed.body.find("event: message_delta\ndata: ");
  REQUIRE(delta != std::string::npos);
  CHECK(streamed.body.find("context_management") > delta);
  const std::size_t data = streamed.body.find('{', delta);
  CHECK(edits(JsonValue::parse(
            std::string_view(streamed.body).substr(data, streamed.body.find('\n', data) - data)))
        == saved);

  const Answer counted = ask(gateway, post("/v1/messages/count_tokens", with_edit(""), edits_beta));
  REQUIRE(counted.status == 200);
  const JsonValue count = JsonValue::parse(counted.body);
  CHECK(count.find("context_management")->find("original_input_tokens")->as_integer().value()
        == count.find("input_tokens")->as_integer().value() + saved);
  CHECK(count.find("input_tokens")->as_integer()
        == body.find("usage")->find("input_tokens")->as_integer());
}

TEST_CASE("dropped thoughts are in the answer, in streams on message_start") {
  const LoopbackGateway gateway;
  const std::string controls = "anthropic-beta: thinking-binding-controls-2026-08-01\r\n";
  const std::string foreign =
      thought("hm", body_of("claude-opus-5-5", {next}, R"("max_tokens":1)"));
  const auto body = [&](std::string_view more) {
    return body_of("claude-opus-5-5", {first, assistant(foreign + "," + call), result},
                   R"("max_tokens":1)" + std::string(more));
  };
  const std::string drop =
      R"(,"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}})";
  const std::string report =
      R"("input_transformations":[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"prefix_binding_mismatch"}])";
  const Answer whole = ask(gateway, post("/v1/messages", body(drop), controls));
  CHECK(whole.status == 200);
  CHECK(whole.body.find(report) != std::string::npos);
  const Answer streamed =
      ask(gateway, post("/v1/messages", body(drop + R"(,"stream":true)"), controls));
  CHECK(streamed.status == 200);
  CHECK(streamed.body.find(report) < streamed.body.find("event: content_block_start"));
  CHECK(streamed.body.find("input_transformations", streamed.body.find("event: message_delta"))
        == std::string::npos);
  const Answer refused = ask(gateway, post("/v1/messages", body("")));
  CHECK(refused.status == 400);
  CHECK(message_of(refused).starts_with(
      "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
      "different conversation."));
}
