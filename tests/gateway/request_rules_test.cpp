// Rules between the parts of a body and the model (anthropic-wire sections 4.1, 4.2, 6.4, 7, 8).
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

struct Case {
  std::string body;
  std::string message;  // "" = accepted
};

void check_all(const std::vector<Case>& cases, const RequestContext& context = older_version()) {
  for (const Case& test : cases) {
    CAPTURE(test.body);
    CHECK(complaint(test.body, context) == test.message);
  }
}

const std::string user = R"({"role":"user","content":"q"})";
const std::string assistant = R"({"role":"assistant","content":"a"})";
const std::string system_message = R"({"role":"system","content":"s"})";

std::string list(std::initializer_list<std::string> messages) {
  std::string text;
  for (const std::string& message : messages)
    text += (text.empty() ? "[" : ",") + message;
  return text + "]";
}

std::string call(std::string_view id) {
  return R"({"type":"tool_use","id":")" + std::string(id) + R"(","name":"f","input":{}})";
}

std::string answer(std::string_view id) {
  return R"({"type":"tool_result","tool_use_id":")" + std::string(id) + R"(","content":"r"})";
}

std::string from(std::string_view role, std::string_view content) {
  return R"({"role":")" + std::string(role) + R"(","content":[)" + std::string(content) + "]}";
}

TEST_CASE("an unknown model is a 404 that names it") {
  try {
    (void)parse_messages(body_of("gpt-4o", hello), older_version());
    FAIL("accepted");
  } catch (const ApiError& error) {
    CHECK(error.status == 404);
    CHECK(error.type == "not_found_error");
    CHECK(std::string(error.what()) == "model: gpt-4o");
  }
  CHECK(complaint(body_of("smollm2-135m", hello)).empty());
  CHECK(complaint(body_of("claude-sonnet-4-5", hello)).empty());
  // A malformed body is told so even if its model is unknown.
  CHECK(complaint(R"({"model":"gpt-4o","messages":[]})") == "max_tokens: Field required");
}

TEST_CASE("max_tokens may reach the model's cap") {
  const auto with = [](std::string_view model, std::string_view tokens) {
    return R"({"model":")" + std::string(model) + R"(","max_tokens":)" + std::string(tokens)
           + R"(,"messages":[{"role":"user","content":"x"}]})";
  };
  check_all({
      {with("claude-sonnet-4-6", "128000"), ""},
      {with("claude-sonnet-4-6", "128001"),
       "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for "
       "claude-sonnet-4-6"},
      {with("claude-haiku-4-5-20251001", "64001"),
       "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for "
       "claude-haiku-4-5-20251001"},
      {with("smollm2-135m", "9007199254740991"), ""},
      {with("claude-sonnet-4-6", "16.0"), ""},
  });
}

TEST_CASE("messages need content") {
  check_all({
      {messages("[]"), "messages: at least one message is required"},
      {messages(R"([{"role":"user","content":""}])"),
       "messages.0: all messages must have non-empty content except for the optional final "
       "assistant message"},
      {messages(list({user, R"({"role":"assistant","content":[]})", user})),
       "messages.1: all messages must have non-empty content except for the optional final "
       "assistant message"},
      {blocks(R"({"type":"text","text":""})"), "messages: text content blocks must be non-empty"},
      {blocks(R"({"type":"text","text":" \n\t"})"),
       "messages: text content blocks must contain non-whitespace text"},
      {messages(R"([{"role":"user","content":"  "}])"),
       "messages: text content blocks must contain non-whitespace text"},
      {fields(R"("system":"")"), ""},
      {fields(R"("system":[])"), ""},
      {fields(R"("system":[{"type":"text","text":""}])"),
       "system: text content blocks must be non-empty"},
  });
}

TEST_CASE("roles have an order") {
  check_all({
      {messages(R"([{"role":"tool","content":"x"}])"),
       "messages.0.role: Input should be 'user' or 'assistant'"},
      {messages(list({assistant, user})), "messages: first message must use the \"user\" role"},
      {messages(list({user, user, assistant, assistant, user})), ""},
  });
}

