// What a body may not look like, with the provider's words for it (anthropic-wire sections 4-8).
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

struct Case {
  std::string body;
  std::string message;
};

void check_all(const std::vector<Case>& cases, const RequestContext& context = older_version()) {
  for (const Case& test : cases) {
    CAPTURE(test.body);
    CHECK(complaint(test.body, context) == test.message);
  }
}

std::string tool(std::string_view members) {
  return fields(R"("tools":[{)" + std::string(members) + "}]");
}

const std::string schema = R"("input_schema":{"type":"object"})";

TEST_CASE("a body that is not JSON is refused with line, column and offset") {
  check_all({
      {"",
       "The request body is not valid JSON: expected a value, found the end of the text: line 1 "
       "column 1 (char 0)"},
      {"{\"model\":\n  x}",
       "The request body is not valid JSON: expected a value: line 2 column 3 (char 12)"},
      {"{\"é\":1,}",
       "The request body is not valid JSON: expected a key in double quotes: line 1 column 8 (char "
       "7)"},
  });
}

TEST_CASE("a body that is no object is refused") {
  check_all({
      {"[]", "The request body should be a JSON object"},
      {"null", "The request body should be a JSON object"},
      {"17", "The request body should be a JSON object"},
  });
}

TEST_CASE("missing fields are named") {
  check_all({
      {R"({"max_tokens":1,"messages":[]})", "model: Field required"},
      {R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"x"}]})",
       "max_tokens: Field required"},
      {R"({"model":"claude-sonnet-4-6","max_tokens":1})", "messages: Field required"},
      {messages(R"([{"content":"x"}])"), "messages.0.role: Field required"},
      {messages(R"([{"role":"user"}])"), "messages.0.content: Field required"},
      {blocks(R"({"text":"x"})"), "messages.0.content.0.type: Field required"},
      {blocks(R"({"type":"text"})"), "messages.0.content.0.text.text: Field required"},
      {fields(R"("system":[{"type":"text"}])"), "system.0.text: Field required"},
      {tool(schema), "tools.0.custom.name: Field required"},
      {tool(R"("name":"a")"), "tools.0.custom.input_schema: Field required"},
      {tool(R"("name":"a","input_schema":{})"), "tools.0.custom.input_schema.type: Field required"},
  });
}

TEST_CASE("wrong types are named with their path") {
  check_all({
      {R"({"model":7,"max_tokens":1,"messages":[]})", "model: Input should be a valid string"},
      {R"({"model":"m","max_tokens":"1","messages":[]})",
       "max_tokens: Input should be a valid integer"},
      {R"({"model":"m","max_tokens":1.5,"messages":[]})",
       "max_tokens: Input should be a valid integer"},
      {R"({"model":"m","max_tokens":true,"messages":[]})",
       "max_tokens: Input should be a valid integer"},
      {R"({"model":"m","max_tokens":99999999999999999999,"messages":[]})",
       "max_tokens: Input should be a valid integer"},
      {R"({"model":"m","max_tokens":-1,"messages":[]})",
       "max_tokens: must be greater than or equal to 0"},
      {R"({"model":"m","max_tokens":1,"messages":{}})", "messages: Input should be a valid list"},
      {messages(R"(["x"])"), "messages.0: Input should be a valid dictionary"},
      {messages(R"([{"role":1,"content":"x"}])"),
       "messages.0.role: Input should be a valid string"},
      {messages(R"([{"role":"user","content":null}])"),
       "messages.0.content: Input should be a valid string or list"},
      {messages(R"([{"role":"user","content":[7]}])"),
       "messages.0.content.0: Input should be a valid dictionary"},
      {fields(R"("system":7)"), "system: Input should be a valid string or list"},
      {fields(R"("system":[{"type":"image"}])"), "system.0.type: Input should be 'text'"},
      {fields(R"("stream":"yes")"), "stream: Input should be a valid boolean"},
      {fields(R"("temperature":"hot")"), "temperature: Input should be a valid number"},
      {fields(R"("temperature":1.1)"), "temperature: Input should be less than or equal to 1"},
      {fields(R"("temperature":-0.1)"), "temperature: Input should be greater than or equal to 0"},
      {fields(R"("temperature":1e999)"), "temperature: Input should be less than or equal to 1"},
      {fields(R"("top_p":2)"), "top_p: Input should be less than or equal to 1"},
      {fields(R"("top_k":-1)"), "top_k: Input should be greater than or equal to 0"},
      {fields(R"("tools":{})"), "tools: Input should be a valid list"},
      {fields(R"("metadata":[])"), "metadata: Input should be a valid dictionary"},
      {fields(R"("service_tier":"fast")"),
       "service_tier: Input should be 'auto' or 'standard_only'"},
      {fields(R"("inference_geo":7)"), "inference_geo: Input should be a valid string"},
      {fields(R"("speed":"slow")"), "speed: Input should be 'standard' or 'fast'"},
      {fields(R"("output_config":{"effort":"huge"})"),
       "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"},
      {fields(R"("stop_sequences":"x")"), "stop_sequences: Input should be a valid list"},
      {fields(R"("stop_sequences":["a",1])"), "stop_sequences.1: Input should be a valid string"},
  });
}

