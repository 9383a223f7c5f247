// Valid requests that this gateway cannot serve are told so, never served without what they ask
// for.
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

struct Case {
  std::string body;
  std::string beginning;  // of the message
};

void check_all(const std::vector<Case>& cases, const RequestContext& context = older_version()) {
  for (const Case& test : cases) {
    CAPTURE(test.body);
    const std::string message = complaint(test.body, context);
    CAPTURE(message);
    CHECK(message.starts_with(test.beginning));
  }
}

TEST_CASE("blocks that are not text are refused at their path") {
  const std::string text_only =
      " blocks are not supported: the model of this gateway takes text only";
  check_all({
      {blocks(R"({"type":"image","source":{"type":"url","url":"u"}})"),
       "messages.0.content.0: `image`" + text_only},
      {blocks(
           R"({"type":"text","text":"x"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}})"),
       "messages.0.content.1: `document`" + text_only},
      {blocks(R"({"type":"search_result","source":"s","title":"t","content":[]})"),
       "messages.0.content.0: `search_result`" + text_only},
      {blocks(R"({"type":"container_upload","file_id":"f"})"),
       "messages.0.content.0: `container_upload`" + text_only},
      {messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
         {"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}])"),
       "messages.1.content.0: `server_tool_use`" + text_only},
      {messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
         {"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[
         {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},{"type":"image"}]}]}])"),
       "messages.2.content.0.tool_result.content.1: `image`" + text_only},
      {messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
         {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]},
         {"role":"user","content":"r"}])"),
       "messages.1.content.0: `thinking` blocks are not supported yet by this gateway"},
      {blocks(R"({"type":"text","text":"x","citations":[{"type":"char_location"}]})"),
       "messages.0.content.0.text.citations: citations are not supported yet by this gateway"},
  });
  CHECK(complaint(blocks(R"({"type":"text","text":"x","citations":[]})")).empty());
  CHECK(complaint(blocks(R"({"type":"text","text":"x","citations":null})")).empty());
}

TEST_CASE("every block and tool type of the provider is known") {
  // Unions ContentBlockParam, tool result Content and ToolUnionParam of the Python SDK 2.14.
  for (const char* tag :
       {"bash_code_execution_tool_result", "code_execution_tool_result", "container_upload",
        "document", "image", "search_result", "server_tool_use",
        "text_editor_code_execution_tool_result", "tool_search_tool_result",
        "web_fetch_tool_result", "web_search_tool_result"}) {
    CHECK(complaint(blocks(R"({"type":")" + std::string(tag) + "\"}"))
              .starts_with("messages.0.content.0: `" + std::string(tag) + "` blocks are not"));
  }
  for (const char* tag :
       {"browser_state", "document", "image", "search_result", "tool_reference"}) {
    CHECK(complaint(blocks(R"({"type":"tool_result","tool_use_id":"t","content":[{"type":")"
                           + std::string(tag) + "\"}]}"))
              .starts_with("messages.0.content.0.tool_result.content.0: `" + std::string(tag)));
  }
  for (const char* tag : {"bash_20250124",
                          "browser_toolset_20260801",
                          "code_execution_20250522",
                          "code_execution_20250825",
                          "code_execution_20260120",
                          "code_execution_20260521",
                          "computer_toolset_20260801",
                          "memory_20250818",
                          "text_editor_20250124",
                          "text_editor_20250429",
                          "text_editor_20250728",
                          "tool_search_tool_bm25",
                          "tool_search_tool_bm25_20251119",
                          "tool_search_tool_regex",
                          "tool_search_tool_regex_20251119",
                          "web_fetch_20250910",
                          "web_fetch_20260209",
                          "web_fetch_20260309",
                          "web_fetch_20260318",
                          "web_search_20250305",
                          "web_search_20260209",
                          "web_search_20260318"}) {
    CHECK(complaint(fields(R"("tools":[{"type":")" + std::string(tag) + "\"}]"))
              .starts_with("'claude-sonnet-4-6' does not support tool types: " + std::string(tag)));
  }
}

TEST_CASE("citations in user text are refused by the newer version itself (W-4)") {
  CHECK(complaint(blocks(R"({"type":"text","text":"x","citations":[{"type":"char_location"}]})"),
                  newer_version())
        == "messages.0.content.0.text.citations: citations are not permitted on text blocks in user "
           "messages");
}