TEST_CASE("system messages are for the models that have them") {
  const std::string after_user = list({user, system_message});
  for (const char* model :
       {"claude-fable-5-1", "claude-fable-5", "claude-mythos-5-1", "claude-mythos-5",
        "claude-opus-5-5", "claude-opus-5", "claude-opus-4-8", "claude-sonnet-5-5",
        "claude-haiku-5-5", "smollm2-135m"}) {
    CAPTURE(model);
    CHECK(complaint(body_of(model, after_user)).empty());
  }
  for (const char* model : {"claude-sonnet-5", "claude-opus-4-7", "claude-sonnet-4-6",
                            "claude-haiku-4-5", "claude-mythos-preview"}) {
    CAPTURE(model);
    CHECK(complaint(body_of(model, after_user))
              .starts_with("messages.1.role: Input should be 'user' or 'assistant'"));
  }
}

TEST_CASE("system messages have their places") {
  const auto on_opus = [](const std::string& messages) {
    return body_of("claude-opus-5", messages);
  };
  check_all({
      {on_opus(list({user, system_message, assistant, user})), ""},
      {on_opus(list({user, system_message, system_message})), ""},
      {on_opus(list({system_message, user})),
       "messages.0: a \"system\" message cannot be the first message"},
      {on_opus(list({user, assistant, system_message})),
       "messages.2: a \"system\" message must follow a \"user\" message"},
      {on_opus(list({user, system_message, user})),
       "messages.1: a \"system\" message must be the last message or be followed by an "
       "\"assistant\" message"},
      {on_opus(list({user, from("system", call("t1"))})),
       "messages.1.content.0: `tool_use` blocks cannot be in `system` messages"},
  });
}

TEST_CASE("prefill is for models up to 4.5 and the local model") {
  const std::string prefilled = list({user, assistant});
  for (const char* model : {"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5",
                            "claude-3-5-sonnet-20241022", "smollm2-135m"}) {
    CAPTURE(model);
    CHECK(complaint(body_of(model, prefilled)).empty());
    CHECK(conversation(body_of(model, prefilled)).continues_assistant);
  }
  for (const char* model : {"claude-sonnet-4-6", "claude-opus-4-6", "claude-mythos-preview",
                            "claude-opus-4-7", "claude-sonnet-5", "claude-fable-5-2"}) {
    CAPTURE(model);
    CHECK(complaint(body_of(model, prefilled))
          == "This model does not support assistant message prefill. The conversation must end "
             "with a user message.");
  }
}

TEST_CASE("a prefill may be empty but not end in white space") {
  const auto prefill = [](std::string_view text) {
    return body_of("claude-haiku-4-5",
                   list({user, R"({"role":"assistant","content":")" + std::string(text) + "\"}"}));
  };
  CHECK(complaint(prefill("{")) == "");
  CHECK(complaint(prefill("The answer: "))
        == "messages: final assistant content cannot end with trailing whitespace");
  CHECK(complaint(prefill("The answer:\\n"))
        == "messages: final assistant content cannot end with trailing whitespace");
  CHECK_FALSE(conversation(prefill("")).continues_assistant);
}

TEST_CASE("every tool call is answered in the next message, results first") {
  const std::string use = from("assistant", call("t1") + "," + call("t2"));
  const std::string unanswered =
      ". Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
  const std::string unexpected =
      ". Each `tool_result` block must have a corresponding `tool_use` block in the previous "
      "message.";
  check_all({
      {messages(list({user, use, from("user", answer("t2") + "," + answer("t1"))})), ""},
      {messages(list({user, use, from("user", answer("t1")), from("user", answer("t2"))})), ""},
      {messages(list({user, use,
                      from("user", answer("t1") + "," + answer("t2")
                                       + R"(,{"type":"text","text":"go on"})")})),
       ""},
      {messages(list({user, use, from("user", answer("t1"))})),
       "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2"
           + unanswered},
      {messages(list({user, use, user})),
       "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1, "
       "t2" + unanswered},
      {messages(list({user, use})),
       "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1, "
       "t2" + unanswered},
      {messages(list({user, from("assistant", call("t1")),
                      from("user", R"({"type":"text","text":"first"},)" + answer("t1"))})),
       "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1"
           + unanswered},
      {messages(list(
           {user, from("assistant", call("t1")), from("user", answer("t1") + "," + answer("t9"))})),
       "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t9"
           + unexpected},
      {messages(list({from("user", answer("t1"))})),
       "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1"
           + unexpected},
      {messages(list(
           {user, from("assistant", call("t1")), from("user", answer("t1") + "," + answer("t1"))})),
       "messages.2.content.1: each `tool_use` must have a single result. Found multiple "
       "`tool_result` blocks with id: t1"},
      {messages(
           list({user, from("assistant", call("t1")),
                 from("user", answer("t1") + R"(,{"type":"text","text":"x"},)" + answer("t1"))})),
       "messages.2.content.2: each `tool_use` must have a single result. Found multiple "
       "`tool_result` blocks with id: t1"},
      {messages(list({user, from("assistant", call("t1")), from("user", answer("t1")),
                      from("assistant", call("t1")), from("user", answer("t1"))})),
       "messages: `tool_use` ids must be unique"},
      {messages(list({from("user", call("t1"))})),
       "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages"},
      {messages(list({user, from("assistant", answer("t1"))})),
       "messages.1.content.0: `tool_result` blocks can only be in `user` messages"},
  });
}