TEST_CASE("unknown fields are refused wherever they are") {
  check_all({
      {fields(R"("foo":1)"), "foo: Extra inputs are not permitted"},
      {messages(R"([{"role":"user","content":"x","name":"bob"}])"),
       "messages.0.name: Extra inputs are not permitted"},
      {blocks(R"({"type":"text","text":"x","bar":1})"),
       "messages.0.content.0.text.bar: Extra inputs are not permitted"},
      {fields(R"("system":[{"type":"text","text":"x","bar":1}])"),
       "system.0.bar: Extra inputs are not permitted"},
      {tool(R"("name":"a","parameters":{},)" + schema),
       "tools.0.custom.parameters: Extra inputs are not permitted"},
      {fields(R"("metadata":{"user":"x"})"), "metadata.user: Extra inputs are not permitted"},
      {fields(R"("tool_choice":{"type":"none","disable_parallel_tool_use":true})"),
       "tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted"},
      {fields(R"("thinking":{"type":"disabled","budget_tokens":2000})"),
       "thinking.disabled.budget_tokens: Extra inputs are not permitted"},
      {fields(R"("output_config":{"verbosity":"low"})"),
       "output_config.verbosity: Extra inputs are not permitted"},
      {fields(R"("context_management":{"edits":[]})"),
       "context_management: Extra inputs are not permitted"},
      {fields(R"("mcp_servers":[])"), "mcp_servers: Extra inputs are not permitted"},
      {fields(R"("fallbacks":"default")"), "fallbacks: Extra inputs are not permitted"},
      {fields(R"("compaction":{"type":"summarize"})"),
       "compaction: Extra inputs are not permitted"},
      {fields(R"("output_format":{"type":"json_schema","schema":{}})"),
       "output_format: Extra inputs are not permitted"},
      {fields(R"("billing_policy":{})"), "billing_policy: Extra inputs are not permitted"},
      {fields(R"("fallback_credit_token":"x")"),
       "fallback_credit_token: Extra inputs are not permitted"},
  });
}

TEST_CASE("a long unknown name is cut in the error, between characters") {
  std::string name;
  for (int i = 0; i < 1000; ++i)
    name += "é";
  const std::string message = complaint(fields("\"" + name + "\":1"));
  CHECK(message.size() < 300);
  CHECK(message == name.substr(0, 200) + "…: Extra inputs are not permitted");
}

TEST_CASE("an unknown block type is answered with the list of known ones") {
  const std::string tags =
      "'bash_code_execution_tool_result', 'code_execution_tool_result', 'container_upload', "
      "'document', 'image', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', "
      "'text_editor_code_execution_tool_result', 'thinking', 'tool_result', "
      "'tool_search_tool_result', 'tool_use', 'web_fetch_tool_result', 'web_search_tool_result'";
  check_all(
      {{blocks(R"({"type":"video"})"),
        "messages.0.content.0: Input tag 'video' found using 'type' does not match any of the "
        "expected tags: "
            + tags}});
  // Beta types join the list under their header.
  CHECK(complaint(blocks(R"({"type":"video"})"), with_beta("compact-2026-09-04"))
            .find("'code_execution_tool_result', 'compaction', 'container_upload'")
        != std::string::npos);
}

TEST_CASE("an unknown tool type is answered with the list of known ones") {
  const std::string message = complaint(tool(R"("type":"shell","name":"x")"));
  CHECK(
      message.starts_with("tools.0: Input tag 'shell' found using 'type' does not match any of "
                          "the expected tags: 'bash_20250124', "));
  CHECK(message.find("'computer_toolset_20260801', 'custom', 'memory_20250818'")
        != std::string::npos);
  CHECK(message.find("mcp_toolset") == std::string::npos);
}

