// Our request bodies are the JSON values that the official Python SDK sends for the same prompts
// (tests/data/wire/make_sdk_requests.py).
#include "incipit/anthropic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace incipit;

namespace {

// Key order is ours to choose outside of the caller's JSON, and 1.0 is 1.
JsonValue in_key_order(const JsonValue& value) {
  if (value.is_array()) {
    JsonValue::Array items;
    for (const JsonValue& item : value.as_array())
      items.push_back(in_key_order(item));
    return JsonValue::array(std::move(items));
  }
  if (!value.is_object()) return value;
  JsonValue::Object members;
  for (const JsonMember& member : value.as_object())
    members.push_back({member.name, in_key_order(member.value)});
  std::ranges::sort(members, {}, &JsonMember::name);
  return JsonValue::object(std::move(members));
}

std::string canonical(const JsonValue& value) {
  return in_key_order(value).minified();
}

std::string canonical(const std::string& json) {
  return canonical(JsonValue::parse(json));
}

// String shorthand as the block that it stands for.
JsonValue with_blocks(const JsonValue& body) {
  const auto block = [](const JsonValue& text) {
    return JsonValue::array({JsonValue::object(
        {{"type", JsonValue::string("text")}, {"text", JsonValue::string(text.as_string())}})});
  };
  JsonValue::Object members = body.as_object();
  for (JsonMember& member : members) {
    if (member.name == "system" && member.value.is_string()) member.value = block(member.value);
    if (member.name != "messages") continue;
    JsonValue::Array messages;
    for (const JsonValue& message : member.value.as_array()) {
      JsonValue::Object turn = message.as_object();
      for (JsonMember& part : turn) {
        if (part.name == "content" && part.value.is_string()) part.value = block(part.value);
      }
      messages.push_back(JsonValue::object(std::move(turn)));
    }
    member.value = JsonValue::array(std::move(messages));
  }
  return JsonValue::object(std::move(members));
}

const CacheControl minutes{};
const CacheControl hour{Ttl::one_hour};

MessageParam user(std::vector<ContentBlock> blocks) {
  return {MessageRole::user, std::move(blocks)};
}

MessageParam assistant(std::vector<ContentBlock> blocks) {
  return {MessageRole::assistant, std::move(blocks)};
}

TextBlock text(std::string value, std::optional<CacheControl> marker = {}) {
  return {.text = std::move(value), .cache_control = marker};
}

const MessageParam hi = user({text("Hi")});

MessageRequest request(std::vector<MessageParam> messages = {hi}) {
  MessageRequest result;
  result.model = "claude-sonnet-5-5";
  result.max_tokens = 1024;
  result.messages = std::move(messages);
  return result;
}

Tool tool(std::string name, const char* schema = R"({"type":"object"})") {
  return {.name = std::move(name), .input_schema = JsonText(schema)};
}

Tool look() {
  return tool("look",
              R"({"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"array"}}})");
}

ToolUseBlock call(std::string id = "toolu_1") {
  return {.id = std::move(id), .name = "look", .input = JsonText(R"({"z":1,"a":[true,null,1.5]})")};
}

ToolResultBlock result(std::vector<ContentBlock> content, std::string id = "toolu_1") {
  return {.tool_use_id = std::move(id), .content = std::move(content)};
}

MessageRequest with_look(std::vector<MessageParam> messages) {
  MessageRequest all = request(std::move(messages));
  all.tools = {look()};
  return all;
}

MessageRequest answered(ToolResultBlock answer) {
  return with_look({user({text("Look")}), assistant({call()}), user({std::move(answer)})});
}

MessageRequest replayed(ContentBlock block, std::string next) {
  return request({hi, assistant({std::move(block)}), user({text(std::move(next))})});
}

std::vector<MessageParam> server(std::string type, const char* content,
                                 std::string name = "web_search") {
  return {user({text("Search")}),
          assistant({ServerToolUseBlock{.id = "srvtoolu_1",
                                        .name = std::move(name),
                                        .input = JsonText(R"({"query":"fjord"})")},
                     ServerToolResultBlock{.type = std::move(type),
                                           .tool_use_id = "srvtoolu_1",
                                           .content = JsonText(content)},
                     text("Found.")}),
          user({text("More")})};
}

MessageRequest changed(const std::function<void(MessageRequest&)>& change) {
  MessageRequest result = request();
  change(result);
  return result;
}

MessageRequest choosing(ToolChoice choice, const char* model = "claude-sonnet-5-5") {
  return changed([&](MessageRequest& r) {
    r.model = model;
    r.tools = {look()};
    r.tool_choice = std::move(choice);
  });
}

MessageRequest asked_with(ContentBlock block) {
  return request({user({std::move(block)})});
}

Citation citation(std::string type, std::string cited, std::int64_t start, std::int64_t end) {
  return {.type = std::move(type), .cited_text = std::move(cited), .start = start, .end = end};
}

using Prompts = std::map<std::string, MessageRequest>;