const std::string tools = R"("tools":[{"name":"f","input_schema":{"type":"object"}}])";

TEST_CASE("tools have unique names and are not all deferred") {
  const std::string two =
      R"("tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}])";
  check_all({
      {fields(two), "tools: Tool names must be unique."},
      {fields(R"("tools":[{"name":"f","defer_loading":true,"input_schema":{"type":"object"}}])"),
       "At least one tool must have defer_loading=false. All tools cannot be deferred."},
      {fields(R"("tools":[{"name":"f","defer_loading":true,"input_schema":{"type":"object"},
          "cache_control":{"type":"ephemeral"}}])"),
       "Tool 'f' cannot have both defer_loading=true and cache_control set. Tools with "
       "defer_loading cannot use prompt caching."},
  });
}

TEST_CASE("tool_choice is checked against the tools, then the model") {
  const auto choice = [](std::string_view model, std::string_view value, bool with_tools) {
    return fields("\"tool_choice\":" + std::string(value) + (with_tools ? "," + tools : ""), model);
  };
  const std::string not_this_model =
      "tool_choice: type \"tool\" and \"any\" are not supported for this model.";
  check_all({
      {choice(sonnet, R"({"type":"auto"})", false), ""},
      {choice(sonnet, R"({"type":"none"})", false), ""},
      {choice(sonnet, R"({"type":"auto","disable_parallel_tool_use":true})", true), ""},
      {choice("claude-sonnet-5-5", R"({"type":"any"})", false),
       "tool_choice.any may only be specified while providing tools"},
      {choice("claude-sonnet-5-5", R"({"type":"tool","name":"f"})", false),
       "Tool 'f' not found in provided tools"},
      {choice("claude-sonnet-5-5", R"({"type":"tool","name":"g"})", true),
       "Tool 'g' not found in provided tools"},
      {choice("claude-sonnet-5-5", R"({"type":"any"})", true), not_this_model},
      {choice("claude-opus-5-5", R"({"type":"tool","name":"f"})", true), not_this_model},
      {choice("claude-fable-5-1", R"({"type":"any"})", true), not_this_model},
      {choice("claude-mythos-5-2", R"({"type":"any"})", true), not_this_model},
      {choice("claude-haiku-5-5", R"({"type":"any"})", true), ""},
      {choice("claude-fable-5", R"({"type":"any"})", true), ""},
      {choice(sonnet, R"({"type":"tool","name":"f"})", true), ""},
  });
}