TEST_CASE("unknown shapes of tool_choice and thinking are answered with the known ones") {
  check_all({
      {fields(R"("tool_choice":{"type":"required"})"),
       "tool_choice: Input tag 'required' found using 'type' does not match any of the expected "
       "tags: 'any', 'auto', 'none', 'tool'"},
      {fields(R"("tool_choice":{"type":"tool"})"), "tool_choice.tool.name: Field required"},
      {fields(R"("tool_choice":"auto")"), "tool_choice: Input should be a valid dictionary"},
      {fields(R"("thinking":{"type":"on"})"),
       "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: "
       "'adaptive', 'between_tools', 'disabled', 'enabled'"},
      {fields(R"("thinking":{"type":"enabled"})"),
       "thinking.enabled.budget_tokens: Field required"},
      {fields(R"("thinking":{"type":"enabled","budget_tokens":1023})"),
       "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"},
      {fields(R"("thinking":{"type":"adaptive","display":"all"})"),
       "thinking.adaptive.display: Input should be 'summarized' or 'omitted'"},
  });
}

TEST_CASE("names and ids must match their patterns") {
  const std::string long_name(129, 'n');
  check_all({
      {tool(R"("name":"",)" + schema),
       "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
      {tool(R"("name":"get weather",)" + schema),
       "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
      {tool("\"name\":\"" + long_name + "\"," + schema),
       "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
      {tool("\"name\":\"" + long_name.substr(1) + "\"," + schema), ""},
      {messages(R"([{"role":"user","content":"x"},{"role":"assistant","content":[
         {"type":"tool_use","id":"a b","name":"f","input":{}}]}])"),
       "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
      {blocks(R"({"type":"tool_result","tool_use_id":"é"})"),
       "messages.0.content.0.tool_result.tool_use_id: String should match pattern "
       "'^[a-zA-Z0-9_-]+$'"},
      {tool(R"("name":"a","input_schema":{"type":"array"})"),
       "tools.0.custom.input_schema.type: Input should be 'object'"},
  });
}

TEST_CASE("metadata.user_id may have 256 characters") {
  std::string id;
  for (int i = 0; i < 256; ++i)
    id += "ü";
  CHECK(complaint(fields("\"metadata\":{\"user_id\":\"" + id + "\"}")).empty());
  CHECK(complaint(fields("\"metadata\":{\"user_id\":\"" + id + "x\"}"))
        == "metadata.user_id: String should have at most 256 characters");
}

TEST_CASE("a request may have 100,000 messages and no more") {
  std::string list = "[";
  for (int i = 0; i < 100'000; ++i)
    list += R"({"role":"user","content":"x"},)";
  const std::string full = list.substr(0, list.size() - 1) + "]";
  CHECK(conversation(messages(full)).items.size() == 100'000);
  CHECK(complaint(messages(list + R"({"role":"user","content":"x"}])"))
        == "messages: List should have at most 100000 items after validation, not 100001");
}

TEST_CASE("count_tokens takes the fields of counting only") {
  const auto count = [](std::string_view body) -> std::string {
    try {
      (void)parse_count_tokens(body, older_version());
      return "";
    } catch (const ApiError& error) {
      return error.what();
    }
  };
  const std::string base =
      R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":"x"}])";
  CHECK(count(base + "}").empty());
  CHECK(count(base + R"(,"system":"s","tools":[],"tool_choice":{"type":"auto"},
      "thinking":{"type":"disabled"},"output_config":{"effort":"low"},
      "cache_control":{"type":"ephemeral"},"speed":"standard"})")
            .empty());
  for (const char* field :
       {R"("max_tokens":1)", R"("stream":true)", R"("metadata":{})", R"("stop_sequences":[])",
        R"("service_tier":"auto")", R"("container":null)", R"("diagnostics":null)",
        R"("inference_geo":null)", R"("temperature":1)"}) {
    const std::string text = field;
    const std::string name = text.substr(1, text.find('"', 1) - 1);
    CHECK(count(base + "," + text + "}") == name + ": Extra inputs are not permitted");
  }
  CHECK(count(R"({"model":"claude-sonnet-4-6"})") == "messages: Field required");
}

}  // namespace
}  // namespace incipit::gateway