void add_texts(Prompts& all) {
  all["text"] = request();
  all["string content"] = request();
  all["string system"] = changed([](auto& r) { r.system = {text("Be brief.")}; });
  all["string reply"] = request({hi, assistant({text("Hello")}), user({text("Again")})});
  all["system blocks"] = changed([](auto& r) { r.system = {text("One"), text("Two", minutes)}; });
  all["hour and minutes"] = request({user({text("Hi", minutes)})});
  all["hour and minutes"].system = {text("Rules", hour)};
  all["automatic caching"] = changed([](auto& r) { r.cache_control = minutes; });
  all["automatic caching for an hour"] = changed([](auto& r) { r.cache_control = hour; });
  using namespace std::string_literals;
  all["unicode"] = asked_with(
      text("Gr\u00fc\u00dfe, \u4e16\u754c \U0001F30D \u2028 "s + "\0"s + "\x1f\"\\/\t\r\n"));
  std::string play;
  for (int i = 0; i < 2000; ++i)
    play += "All work and no play. ";
  all["long text"] = asked_with(text(play));
  all["max_tokens zero"] = asked_with(text("x", minutes));
  all["max_tokens zero"].max_tokens = 0;
  all["system message inside"] = request({hi, {MessageRole::system, {text("Now in French.")}}});
  all["system message inside"].speed = "fast";
}

void add_media(Prompts& all) {
  all["image base64"] =
      request({user({ImageBlock{.source = Base64Source{"image/png", base64("\x89PNG\r\n\x1a\n")}},
                     text("What?")})});
  all["image url"] = asked_with(
      ImageBlock{.source = UrlSource{"https://example.com/a.png"}, .cache_control = minutes});
  all["image file"] = asked_with(ImageBlock{.source = FileSource{"file_1"}});
  all["document base64"] =
      asked_with(DocumentBlock{.source = Base64Source{"application/pdf", base64("%PDF-")},
                               .title = "Law",
                               .context = "Draft"});
  all["document text"] =
      asked_with(DocumentBlock{.source = TextSource{"Grass is green."}, .citations = true});
  all["document content"] =
      asked_with(DocumentBlock{.source = ContentSource{{text("One"), text("Two")}},
                               .citations = true,
                               .cache_control = hour});
  all["document url"] = asked_with(DocumentBlock{.source = UrlSource{"https://example.com/a.pdf"}});
  all["document file"] = asked_with(DocumentBlock{.source = FileSource{"file_2"}, .title = "Law"});
  all["search results"] = asked_with(SearchResultBlock{.source = "https://example.com",
                                                       .title = "Fjords",
                                                       .content = {text("Deep."), text("Cold.")},
                                                       .citations = true});
}