TEST_CASE("thinking follows the matrix of models") {
  const std::string use_adaptive =
      " is not supported for this model. Use \"thinking.type.adaptive\" and "
      "\"output_config.effort\" to control thinking behavior.";
  const std::string no_enabled = "\"thinking.type.enabled\"" + use_adaptive;
  const std::string no_disabled = "\"thinking.type.disabled\"" + use_adaptive;
  const std::string no_between = "\"thinking.type.between_tools\" is not supported for this model.";
  const std::string no_adaptive = "adaptive thinking is not supported on this model";

  struct Row {
    const char* model;
    bool adaptive, enabled, between, disabled;
  };

  const std::vector<Row> rows = {
      {"claude-opus-5-5", true, false, false, false},
      {"claude-fable-5", true, false, false, false},
      {"claude-fable-5-1", true, false, false, false},
      {"claude-fable-5-2", true, false, false, false},
      {"claude-mythos-5", true, false, false, false},
      {"claude-mythos-5-1", true, false, false, false},
      {"claude-sonnet-5-5", true, false, true, false},
      {"claude-haiku-5-5", true, false, false, true},
      {"claude-opus-5", true, false, false, true},
      {"claude-sonnet-5", true, false, false, true},
      {"claude-opus-4-8", true, false, false, true},
      {"claude-opus-4-7", true, false, false, true},
      {"claude-mythos-preview", true, true, false, false},
      {"claude-opus-4-6", true, true, false, true},
      {"claude-sonnet-4-6", true, true, false, true},
      {"claude-opus-4-5", false, true, false, true},
      {"claude-sonnet-4-5", false, true, false, true},
      {"claude-haiku-4-5", false, true, false, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.model);
    const auto ask = [&](std::string_view shape) {
      return complaint(
          R"({"model":")" + std::string(row.model)
          + R"(","max_tokens":4096,"messages":[{"role":"user","content":"x"}],"thinking":)"
          + std::string(shape) + "}");
    };
    CHECK(ask(R"({"type":"adaptive"})") == (row.adaptive ? "" : no_adaptive));
    CHECK(ask(R"({"type":"enabled","budget_tokens":2048})") == (row.enabled ? "" : no_enabled));
    CHECK(ask(R"({"type":"between_tools"})") == (row.between ? "" : no_between));
    CHECK(ask(R"({"type":"disabled"})") == (row.disabled ? "" : no_disabled));
  }
}

TEST_CASE("thinking cannot be disabled above high effort on some models") {
  const auto with = [](std::string_view effort) {
    return R"("thinking":{"type":"disabled"},"output_config":{"effort":")" + std::string(effort)
           + "\"}";
  };
  for (const char* model : {"claude-opus-5", "claude-haiku-5-5"}) {
    CHECK(complaint(fields(with("high"), model)).empty());
    CHECK(complaint(fields(with("xhigh"), model))
          == "output_config.effort 'xhigh' is not supported when thinking is disabled on this "
             "model. Use effort 'high' or below, or enable thinking.");
    CHECK(complaint(fields(with("max"), model))
              .starts_with("output_config.effort 'max' is not supported when thinking"));
  }
  CHECK(complaint(fields(with("max"), "claude-sonnet-5")).empty());
}

TEST_CASE("thinking between tools is for efforts up to high") {
  const auto with = [](std::string_view effort) {
    return complaint(fields(R"("thinking":{"type":"between_tools"},"output_config":{"effort":")"
                                + std::string(effort) + "\"}",
                            "claude-sonnet-5-5"));
  };
  CHECK(with("high").empty());
  CHECK(
      with("xhigh").starts_with("output_config.effort 'xhigh' is not supported when thinking is "));
  CHECK(with("max").starts_with("output_config.effort 'max' is not supported when thinking is "));
}

TEST_CASE("a thinking budget must be smaller than max_tokens") {
  CHECK(complaint(fields(R"("thinking":{"type":"enabled","budget_tokens":1024})"))
        == "`max_tokens` must be greater than `thinking.budget_tokens`.");
  const auto with = [](std::string_view max_tokens) {
    return complaint(R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"x"}],
        "thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":)"
                     + std::string(max_tokens) + "}");
  };
  CHECK(with("1024") == "`max_tokens` must be greater than `thinking.budget_tokens`.");
  CHECK(with("1025").empty());
}

