// Valid requests that this gateway cannot serve are told so, never served without what they ask
// for.
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
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

std::string from_assistant(std::string_view block) {
  return messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[)"
                  + std::string(block) + R"(]},{"role":"user","content":"r"}])");
}

// Blocks of features that the gateway does not have, whole and valid.
const std::vector<std::string> unserved = {
    R"({"type":"bash_code_execution_tool_result","tool_use_id":"t","content":{"type":"bash_code_execution_result"}})",
    R"({"type":"code_execution_tool_result","tool_use_id":"t","content":{"type":"code_execution_result"}})",
    R"({"type":"container_upload","file_id":"f"})",
    R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}})",
    R"({"type":"text_editor_code_execution_tool_result","tool_use_id":"t","content":{}})",
    R"({"type":"tool_search_tool_result","tool_use_id":"t","content":{"type":"tool_search_tool_search_result","tool_references":[]}})",
    R"({"type":"web_fetch_tool_result","tool_use_id":"t","content":{"type":"web_fetch_result"}})",
    R"({"type":"web_search_tool_result","tool_use_id":"t","content":[]})",
};

std::string tag_of(const std::string& block) {
  const std::size_t begin = std::string_view(R"({"type":")").size();
  return block.substr(begin, block.find('"', begin) - begin);
}

TEST_CASE("blocks of features that are not here are refused at their path") {
  for (const std::string& block : unserved) {
    CAPTURE(block);
    CHECK(complaint(from_assistant(block))
              .starts_with("messages.1.content.0: `" + tag_of(block)
                           + "` blocks are not supported: "));
    const std::string bare = R"({"type":")" + tag_of(block) + "\"}";
    CHECK(complaint(from_assistant(bare)).ends_with(": Field required"));
    const std::string more = block.substr(0, block.size() - 1) + R"(,"bogus":1})";
    CHECK(complaint(from_assistant(more))
          == "messages.1.content.0." + tag_of(block) + ".bogus: Extra inputs are not permitted");
  }
  check_all({
      {messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
         {"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[
         {"type":"tool_result","tool_use_id":"t","content":[{"type":"browser_state","tabs":[]}]}]}])"),
       "messages.2.content.0.tool_result.content.0: `browser_state` blocks are not supported: "},
  });
}

TEST_CASE("blocks of betas are refused by name under their header") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"compact-2026-09-04", R"({"type":"compaction","content":"so far"})"},
      {"server-side-fallback-2026-07-01", R"({"type":"fallback","from":{},"to":{},"trigger":"t"})"},
      {"mcp-client-2025-11-20",
       R"({"type":"mcp_tool_use","id":"i","name":"n","server_name":"s","input":{}})"},
      {"mcp-client-2025-11-20", R"({"type":"mcp_tool_result","tool_use_id":"i","content":"x"})"},
      {"inline-tools-2026-09-15", R"({"type":"tool_addition","tool":{}})"},
      {"mid-conversation-tool-changes-2026-07-01", R"({"type":"tool_removal","tool":{}})"},
  };
  for (const auto& [beta, block] : cases) {
    CAPTURE(block);
    CHECK(complaint(from_assistant(block), with_beta(beta))
              .starts_with("messages.1.content.0: `" + tag_of(block)
                           + "` blocks are not supported: "));
    CHECK(complaint(from_assistant(block))
              .starts_with("messages.1.content.0: Input tag '" + tag_of(block) + "' found"));
  }
}

