// Where cache_control may be, how often, in which order, and what top-level cache_control does
// (anthropic-cache-semantics sections 2, 3 and 5).
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

const std::string mark = R"("cache_control":{"type":"ephemeral"})";
const std::string hour = R"("cache_control":{"type":"ephemeral","ttl":"1h"})";
const std::string minutes = R"("cache_control":{"type":"ephemeral","ttl":"5m"})";

std::string text(std::string_view marker = "") {
  return R"({"type":"text","text":"t")" + (marker.empty() ? "" : "," + std::string(marker)) + "}";
}

std::string tool(std::string_view name, std::string_view marker = "") {
  return R"({"name":")" + std::string(name) + R"(","input_schema":{"type":"object"})"
         + (marker.empty() ? "" : "," + std::string(marker)) + "}";
}

std::string request(std::initializer_list<std::string> tools,
                    std::initializer_list<std::string> system,
                    std::initializer_list<std::string> content, std::string_view more = "") {
  const auto join = [](std::initializer_list<std::string> items) {
    std::string out;
    for (const std::string& item : items)
      out += (out.empty() ? "" : ",") + item;
    return out;
  };
  return body_of(sonnet, R"([{"role":"user","content":[)" + join(content) + "]}]",
                 "\"tools\":[" + join(tools) + "],\"system\":[" + join(system) + "]"
                     + (more.empty() ? "" : "," + std::string(more)));
}

// The markers of the items: '.' none, '5' and 'h'.
std::string markers(std::string_view body, const RequestContext& context = older_version()) {
  std::string out;
  for (const Item& item : conversation(body, context).items) {
    out += !item.marker ? '.' : *item.marker == Ttl::one_hour ? 'h' : '5';
  }
  return out;
}

const std::string order =
    ": a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
    "that "
    "blocks are processed in the following order: `tools`, `system`, `messages`.";

TEST_CASE("markers are read from tools, system and messages") {
  CHECK(markers(request({tool("a"), tool("b", hour)}, {text(hour)}, {text(mark), text()}))
        == ".hh5.");
  CHECK(markers(request({}, {text(R"("cache_control":null)")}, {text()})) == "..");
  CHECK(markers(request({}, {text(minutes)}, {text()})) == "5.");
}

TEST_CASE("markers are read from tool_use, tool_result and inside tool_result (C-12)") {
  const auto with = [](std::string_view on_use, std::string_view on_result,
                       std::string_view nested) {
    const auto member = [](std::string_view marker) {
      return marker.empty() ? "" : "," + std::string(marker);
    };
    return messages(R"([{"role":"user","content":"q"},
      {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{})"
                    + member(on_use) + R"(}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[)"
                    + text(nested) + "," + text() + "]" + member(on_result) + "}]}]");
  };
  CHECK(markers(with(mark, "", "")) == ".5.");
  CHECK(markers(with("", hour, "")) == "..h");
  CHECK(markers(with("", "", mark)) == "..5");
  // Both at the end of the same block: the formula of C-48 writes it with the longer lifetime.
  CHECK(markers(with("", mark, hour)) == "..h");
  CHECK(complaint(with("", hour, mark)) == "messages.2.content.0.cache_control.ttl" + order);
  CHECK(complaint(with("", "", R"("cache_control":{"type":"ephemeral","ttl":"2h"})"))
        == "messages.2.content.0.tool_result.content.0.text.cache_control.ephemeral.ttl: Input "
           "should be '5m' or '1h'");
}

