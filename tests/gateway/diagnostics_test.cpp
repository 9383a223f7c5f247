// Cache diagnostics: C-93 to C-102, and the detail that this gateway adds.
#include "gateway/api/diagnostics.h"

#include "incipit/json.h"
#include "tests/gateway/request_bodies.h"

#include <doctest/doctest.h>

using namespace incipit::gateway;
using incipit::JsonValue;

namespace {

const Scope home{"org", "home"};
const Scope elsewhere{"org", "elsewhere"};

struct Dialogue {
  Clock clock = Clock::frozen();
  Diagnostics diagnostics{clock};

  // The answer's diagnostics to a body that names `previous` ("" = null).
  std::string ask(const std::string& previous, const std::string& id, const std::string& body,
                  const RequestContext& context = older_version(), const Scope& scope = home,
                  std::int64_t prompt_tokens = 1000) {
    MessagesRequest request = parse_messages(body, context);
    request.values.diagnostics.emplace();
    if (!previous.empty()) request.values.diagnostics->previous_message_id = previous;
    return diagnostics.diagnose(scope, request, id, prompt_tokens);
  }
};

std::string body(const std::string& system, const std::string& more = "",
                 std::string_view model = sonnet) {
  return fields(R"("system":")" + system + '"' + (more.empty() ? "" : "," + more), model);
}

std::string reason(const std::string& answer) {
  if (answer == "null") return answer;
  const JsonValue value = JsonValue::parse(answer);
  return value.find("cache_miss_reason")->find("type")->as_string();
}

constexpr const char* tool =
    R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}])";
constexpr const char* other_tool =
    R"("tools":[{"name":"f","description":"e","input_schema":{"type":"object"}}])";

}  // namespace

TEST_CASE("diagnostics are read from the body, and only an object asks for them (C-98)") {
  const auto read = [](const std::string& json) {
    return parse_messages(fields("\"diagnostics\":" + json), older_version()).values.diagnostics;
  };
  CHECK(!read("null"));
  CHECK(read("{}").value().previous_message_id == std::nullopt);
  CHECK(read(R"({"previous_message_id":null})").value().previous_message_id == std::nullopt);
  CHECK(read(R"({"previous_message_id":"msg_1"})").value().previous_message_id == "msg_1");
  CHECK(complaint(fields(R"("diagnostics":{"previous_message_id":1})"))
        == "diagnostics.previous_message_id: Input should be a valid string");
  CHECK(complaint(fields(R"("diagnostics":{"x":1})"))
        == "diagnostics.x: Extra inputs are not permitted");
}

TEST_CASE("each reason, in the order of the checks (C-95, C-96)") {
  Dialogue c;
  const std::string first = body("S", tool);
  CHECK(c.ask("", "msg_1", first) == "null");
  CHECK(c.ask("msg_1", "msg_2", first) == "null");
  CHECK(reason(c.ask("msg_1", "m", body("T", other_tool, "claude-opus-4-8"))) == "model_changed");
  CHECK(reason(c.ask("msg_1", "m", body("T", other_tool))) == "system_changed");
  CHECK(reason(c.ask("msg_1", "m", body("S", other_tool))) == "tools_changed");
  CHECK(reason(c.ask("msg_1", "m",
                     body_of(sonnet, R"([{"role":"user","content":"bye"}])",
                             std::string(R"("system":"S",)") + tool)))
        == "messages_changed");
  CHECK(c.ask("msg_1", "m",
              body_of(sonnet,
                      R"([{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},)"
                      R"({"role":"user","content":"more"}])",
                      std::string(R"("system":"S",)") + tool))
        == "null");
}

TEST_CASE("other rendered settings give unavailable and no other key (V26)") {
  Dialogue c;
  CHECK(c.ask("", "msg_1", body("S", tool)) == "null");
  const std::string unavailable = R"({"cache_miss_reason":{"type":"unavailable"}})";
  const std::string with_tool = std::string(tool) + ',';
  CHECK(c.ask("msg_1", "m", body("S", with_tool + R"("tool_choice":{"type":"any"})"))
        == unavailable);
  CHECK(c.ask("msg_1", "m", body("S", with_tool + R"("output_config":{"effort":"low"})", sonnet))
        == unavailable);
  CHECK(c.ask("msg_1", "m", body("S", tool), with_beta("context-1m-2025-08-07")) == unavailable);
  RequestContext edits = with_beta("context-management-2025-06-27");
  edits.count_tokens = [](const incipit::gateway::Conversation&) { return 100; };
  CHECK(c.ask("", "msg_2", body("S", tool), edits) == "null");
  const std::string edited =
      with_tool + R"("context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]})";
  CHECK(c.ask("msg_2", "m", body("S", edited), edits) == unavailable);
}

TEST_CASE("the set of betas counts, not their order or repetition") {
  Dialogue c;
  RequestContext context = older_version();
  context.betas = {"a-1", "b-2"};
  CHECK(c.ask("", "msg_1", body("S"), context) == "null");
  context.betas = {"b-2", "a-1", "b-2"};
  CHECK(c.ask("msg_1", "m", body("S"), context) == "null");
}