TEST_CASE("sampling parameters depend on version and model") {
  check_all({
      {fields(R"("temperature":0.2,"top_p":0.9,"top_k":40)"), ""},
      {fields(R"("temperature":1.0,"top_p":1,"top_k":0)", "claude-opus-4-7"), ""},
      {fields(R"("temperature":0.2)", "claude-opus-4-7"),
       "temperature: non-default values are not supported for this model; leave it out"},
      {fields(R"("top_p":0.2)", "claude-sonnet-5-5"),
       "top_p: non-default values are not supported for this model; leave it out"},
      {fields(R"("top_k":5)", "claude-fable-5"),
       "top_k: non-default values are not supported for this model; leave it out"},
      {fields(R"("temperature":0)", "claude-opus-4-6"), ""},
      {fields(R"("temperature":0)", "smollm2-135m"), ""},
  });
  check_all(
      {
          {fields(R"("temperature":1)"), "temperature: Extra inputs are not permitted"},
          {fields(R"("top_p":1)"), "top_p: Extra inputs are not permitted"},
          {fields(R"("top_k":1)", "smollm2-135m"), "top_k: Extra inputs are not permitted"},
      },
      newer_version());
}

TEST_CASE("stop sequences must show something") {
  check_all({
      {fields(R"("stop_sequences":["END","\n\nHuman:"])"), ""},
      {fields(R"("stop_sequences":["END"," \n"])"),
       "stop_sequences: each stop sequence must contain non-whitespace"},
      {fields(R"("stop_sequences":[""])"),
       "stop_sequences: each stop sequence must contain non-whitespace"},
  });
}

TEST_CASE("pre-warming excludes what needs an answer (C-90, C-91)") {
  const auto warm = [](std::string_view more, std::string_view content = "x") {
    return R"({"model":"claude-sonnet-4-6","max_tokens":0,"messages":[{"role":"user","content":")"
           + std::string(content) + "\"}]" + std::string(more) + "}";
  };
  check_all({
      {warm(""), ""},
      {warm(R"(,"stream":false)"), ""},
      {warm(R"(,"stream":true)"), "max_tokens: 0 cannot be combined with stream: true"},
      {warm(R"(,"thinking":{"type":"enabled","budget_tokens":1024})"),
       "max_tokens: 0 cannot be combined with thinking.type \"enabled\""},
      {warm(R"(,"output_config":{"format":{"type":"json_schema","schema":{}}})"),
       "max_tokens: 0 cannot be combined with output_config.format"},
      {warm(R"(,"tool_choice":{"type":"any"},)" + tools),
       "max_tokens: 0 cannot be combined with tool_choice of type \"tool\" or \"any\""},
      {warm("", "  "), "messages: text content blocks must contain non-whitespace text"},
  });
}

const std::string schema = R"({"type":"json_schema","schema":{"type":"object"}})";

TEST_CASE("a schema for the reply excludes citations and prefill (7.3)") {
  const std::string format = "\"output_config\":{\"format\":" + schema + "}";
  const std::string conflict = "output_config.format: structured output cannot be combined with ";
  const auto document = [](std::string_view citations) {
    return R"([{"role":"user","content":[{"type":"document","source":{"type":"text",
        "media_type":"text/plain","data":"d"},"citations":{"enabled":)"
           + std::string(citations) + "}}]}]";
  };
  check_all({
      {fields(format), ""},
      {body_of(sonnet, document("true"), format),
       conflict + "citations; leave `citations` out of documents and search results"},
      {body_of(sonnet, document("false"), format), ""},
      {body_of("claude-haiku-4-5", list({user, assistant}), format),
       conflict + "prefill; end the conversation with a user message"},
  });
}

TEST_CASE("a schema for the reply reaches the conversation, under its older name too") {
  const RequestContext beta = with_beta("structured-outputs-2025-11-13");
  const std::string old_name = "\"output_format\":" + schema;
  const std::string new_name = "\"output_config\":{\"format\":" + schema + "}";
  CHECK(conversation(fields(new_name)).output_schema == R"({"type":"object"})");
  CHECK(conversation(fields(old_name), beta).output_schema == R"({"type":"object"})");
  CHECK(conversation(fields(tools)).output_schema.empty());
  check_all(
      {
          {fields(old_name + "," + new_name),
           "output_format: cannot be given together with output_config.format, which replaces it"},
          {fields(R"("output_format":{})"), "output_format.type: Field required"},
          {fields(R"("output_format":{"type":"json_schema"})"),
           "output_format.schema: Field required"},
          {fields(R"("output_format":null)"), ""},
      },
      beta);
}

}  // namespace
}  // namespace incipit::gateway