TEST_CASE("features are refused by name") {
  check_all({
      {fields(R"("container":"c")"), "container: "},
      {fields(R"("diagnostics":{"previous_message_id":null})"), "diagnostics: "},
      {fields(R"("speed":"fast")"), "speed: "},
      {fields(R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}})"),
       "output_config.format: "},
      {fields(R"("thinking":{"type":"adaptive"})"), "thinking.type: "},
      {fields(R"("tools":[{"name":"f","strict":true,"input_schema":{"type":"object"}}])"),
       "tools.0.custom.strict: "},
      {fields(
           R"("tools":[{"name":"f","allowed_callers":["code_execution_20260120"],"input_schema":{"type":"object"}}])"),
       "tools.0.custom.allowed_callers.0: "},
  });
  for (
      const char* harmless :
      {R"("container":null)", R"("diagnostics":null)", R"("speed":"standard")", R"("speed":null)",
       R"("inference_geo":"us")", R"("inference_geo":null)", R"("service_tier":"standard_only")",
       R"("output_config":{"format":null,"effort":"low"})", R"("metadata":{"user_id":null})",
       R"("tools":[{"name":"f","strict":false,"allowed_callers":["direct"],"eager_input_streaming":true,"input_schema":{"type":"object"}}])"}) {
    CAPTURE(harmless);
    CHECK(complaint(fields(harmless)).empty());
  }
}

TEST_CASE("beta fields are refused by name under their header") {
  struct Beta {
    const char* header;
    const char* field;
    const char* beginning;
  };

  for (const Beta& beta : std::vector<Beta>{
           {"context-management-2025-06-27", R"("context_management":{"edits":[]})",
            "context_management: not supported yet"},
           {"compact-2026-09-04", R"("compaction":{"type":"summarize"})",
            "compaction: not supported yet"},
           {"mcp-client-2025-11-20", R"("mcp_servers":[])", "mcp_servers: not supported yet"},
           {"server-side-fallback-2026-07-01", R"("fallbacks":"default")",
            "fallbacks: not supported yet"},
           {"structured-outputs-2025-11-13", R"("output_format":{})",
            "output_format: not supported yet"},
           {"task-budgets-2026-03-13", R"("output_config":{"task_budget":{}})",
            "output_config.task_budget: not supported yet"},
       }) {
    CAPTURE(beta.field);
    CHECK(complaint(fields(beta.field), with_beta(beta.header)).starts_with(beta.beginning));
    CHECK(complaint(fields(beta.field)).ends_with(": Extra inputs are not permitted"));
  }
}

TEST_CASE("a thread gets the error code that makes clients send everything (C-87)") {
  for (const auto& context :
       {with_beta("message-threads-2026-08-12"), older_version(), newer_version()}) {
    try {
      (void)parse_messages(R"({"model":"claude-sonnet-4-6","max_tokens":1,"messages":[],
          "thread":{"type":"continue","previous_message_id":"msg_1"}})",
                           context);
      FAIL("accepted");
    } catch (const ApiError& error) {
      CHECK(error.status == 400);
      CHECK(error.type == "invalid_request_error");
      CHECK(error.error_code == "thread_unsupported_request");
      CHECK(std::string(error.what()).starts_with("thread: "));
    }
  }
}

TEST_CASE("tools of the provider are refused in its words") {
  for (const char* type : {"web_search_20250305", "bash_20250124", "code_execution_20260521",
                           "computer_toolset_20260801"}) {
    CHECK(complaint(fields(R"("tools":[{"type":")" + std::string(type) + R"(","name":"x"}])"))
              .starts_with("'claude-sonnet-4-6' does not support tool types: " + std::string(type)
                           + "."));
  }
}

TEST_CASE("tools are refused when the loaded model's template has none") {
  RequestContext context = older_version();
  context.local_tools = false;
  check_all(
      {
          {fields(R"("tools":[{"name":"f","input_schema":{"type":"object"}}])"),
           "tools: the loaded model 'smollm2-135m' cannot call tools"},
          {messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
             {"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{}}]},
             {"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}])"),
           "messages.1.content.1: the loaded model 'smollm2-135m' cannot call tools"},
      },
      context);
  CHECK(complaint(fields("\"tools\":[]"), context).empty());
}

TEST_CASE("a caller that no block explains is refused") {
  const auto with = [](std::string_view caller) {
    return messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
        {"type":"tool_use","id":"t","name":"f","input":{},"caller":)"
                    + std::string(caller) + R"(}]},{"role":"user","content":[
        {"type":"tool_result","tool_use_id":"t"}]}])");
  };
  CHECK(complaint(with(R"({"type":"direct"})")).empty());
  CHECK(complaint(with("null")).empty());
  CHECK(complaint(with(R"({"type":"code_execution_20250825","tool_id":"srvtoolu_1"})"))
        == "messages.1.content.0.tool_use.caller: source tool 'srvtoolu_1' not found");
  CHECK(complaint(with(R"({"type":"magic"})"))
            .starts_with("messages.1.content.0.tool_use.caller: Input tag 'magic' found"));
}

TEST_CASE("a body the provider would refuse gets the provider's error first") {
  CHECK(complaint(R"({"model":"claude-sonnet-4-6","max_tokens":1,"bogus":1,"messages":[
      {"role":"user","content":[{"type":"image"}]}]})")
        == "bogus: Extra inputs are not permitted");
  CHECK(complaint(body_of("gpt-4o", R"([{"role":"user","content":[{"type":"image"}]}])"))
        == "model: gpt-4o");
}

}  // namespace
}  // namespace incipit::gateway