TEST_CASE("tools that run at the provider and toolsets are refused in its words") {
  // ToolUnionParam of the Python SDK 2.14, but for those that the caller runs.
  const std::vector<std::pair<std::string, std::string>> types = {
      {"browser_toolset_20260801", ""},
      {"code_execution_20250522", "code_execution"},
      {"code_execution_20250825", "code_execution"},
      {"code_execution_20260120", "code_execution"},
      {"code_execution_20260521", "code_execution"},
      {"computer_toolset_20260801", ""},
      {"tool_search_tool_bm25", "tool_search_tool_bm25"},
      {"tool_search_tool_bm25_20251119", "tool_search_tool_bm25"},
      {"tool_search_tool_regex", "tool_search_tool_regex"},
      {"tool_search_tool_regex_20251119", "tool_search_tool_regex"},
      {"web_fetch_20250910", "web_fetch"},
      {"web_fetch_20260209", "web_fetch"},
      {"web_fetch_20260309", "web_fetch"},
      {"web_fetch_20260318", "web_fetch"},
      {"web_search_20250305", "web_search"},
      {"web_search_20260209", "web_search"},
      {"web_search_20260318", "web_search"},
  };
  for (const auto& [type, name] : types) {
    CAPTURE(type);
    const std::string head = R"("tools":[{"type":")" + type + "\"";
    const std::string named = name.empty() ? "" : R"(,"name":")" + name + "\"";
    CHECK(complaint(fields(head + named + R"(,"cache_control":{"type":"ephemeral"}}])"))
              .starts_with("'claude-sonnet-4-6' does not support tool types: " + type + "."));
    if (!name.empty()) {
      CHECK(complaint(fields(head + "}]")) == "tools.0." + type + ".name: Field required");
      CHECK(complaint(fields(head + R"(,"name":"other"}])"))
            == "tools.0." + type + ".name: Input should be '" + name + "'");
    }
  }
  CHECK(complaint(fields(R"("tools":[{"type":"advisor_20260301","name":"advisor"}])"),
                  with_beta("advisor-tool-2026-03-01"))
            .starts_with("'claude-sonnet-4-6' does not support tool types: advisor_20260301."));
  CHECK(complaint(fields(R"("tools":[{"type":"mcp_toolset","mcp_server_name":"a"},
                                     {"type":"mcp_toolset","mcp_server_name":"b"}])"),
                  with_beta("mcp-client-2025-11-20"))
            .starts_with("'claude-sonnet-4-6' does not support tool types: mcp_toolset."));
}

TEST_CASE("features are refused by name") {
  check_all({
      {fields(R"("container":"c")"), "container: "},
      {fields(
           R"("tools":[{"name":"f","allowed_callers":["code_execution_20260120"],"input_schema":{"type":"object"}}])"),
       "tools.0.custom.allowed_callers.0: "},
  });
  for (
      const char* harmless :
      {R"("container":null)", R"("diagnostics":null)", R"("speed":"standard")", R"("speed":"fast")",
       R"("speed":null)", R"("inference_geo":"us")", R"("inference_geo":null)",
       R"("service_tier":"standard_only")", R"("output_config":{"format":null,"effort":"low"})",
       R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}})",
       R"("metadata":{"user_id":null})",
       R"("tools":[{"name":"f","strict":true,"allowed_callers":["direct"],"eager_input_streaming":true,"input_schema":{"type":"object"}}])"}) {
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
           {"compact-2026-09-04", R"("compaction":{"type":"summarize"})",
            "compaction: compaction is not supported by this gateway; summarize"},
           {"compact-2026-01-12", R"("context_management":{"edits":[{"type":"compact_20260112"}]})",
            "context_management.edits.0.compact_20260112: compaction is not supported"},
           {"mcp-client-2025-11-20", R"("mcp_servers":[])",
            "mcp_servers: this gateway connects to no MCP servers"},
           {"server-side-fallback-2026-07-01", R"("fallbacks":"default")",
            "fallbacks: this gateway has no fallback models"},
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
  const std::string image = R"({"type":"image","source":{"type":"url","url":"u"}})";
  const std::string asked = R"([{"role":"user","content":[)" + image + "]}";
  CHECK(complaint(body_of(sonnet, asked + "]", "\"bogus\":1"))
        == "bogus: Extra inputs are not permitted");
  CHECK(complaint(body_of("gpt-4o", asked + "]")) == "model: gpt-4o");
  // Rules between the parts, too.
  CHECK(complaint(body_of(sonnet, asked + R"(,{"role":"assistant","content":"a"}])"))
            .starts_with("This model does not support assistant message prefill."));
  const std::string marked =
      R"({"type":"image","source":{"type":"url","url":"u"},"cache_control":{"type":"ephemeral"}})";
  CHECK(complaint(blocks(marked + "," + marked + "," + marked + "," + marked + "," + marked))
        == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
  CHECK(
      complaint(body_of("claude-opus-5", R"([{"role":"user","content":"q"},
      {"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"t","content":[]}]},
      {"role":"system","content":"s"}])"))
          .starts_with("messages.1.content.0: `web_search_tool_result` blocks are not supported"));
}

}  // namespace
}  // namespace incipit::gateway