void add_replays(Prompts& all) {
  Citation by_char = citation("char_location", "Grass is green.", 0, 15);
  by_char.document_index = 0;
  all["citations replayed"] =
      replayed(TextBlock{.text = "Green.", .citations = {by_char}}, "Sure?");
  Citation by_page = citation("page_location", "Green", 2, 3);
  by_page.document_index = 1;
  by_page.title = "Law";
  all["page citation"] = replayed(TextBlock{.text = "Green.", .citations = {by_page}}, "Sure?");
  Citation by_search = citation("search_result_location", "Deep.", 0, 1);
  by_search.search_result_index = 0;
  by_search.source = "https://example.com";
  by_search.title = "Fjords";
  all["search citation"] = replayed(TextBlock{.text = "Deep.", .citations = {by_search}}, "Sure?");
  all["thinking replayed"] = with_look(
      {user({text("Look")}),
       assistant({ThinkingBlock{.thinking = "Let me look.", .signature = "c2ln"}, call()}),
       user({result({text("Fine")})})});
  all["redacted thinking"] = request(
      {hi, assistant({RedactedThinkingBlock{"ZGF0YQ=="}, text("Hello")}), user({text("Again")})});
  all["web search"] = request(server(
      "web_search_tool_result",
      R"([{"type":"web_search_result","url":"https://example.com","title":"T","encrypted_content":"abc","page_age":null}])"));
  all["web search error"] = request(
      server("web_search_tool_result",
             R"({"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"})"));
  all["code execution and upload"] = request(server(
      "bash_code_execution_tool_result",
      R"({"type":"bash_code_execution_result","stdout":"1\n","stderr":"","return_code":0,"content":[]})",
      "bash_code_execution"));
  all["code execution and upload"].messages[0] =
      user({ContainerUploadBlock{"file_3"}, text("Run")});
  all["beta fields and blocks"] =
      request({user({UnknownBlock{.type = "compaction",
                                  .json = JsonText(R"({"type":"compaction","content":"Summary"})"),
                                  .cache_control = minutes}}),
               hi});
  all["beta fields and blocks"].extra = JsonText(
      R"({"context_management":{"edits":[{"type":"clear_tool_uses_20250919","keep":{"type":"tool_uses","value":3}}]}})");
}

void add_tools(Prompts& all) {
  all["tool call and text result"] = answered(result({text("Fine")}));
  all["tool result empty"] = answered(result({}));
  ToolResultBlock error = result({text("Error: gone")});
  error.is_error = true;
  all["tool result error"] = answered(error);
  ToolResultBlock nested =
      result({text("See"), ImageBlock{.source = UrlSource{"https://example.com/b.png"}},
              SearchResultBlock{.source = "s", .title = "t", .content = {text("c")}},
              DocumentBlock{.source = TextSource{"d"}}});
  nested.cache_control = minutes;
  all["tool result nested"] = answered(nested);
  all["tool input empty"] =
      with_look({user({text("Go")}), assistant({ToolUseBlock{.id = "toolu_1", .name = "look"}}),
                 user({result({text("Fine")})})});
  all["parallel calls"] =
      with_look({user({text("Look twice")}), assistant({call(), call("toolu_2")}),
                 user({result({text("1")}), result({text("2")}, "toolu_2"), text("And?")})});
  Tool weather = tool(
      "weather",
      R"({"type":"object","properties":{"zone":{"type":"string"},"area":{"enum":["x","y"]}},"required":["zone"],"additionalProperties":false})");
  weather.description = "Weather";
  weather.cache_control = hour;
  all["tool custom"] = changed([&](auto& r) { r.tools = {weather}; });
  Tool strict = tool("weather");
  strict.strict = true;
  strict.input_examples = {JsonText(R"({"b":1,"a":2})")};
  all["tool strict"] = changed([&](auto& r) { r.tools = {strict}; });
  Tool deferred = tool("b");
  deferred.defer_loading = true;
  deferred.allowed_callers = {"direct", "code_execution_20250825"};
  deferred.eager_input_streaming = true;
  all["tool deferred"] = changed([&](auto& r) { r.tools = {tool("a"), deferred}; });
  all["tools of the provider"] = changed([](auto& r) {
    r.tools = {{.name = "web_search",
                .type = "web_search_20250305",
                .options = JsonText(R"({"max_uses":3,"allowed_domains":["example.com"]})")},
               {.name = "bash", .cache_control = minutes, .type = "bash_20250124"}};
  });
}

void add_settings(Prompts& all) {
  using Choice = ToolChoice::Type;
  all["tool choice auto"] =
      choosing({.type = Choice::automatic, .disable_parallel_tool_use = true});
  all["tool choice any"] = choosing({.type = Choice::any}, "claude-sonnet-5");
  all["tool choice tool"] = choosing({.type = Choice::tool, .name = "look"}, "claude-sonnet-5");
  all["tool choice none"] = choosing({.type = Choice::none});
  const auto thinking = [&](const std::string& name, Thinking value) -> MessageRequest& {
    return all[name] = changed([&](auto& r) { r.thinking = value; });
  };
  thinking("thinking adaptive", {.type = Thinking::Type::adaptive, .display = "summarized"})
      .effort = Effort::xhigh;
  MessageRequest& enabled =
      thinking("thinking enabled", {.type = Thinking::Type::enabled, .budget_tokens = 2048});
  enabled.model = "claude-haiku-4-5";
  enabled.max_tokens = 4096;
  thinking("thinking disabled", {.type = Thinking::Type::disabled}).effort = Effort::low;
  thinking("thinking between tools", {.type = Thinking::Type::between_tools});
  all["output format"] = changed([](auto& r) {
    r.output_format = JsonText(
        R"({"type":"json_schema","schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"null"}},"additionalProperties":false}})");
  });
  all["settings"] = changed([](auto& r) {
    r.stop_sequences = {"\n\nHuman:", "stop"};
    r.user_id = "u-1";
    r.service_tier = "standard_only";
    r.inference_geo = "us";
    r.container = JsonText(R"("container_1")");
  });
  all["diagnostics first"] = changed([](auto& r) { r.diagnostics = DiagnosticsParam{}; });
  all["diagnostics"] = changed([](auto& r) { r.diagnostics = DiagnosticsParam{"msg_0"}; });
}

JsonValue golden() {
  std::ifstream file(std::string(INCIPIT_TEST_DATA) + "/wire/sdk_requests.json");
  return JsonValue::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace

TEST_CASE(
    "our bodies are those of the official Python SDK, for more than 50 prompts of all kinds") {
  Prompts ours;
  add_texts(ours);
  add_media(ours);
  add_replays(ours);
  add_tools(ours);
  add_settings(ours);
  const JsonValue theirs = golden();
  CHECK(theirs.as_object().size() >= 50);
  CHECK(theirs.as_object().size() == ours.size());
  for (const auto& [name, body] : theirs.as_object()) {
    CAPTURE(name);
    REQUIRE(ours.contains(name));
    CHECK(canonical(to_json(ours.at(name))) == canonical(with_blocks(body)));
  }
}

TEST_CASE("a body of the Python SDK is read and written back as the same value") {
  const JsonValue theirs = golden();
  for (const auto& [name, body] : theirs.as_object()) {
    CAPTURE(name);
    const std::string once = to_json(parse_message_request(body.minified()));
    CHECK(canonical(once) == canonical(with_blocks(body)));
    CHECK(to_json(parse_message_request(once)) == once);
  }
}