TEST_CASE("what is not rendered is no difference, markers neither (C-9, C-101)") {
  Dialogue c;
  CHECK(c.ask("", "msg_1", body("S")) == "null");
  CHECK(c.ask("msg_1", "m",
              body("S", R"("metadata":{"user_id":"u"},"stop_sequences":["x"],"stream":true)"))
        == "null");
  CHECK(
      c.ask("msg_1", "m",
            fields(R"("system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}])"))
      == "null");
}

TEST_CASE("an id that is not known: another workspace, too old, or never asked (V25)") {
  const std::string unknown = R"({"cache_miss_reason":{"type":"previous_message_not_found"}})";
  Dialogue c;
  CHECK(c.ask("msg_0", "msg_1", body("S")) == unknown);
  CHECK(c.ask("msg_1", "m", body("S"), older_version(), elsewhere) == unknown);
  c.clock.advance(std::chrono::hours(23));
  CHECK(c.ask("msg_1", "msg_2", body("S")) == "null");
  c.clock.advance(std::chrono::hours(1));
  CHECK(c.ask("msg_1", "m", body("S")) == unknown);
  CHECK(c.ask("msg_2", "m", body("S")) == "null");

  const MessagesRequest silent = parse_messages(body("S"), older_version());
  CHECK(c.diagnostics.diagnose(home, silent, "msg_3", 1) == "null");
  CHECK(c.ask("msg_3", "m", body("S")) == unknown);
}

TEST_CASE("missed tokens are the share of bytes behind the difference (C-102)") {
  // 1,000 bytes of system text that differ at once, of a prompt that has little else: by its bytes
  // nearly all of 8,000 tokens.
  Dialogue c;
  CHECK(c.ask("", "msg_1", body(std::string(1000, 'a')), older_version(), home, 8000) == "null");
  const JsonValue all = JsonValue::parse(c.ask("msg_1", "m", body(std::string(1000, 'b'))));
  const auto missed = [](const JsonValue& answer) {
    return answer.find("cache_miss_reason")
        ->find("cache_missed_input_tokens")
        ->as_integer()
        .value();
  };
  CHECK(missed(all) > 7000);
  CHECK(missed(all) <= 8000);
  // Half of it is the same.
  const JsonValue half =
      JsonValue::parse(c.ask("msg_1", "m", body(std::string(500, 'a') + std::string(500, 'b'))));
  CHECK(missed(half) > 3500);
  CHECK(missed(half) < 4500);
}

TEST_CASE("the detail names path, byte and texts, for those who ask") {
  Dialogue c;
  RequestContext context = older_version();
  context.detailed_diagnostics = true;
  CHECK(c.ask("", "msg_1", body("Today is Monday."), context) == "null");
  const JsonValue answer =
      JsonValue::parse(c.ask("msg_1", "m", body("Today is Tuesday."), context));
  CHECK(answer.find("cache_miss_reason")->find("type")->as_string() == "system_changed");
  const JsonValue& detail = *answer.find("incipit");
  CHECK(detail.find("path")->as_string() == "system.0.text");
  // {"model":"claude-sonnet-4-6","max_tokens":16,"system":[{"type":"text","text":"Today is T
  CHECK(detail.find("byte_offset")->as_integer() == 87);
  CHECK(detail.find("before")->as_string().find("Monday") != std::string::npos);
  CHECK(detail.find("after")->as_string().find("Tuesday") != std::string::npos);
  CHECK(!detail.find("explanation")->as_string().empty());
  CHECK(JsonValue::parse(c.ask("msg_1", "m", body("x"))).find("incipit") == nullptr);
  CHECK(JsonValue::parse(c.ask("msg_0", "m", body("x"), context))
            .find("incipit")
            ->find("explanation")
            ->as_string()
            .find("message id")
        != std::string::npos);
  context.betas = {"new-2026-01-01"};
  CHECK(JsonValue::parse(c.ask("msg_1", "m", body("Today is Monday."), context))
            .find("incipit")
            ->find("after")
            ->as_string()
        == "new-2026-01-01");
}

TEST_CASE("the memory is bounded; what was named least recently goes first") {
  Clock clock = Clock::frozen();
  Diagnostics diagnostics(clock, 100'000);
  const auto ask = [&](const std::string& previous, const std::string& id) {
    MessagesRequest request = parse_messages(body(std::string(10'000, 's')), older_version());
    request.values.diagnostics.emplace();
    if (!previous.empty()) request.values.diagnostics->previous_message_id = previous;
    return reason(diagnostics.diagnose(home, request, id, 1000));
  };
  CHECK(ask("", "kept") == "null");
  CHECK(ask("", "lost") == "null");
  for (int i = 0; i < 20; ++i)
    CHECK(ask("kept", "m" + std::to_string(i)) == "null");
  CHECK(ask("lost", "m") == "previous_message_not_found");
}