TEST_CASE("a marker on a system message counts like any other") {
  CHECK(markers(body_of("claude-opus-5", R"([{"role":"user","content":"q"},
      {"role":"system","content":[)" + text(mark)
                                             + "]}]"))
        == ".5");
}

TEST_CASE("more than four markers are refused with their number (E-1)") {
  CHECK(complaint(request({tool("a", mark)}, {text(mark), text(mark)}, {text(mark)})).empty());
  CHECK(complaint(request({tool("a", mark)}, {text(mark), text(mark)}, {text(mark), text(mark)}))
        == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
  CHECK(complaint(request({tool("a", mark)}, {text(mark), text(mark), text(mark), text(mark)},
                          {text(mark)}))
        == "A maximum of 4 blocks with cache_control may be provided. Found 6.");
}

TEST_CASE("markers inside tool_result count toward the four (C-12)") {
  const std::string nested = text(mark) + "," + text(mark) + "," + text(mark);
  const auto with = [&](std::string_view last) {
    return messages(R"([{"role":"user","content":"q"},
      {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[)"
                    + nested + "]," + mark + "}," + text(last) + "]}]");
  };
  CHECK(complaint(with("")).empty());
  CHECK(complaint(with(mark))
        == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
}

TEST_CASE("one hour must not come after five minutes (E-2, C-15)") {
  CHECK(
      complaint(request({tool("a"), tool("b"), tool("c"), tool("d", mark)}, {text(hour)}, {text()}))
      == "system.0.cache_control.ttl" + order);
  CHECK(complaint(request({tool("a", hour)}, {text(mark)}, {text()})).empty());
  CHECK(complaint(request({tool("a", hour)}, {text(hour)}, {text(hour)})).empty());
  CHECK(
      complaint(request({}, {text(), text(minutes)}, {text(), text(), text(), text(), text(hour)}))
      == "messages.0.content.4.cache_control.ttl" + order);
  CHECK(complaint(request({tool("a"), tool("b", mark), tool("c", hour)}, {}, {text()}))
        == "tools.2.cache_control.ttl" + order);
  CHECK(complaint(request({}, {text(mark)}, {text()}, hour)) == "cache_control" + order);
}

TEST_CASE("wrong shapes of a marker are named (E-3, E-4, E-10)") {
  struct Shape {
    std::string marker, suffix;
  };

  const std::vector<Shape> shapes = {
      {R"({"type":"ephemeral","ttl":"10m"})",
       ".cache_control.ephemeral.ttl: Input should be '5m' or '1h'"},
      {R"({"type":"ephemeral","ttl":300})",
       ".cache_control.ephemeral.ttl: Input should be '5m' or '1h'"},
      {R"({"type":"permanent"})", ".cache_control.type: Input should be 'ephemeral'"},
      {R"({"ttl":"5m"})", ".cache_control.type: Field required"},
      {R"({"type":"ephemeral","until":1})",
       ".cache_control.ephemeral.until: Extra inputs are not permitted"},
      {R"({"type":"ephemeral","scope":"global"})",
       ".cache_control.ephemeral.scope: Extra inputs are not permitted"},
      {R"("ephemeral")", ".cache_control: Input should be a valid dictionary"},
  };
  for (const Shape& shape : shapes) {
    CAPTURE(shape.marker);
    const std::string member = "\"cache_control\":" + shape.marker;
    CHECK(complaint(request({}, {}, {text(member)})) == "messages.0.content.0.text" + shape.suffix);
    CHECK(complaint(request({}, {text(member)}, {text()})) == "system.0" + shape.suffix);
    CHECK(complaint(request({tool("a", member)}, {}, {text()})) == "tools.0.custom" + shape.suffix);
    CHECK(complaint(request({}, {}, {text()}, member)) == shape.suffix.substr(1));
  }
}

TEST_CASE("scope is taken under its beta and has no effect (C-13)") {
  const std::string body =
      request({}, {text(R"("cache_control":{"type":"ephemeral","scope":"global"})")}, {text()});
  CHECK(markers(body, with_beta("prompt-caching-scope-2026-01-05")) == "5.");
}

TEST_CASE("empty text blocks cannot be marked (E-5)") {
  const std::string empty = R"({"type":"text","text":"",)" + mark + "}";
  CHECK(complaint(request({}, {}, {text(), empty}))
        == "messages.0.content.1.text: cache_control cannot be set for empty text blocks");
  CHECK(complaint(request({}, {empty}, {text()}))
        == "system.0: cache_control cannot be set for empty text blocks");
}

TEST_CASE("thinking cannot be marked (E-6)") {
  CHECK(complaint(messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
      {"type":"thinking","thinking":"","signature":"s",)"
                           + mark + "}]}]"))
        == "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted");
  CHECK(complaint(messages(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
      {"type":"redacted_thinking","data":"s",)"
                           + mark + "}]}]"))
        == "messages.1.content.0.redacted_thinking.cache_control: Extra inputs are not permitted");
}

TEST_CASE("top-level cache_control marks the last block (C-22..C-25)") {
  CHECK(markers(request({}, {text()}, {text(), text()}, mark)) == "..5");
  CHECK(markers(request({}, {text(hour)}, {text(), text()}, mark)) == "h.5");
  CHECK(markers(request({}, {text()}, {text(), text()}, hour)) == "..h");
  CHECK(markers(request({}, {text()}, {text(), text(mark)}, mark)) == "..5");
  CHECK(markers(request({}, {text()}, {text()}, R"("cache_control":null)")) == "..");
  // An empty prefill is no block: the marker goes to the one before (C-26).
  CHECK(
      markers(body_of("claude-haiku-4-5",
                      R"([{"role":"user","content":"q"},{"role":"assistant","content":""}])", mark))
      == "5");
}

TEST_CASE("top-level cache_control needs a free slot (E-8)") {
  CHECK(complaint(request({tool("a", mark)}, {text(mark), text(mark)}, {text(mark), text()}, mark))
        == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
  CHECK(complaint(request({tool("a", mark)}, {text(mark), text(mark)}, {text(), text(mark)}, mark))
            .empty());
}

TEST_CASE("top-level cache_control must agree with a marker on its target (E-9)") {
  CHECK(complaint(request({}, {}, {text(hour)}, mark))
        == "Top-level cache_control has ttl='5m' but the target block already has cache_control "
           "with ttl='1h'");
  CHECK(complaint(request({}, {}, {text(mark)}, hour))
        == "Top-level cache_control has ttl='1h' but the target block already has cache_control "
           "with ttl='5m'");
}

TEST_CASE("deferred tools are no blocks and leave the other paths alone") {
  const std::string deferred =
      R"({"name":"z","defer_loading":true,"input_schema":{"type":"object"}})";
  const std::string body = request({deferred, tool("a", mark), tool("b", hour)}, {}, {text()});
  CHECK(complaint(body) == "tools.2.cache_control.ttl" + order);
  CHECK(markers(request({deferred, tool("a", mark)}, {}, {text()})) == "5.");
}

// Section 2 as a table. A place is allowed when four markers are taken and the fifth is counted;
// whether the gateway can serve the block is another matter.
struct Place {
  std::string name;
  std::string block;  // with MARK where the marker goes
  std::string beta;
  std::string refusal;  // empty: allowed
};

const std::string call = R"({"type":"tool_use","id":"t","name":"f","input":{}})";

// `block` in a conversation where it may stand, `before` it four marked system texts.
std::string around(const Place& place, bool user) {
  const std::string four = text(mark) + "," + text(mark) + "," + text(mark) + "," + text(mark);
  std::string block = place.block;
  const std::size_t at = block.find("MARK");
  block.replace(at, 4, mark);
  std::string list = R"([{"role":"user","content":"q"},{"role":"assistant","content":[)";
  if (user) {
    list += call + R"(]},{"role":"user","content":[)" + block + "]}]";
  } else {
    list += block + R"(]},{"role":"user","content":"r"}])";
  }
  return body_of(sonnet, list, "\"system\":[" + four + "]");
}

TEST_CASE("where a marker may stand in messages") {
  const std::string document = R"({"type":"document","source":)";
  const std::string result = R"({"type":"tool_result","tool_use_id":"t","content":[)";
  const std::string url = R"({"type":"url","url":"u"})";
  const std::string plain = R"({"type":"text","media_type":"text/plain","data":"d"})";
  const std::string rest_of_result = R"({"type":"tool_result","tool_use_id":"t"},)";
  const std::vector<Place> of_user = {
      {"text", rest_of_result + R"({"type":"text","text":"x",MARK})", "", ""},
      {"image", rest_of_result + R"({"type":"image","source":)" + url + ",MARK}", "", ""},
      {"document by URL", rest_of_result + document + url + ",MARK}", "", ""},
      {"document of text", rest_of_result + document + plain + ",MARK}", "", ""},
      {"PDF",
       rest_of_result + document
           + R"({"type":"base64","media_type":"application/pdf","data":"AAAA"},MARK})",
       "", ""},
      {"text in a document",
       rest_of_result + document
           + R"({"type":"content","content":[{"type":"text","text":"x",MARK}]}})",
       "", ""},
      {"image in a document",
       rest_of_result + document + R"({"type":"content","content":[{"type":"image","source":)" + url
           + ",MARK}]}}",
       "", ""},
      {"search_result",
       rest_of_result + R"({"type":"search_result","source":"s","title":"t","content":[],MARK})",
       "", ""},
      {"container_upload", rest_of_result + R"({"type":"container_upload","file_id":"f",MARK})", "",
       ""},
      {"tool_result", R"({"type":"tool_result","tool_use_id":"t",MARK})", "", ""},
      {"text in tool_result", result + R"({"type":"text","text":"x",MARK}]})", "", ""},
      {"image in tool_result", result + R"({"type":"image","source":)" + url + ",MARK}]}", "", ""},
      {"document in tool_result", result + document + plain + ",MARK}]}", "", ""},
      {"search_result in tool_result",
       result + R"({"type":"search_result","source":"s","title":"t","content":[],MARK}]})", "", ""},
      {"a document's source",
       rest_of_result + document + R"({"type":"text","media_type":"text/plain","data":"d",MARK}})",
       "", "messages.2.content.1.document.source.text.cache_control"},
      {"tool_addition", rest_of_result + R"({"type":"tool_addition","tool":{},MARK})",
       "inline-tools-2026-09-15", ""},
      {"tool_removal", rest_of_result + R"({"type":"tool_removal","tool":{},MARK})",
       "inline-tools-2026-09-15", ""},
  };
  const std::string served = R"("tool_use_id":"s","content":{},MARK})";
  const std::vector<Place> of_assistant = {
      {"text", R"({"type":"text","text":"x",MARK})", "", ""},
      {"server_tool_use",
       R"({"type":"server_tool_use","id":"s","name":"web_search","input":{},MARK})", "", ""},
      {"web_search_tool_result", R"({"type":"web_search_tool_result",)" + served, "", ""},
      {"web_fetch_tool_result", R"({"type":"web_fetch_tool_result",)" + served, "", ""},
      {"code_execution_tool_result", R"({"type":"code_execution_tool_result",)" + served, "", ""},
      {"bash_code_execution_tool_result", R"({"type":"bash_code_execution_tool_result",)" + served,
       "", ""},
      {"text_editor_code_execution_tool_result",
       R"({"type":"text_editor_code_execution_tool_result",)" + served, "", ""},
      {"tool_search_tool_result", R"({"type":"tool_search_tool_result",)" + served, "", ""},
      {"compaction", R"({"type":"compaction","content":"x",MARK})", "compact-2026-09-04", ""},
      {"thinking", R"({"type":"thinking","thinking":"","signature":"s",MARK})", "",
       "messages.1.content.0.thinking.cache_control"},
      {"redacted_thinking", R"({"type":"redacted_thinking","data":"s",MARK})", "",
       "messages.1.content.0.redacted_thinking.cache_control"},
      {"citation",
       R"({"type":"text","text":"x","citations":[{"type":"char_location","cited_text":"c",)"
       R"("document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,MARK}]})",
       "", "messages.1.content.0.text.citations.0.char_location.cache_control"},
      {"fallback", R"({"type":"fallback","from":{},"to":{},"trigger":"x",MARK})",
       "server-side-fallback-2026-07-01", "messages.1.content.0.fallback.cache_control"},
  };
  const auto check = [](const std::vector<Place>& places, bool user) {
    for (const Place& place : places) {
      CAPTURE(place.name);
      RequestContext context = older_version();
      if (!place.beta.empty()) context.betas = {place.beta};
      CHECK(complaint(around(place, user), context)
            == (place.refusal.empty()
                    ? "A maximum of 4 blocks with cache_control may be provided. Found 5."
                    : place.refusal + ": Extra inputs are not permitted"));
    }
  };
  check(of_user, true);
  check(of_assistant, false);
}

TEST_CASE("where a marker may stand in tools") {
  const std::string four = text(mark) + "," + text(mark) + "," + text(mark) + "," + text(mark);
  for (const std::string head :
       {R"("name":"f","input_schema":{"type":"object"})", R"("type":"bash_20250124","name":"bash")",
        R"("type":"text_editor_20250728","name":"str_replace_based_edit_tool")",
        R"("type":"memory_20250818","name":"memory")",
        R"("type":"web_search_20260318","name":"web_search")",
        R"("type":"web_fetch_20260318","name":"web_fetch")",
        R"("type":"code_execution_20260521","name":"code_execution")",
        R"("type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex")",
        R"("type":"computer_toolset_20260801")", R"("type":"browser_toolset_20260801")"}) {
    CAPTURE(head);
    CHECK(complaint(fields("\"system\":[" + four + R"(],"tools":[{)" + head + "," + mark + "}]"))
          == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
  }
  CHECK(complaint(fields("\"system\":[" + four + R"(],"tools":[{"type":"mcp_toolset",)"
                         + R"("mcp_server_name":"m",)" + mark + "}]"),
                  with_beta("mcp-client-2025-11-20"))
        == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
  // E-7
  CHECK(complaint(fields(R"("tools":[{"name":"g","input_schema":{"type":"object"}},{"name":"f",)"
                         R"("defer_loading":true,"input_schema":{"type":"object"},)"
                         + mark + "}]"))
        == "Tool 'f' cannot have both defer_loading=true and cache_control set. Tools with "
           "defer_loading cannot use prompt caching.");
  CHECK(complaint(fields(R"("tools":[{"name":"f","input_schema":{"type":"object"},)"
                         R"("cache_control":{"type":"ephemeral","ttl":"1d"}}])"))
        == "tools.0.custom.cache_control.ephemeral.ttl: Input should be '5m' or '1h'");
}

const std::string billing = "x-anthropic-billing-header: cc_version=2.1.36.abc; cch=12345;";

std::string system_text(std::string_view content, std::string_view marker = "") {
  return R"({"type":"text","text":")" + std::string(content) + "\""
         + (marker.empty() ? "" : "," + std::string(marker)) + "}";
}

TEST_CASE("billing lines leave the system text") {
  const auto parsed = [](const std::string& body, bool keep) {
    RequestContext context = older_version();
    context.keep_billing_line = keep;
    return parse_messages(body, context);
  };
  const std::string own_block =
      request({}, {system_text(billing), system_text("be brief")}, {text()});
  const MessagesRequest dropped = parsed(own_block, false);
  CHECK(dropped.dropped_billing_lines == 1);
  REQUIRE(dropped.conversation.items.size() == 2);
  CHECK(dropped.conversation.items[0].text == "be brief");
  CHECK(dropped.conversation.items[0].key_bytes.find("billing") == std::string::npos);

  const MessagesRequest kept = parsed(own_block, true);
  CHECK(kept.dropped_billing_lines == 0);
  CHECK(kept.conversation.items[0].text == billing);

  const std::string first_line = fields("\"system\":\"" + billing + R"(\nbe brief\nplease")");
  CHECK(parsed(first_line, false).conversation.items[0].text == "be brief\nplease");
  CHECK(parsed(first_line, false).dropped_billing_lines == 1);

  const std::string alone = fields("\"system\":\"" + billing + "\"");
  CHECK(parsed(alone, false).conversation.items.size() == 1);
  CHECK(parsed(alone, false).dropped_billing_lines == 1);

  const std::string inside = fields("\"system\":\"be brief\\n" + billing + "\"");
  CHECK(parsed(inside, false).dropped_billing_lines == 0);
}

TEST_CASE("a marker on a dropped billing block moves to the block before") {
  CHECK(markers(request({tool("a")}, {system_text(billing, mark), text()}, {text()})) == "5..");
  CHECK(markers(request({}, {system_text(billing, mark), text()}, {text()})) == "..");
  CHECK(markers(request({}, {system_text(billing + "\\nrest", mark)}, {text()})) == "5.");
  // It still counts, as it does on the hosted API.
  CHECK(complaint(request({tool("a", mark)}, {system_text(billing, mark), text(mark), text(mark)},
                          {text(mark)}))
        == "A maximum of 4 blocks with cache_control may be provided. Found 5.");
}

}  // namespace
}  // namespace incipit::gateway
