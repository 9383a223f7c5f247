#include "incipit/openai.h"
#include "sdk/src/openai_read.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace incipit::openai {
namespace {

// Samples of openai-wire sections 2.3 and 2.5.
std::string sample(const char* name) {
  std::ifstream file(std::string(INCIPIT_TEST_DATA "/wire/") + name, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class Parse>
ParseError refusal(const Parse& parse) {
  try {
    (void)parse();
  } catch (const ParseError& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {"", 0, 0, 0, 0};
}

TEST_CASE("a chat request's keys come in the documented order, the caller's JSON byte for byte") {
  ChatRequest request;
  request.model = "m";
  request.messages = {
      {.role = "user", .parts = {JsonText(R"({ "type" : "text", "text": "\u0041" })")}}};
  request.tools = {{.name = "f", .parameters = JsonText(R"({"z": 1.0, "a": [ ]})")}};
  request.tool_choice = JsonText("\"none\"");
  request.max_completion_tokens = 5;
  request.prompt_cache_key = "k";
  request.extra = JsonText(R"({ "user" : "u", "x":[1 , 2] })");
  CHECK(to_json(request)
        == R"({"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":)"
           R"({"z": 1.0, "a": [ ]}}}],"messages":[{"role":"user","content":[)"
           R"({ "type" : "text", "text": "\u0041" }]}],"tool_choice":"none",)"
           R"("max_completion_tokens":5,"prompt_cache_key":"k","user" : "u", "x":[1 , 2]})");
}

TEST_CASE("a request of the Responses API has its keys in the documented order") {
  ResponsesRequest request;
  request.model = "m";
  request.instructions = "i";
  request.input = {message_item("user", "hi"), JsonText(R"({ "id":"rs_1" })")};
  request.tools = {{.name = "f"}};
  request.store = false;
  request.reasoning = JsonText(R"({"effort": "low"})");
  CHECK(to_json(request, true)
        == R"({"model":"m","tools":[{"type":"function","name":"f","parameters":null,)"
           R"("strict":null}],"instructions":"i","input":[{"role":"user","content":"hi"},)"
           R"({ "id":"rs_1" }],"store":false,"reasoning":{"effort": "low"},"stream":true})");
}

TEST_CASE("a chat stream asks for usage unless the caller has stream options of his own") {
  ChatRequest request;
  request.model = "m";
  request.messages = {{.role = "user", .content = "hi"}};
  const std::string start = R"({"model":"m","messages":[{"role":"user","content":"hi"}])";
  CHECK(to_json(request) == start + "}");
  CHECK(to_json(request, true)
        == start + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  request.extra = JsonText("{ }");
  CHECK(to_json(request) == start + "}");
  request.extra = JsonText(R"({"stream_options":{"include_obfuscation":false}})");
  CHECK(to_json(request, true)
        == start + R"(,"stream":true,"stream_options":{"include_obfuscation":false}})");
  request.extra = JsonText("[1]");
  CHECK_THROWS_AS((void)to_json(request), PromptError);
}

TEST_CASE("text that is not UTF-8 is refused where it stands, and so is an empty part") {
  const auto refused = [](const auto& write) {
    try {
      (void)write();
    } catch (const PromptError& error) {
      return error.rule + " " + error.path;
    }
    return std::string("accepted");
  };
  ChatRequest request;
  request.messages = {{.role = "user", .content = "ok"}, {.role = "user", .content = "a\xff"}};
  CHECK(refused([&] { return to_json(request); }) == "W-1 messages.1.content");
  request.messages = {{.role = "assistant", .tool_calls = {{"i", "f", "\xc3"}}}};
  CHECK(refused([&] { return to_json(request); })
        == "W-1 messages.0.tool_calls.0.function.arguments");
  request.messages = {{.role = "user", .parts = {text_part("x"), JsonText()}}};
  CHECK(refused([&] { return to_json(request); }) == "W-1 messages.0.content.1");
  request.messages.clear();
  request.stop = {"x", "\xe2\x82"};
  CHECK(refused([&] { return to_json(request); }) == "W-1 stop.1");
  request.stop.clear();
  request.tools = {{.name = "f", .description = "\x80"}};
  CHECK(refused([&] { return to_json(request); }) == "W-1 tools.0.function.description");
  CHECK(refused([&] { return text_part("\xff"); }) == "W-1 text");
  CHECK(refused([&] { return message_item("user", "\xff"); }) == "W-1 content");
  ResponsesRequest other;
  other.input = {JsonText()};
  CHECK(refused([&] { return to_json(other); }) == "W-1 input.0");
}

TEST_CASE("a chat completion is read with all its counters") {
  const std::string json = sample("openai_chat.json");
  const ChatCompletion completion = parse_chat_completion(json);
  CHECK(completion.created == 1790000000);
  CHECK(completion.text() == "Hi");
  REQUIRE(completion.choices.size() == 1);
  CHECK(completion.choices[0].finish_reason == "stop");
  CHECK(completion.choices[0].message.role == "assistant");
  CHECK(!completion.choices[0].message.refusal);
  REQUIRE(completion.usage);
  CHECK(completion.usage->input_tokens == 2600);
  CHECK(completion.usage->output_tokens == 3);
  CHECK(completion.usage->total_tokens == 2603);
  CHECK(completion.usage->cached_tokens == 2000);
  CHECK(completion.usage->cache_write_tokens == 400);
  CHECK(completion.usage->reasoning_tokens == 0);
  CHECK(completion.json.text() + "\n" == json);
}

TEST_CASE("counters that a server leaves out or sends as null are unset, not 0") {
  const auto usage = [](const std::string& json) {
    return parse_chat_completion(R"({"choices":[],"usage":)" + json + "}").usage;
  };
  CHECK(!usage("null"));
  CHECK(!parse_chat_completion(R"({"choices":[]})").usage);
  for (const char* details :
       {"", R"(,"prompt_tokens_details":null)", R"(,"prompt_tokens_details":{})",
        R"(,"prompt_tokens_details":{"cached_tokens":null,"cache_write_tokens":null})"}) {
    CAPTURE(details);
    const auto got =
        usage(std::string(R"({"prompt_tokens":7,"completion_tokens":2)") + details + "}");
    REQUIRE(got);
    CHECK(got->input_tokens == 7);
    CHECK(got->total_tokens == 9);
    CHECK(!got->cached_tokens);
    CHECK(!got->cache_write_tokens);
    CHECK(!got->reasoning_tokens);
  }
  const auto some = usage(R"({"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":0}})");
  CHECK(some->cached_tokens == 0);
  CHECK(!some->cache_write_tokens);
}

TEST_CASE("an assistant's tool calls go back as they came") {
  const ChatCompletion completion = parse_chat_completion(
      R"({"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,)"
      R"("tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},)"
      R"({"id":"call_2","type":"custom","custom":{"name":"sh","input":"ls \"x\""}}]},)"
      R"("finish_reason":"tool_calls"}]})");
  const ChatMessage& message = completion.choices.at(0).message;
  REQUIRE(message.tool_calls.size() == 2);
  CHECK(!message.content);
  CHECK(completion.text().empty());
  CHECK(message.tool_calls[0].arguments == R"({"a": 1})");
  CHECK(message.tool_calls[1].type == "custom");
  CHECK(message.tool_calls[1].arguments == R"(ls "x")");
  ChatRequest request;
  request.messages = {message};
  CHECK(to_json(request)
        == R"({"model":"","messages":[{"role":"assistant","tool_calls":[)"
           R"({"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},)"
           R"({"id":"call_2","type":"custom","custom":{"name":"sh","input":"ls \"x\""}}]}]})");
}

TEST_CASE("an answer in parts is text to read, and the parts to send back") {
  const ChatCompletion completion = parse_chat_completion(
      R"({"choices":[{"message":{"role":"assistant","content":[{"type":"text", "text":"a"},)"
      R"({"type":"text","text":"b","x":1}]}}]})");
  CHECK(completion.text() == "ab");
  const auto& parts = completion.choices.at(0).message.parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].text() == R"({"type":"text", "text":"a"})");
  CHECK(parts[1].text() == R"({"type":"text","text":"b","x":1})");
}

TEST_CASE("a reply of another shape is refused with path and offset") {
  const auto chat = [](const char* json) {
    return refusal([&] { return parse_chat_completion(json); });
  };
  CHECK(chat("{").offset == 1);
  CHECK(chat("[]").path.empty());
  CHECK(chat(R"({"id":"x"})").path == "choices");
  const ParseError wrong = chat(R"({"choices":[{"message":{"content":7}}]})");
  CHECK(wrong.path == "choices.0.message.content");
  CHECK(wrong.offset == 34);
  CHECK(chat(R"({"choices":[{}]})").path == "choices.0.message");
  CHECK(chat(R"({"choices":[],"usage":{"prompt_tokens":"7"}})").path == "usage.prompt_tokens");
  CHECK(refusal([] { return parse_response("{}"); }).path == "output");
  CHECK(refusal([] { return parse_response(R"({"output":[{"type":1}]})"); }).path
        == "output.0.type");
}

TEST_CASE("a response is read with all its counters") {
  const Response response = parse_response(sample("openai_response.json"));
  CHECK(response.status == "completed");
  CHECK(response.text() == "Hi");
  CHECK(response.incomplete_reason.empty());
  CHECK(response.error_code.empty());
  REQUIRE(response.output.size() == 1);
  CHECK(response.output[0].type == "message");
  CHECK(response.output[0].status == "completed");
  REQUIRE(response.usage);
  CHECK(response.usage->input_tokens == 2600);
  CHECK(response.usage->cached_tokens == 2000);
  CHECK(response.usage->cache_write_tokens == 400);
  CHECK(response.usage->output_tokens == 3);
  CHECK(response.usage->reasoning_tokens == 0);
  CHECK(response.usage->total_tokens == 2603);
}

TEST_CASE("every item of a response keeps its bytes, of kinds that nobody knows too") {
  const std::string reasoning = R"({ "id":"rs_1","type":"reasoning", "summary":[],"n":1.50 })";
  const std::string call = R"({"type":"function_call","id":"fc_1","call_id":"call_1","name":"f",)"
                           R"("arguments":"{}","status":"completed"})";
  const std::string custom =
      R"({"type":"custom_tool_call","id":"ct_1","call_id":"call_2","name":"sh","input":"ls"})";
  const std::string unknown = "{\"type\":\"hologram\",\n \"x\":{\"\\u0061\":null}}";
  const Response response = parse_response(R"({"status":"completed","output":[)" + reasoning + ",\n"
                                           + call + "," + custom + "," + unknown + "]}");
  REQUIRE(response.output.size() == 4);
  CHECK(response.output[0].json.text() == reasoning);
  CHECK(response.output[1].json.text() == call);
  CHECK(response.output[1].id == "fc_1");
  CHECK(response.output[1].call.id == "call_1");
  CHECK(response.output[1].call.name == "f");
  CHECK(response.output[1].call.arguments == "{}");
  CHECK(response.output[2].call.arguments == "ls");
  CHECK(response.output[2].call.type == "custom");
  CHECK(response.output[3].type == "hologram");
  CHECK(response.output[3].json.text() == unknown);
  CHECK(!response.usage);

  ResponsesRequest request;
  for (const ResponseItem& item : response.output)
    request.input.push_back(item.json);
  CHECK(to_json(request).find(unknown) != std::string::npos);
}

TEST_CASE("an incomplete and a failed response say why") {
  const Response incomplete = parse_response(
      R"({"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"output":[]})");
  CHECK(incomplete.status == "incomplete");
  CHECK(incomplete.incomplete_reason == "max_output_tokens");
  const Response failed = parse_response(
      R"({"status":"failed","error":{"code":"server_error","message":"It broke."},"output":null})");
  CHECK(failed.status == "failed");
  CHECK(failed.error_code == "server_error");
  CHECK(failed.error_message == "It broke.");
}

// openai-wire rule 58, with the numbers of rule 37: 2,600 = 2,000 read + 400 written + 200.
TEST_CASE("usage in the Messages API's counters excludes reads and writes from the input") {
  Usage usage{.input_tokens = 2600, .output_tokens = 3, .total_tokens = 2603};
  usage.cached_tokens = 2000;
  usage.cache_write_tokens = 400;
  const incipit::Usage messages = usage.messages_usage();
  CHECK(messages.input_tokens == 200);
  CHECK(messages.cache_read_input_tokens == 2000);
  CHECK(messages.cache_creation_input_tokens() == 400);
  CHECK(messages.output_tokens == 3);
  CHECK(messages.prompt_tokens() == usage.input_tokens);

  usage.cached_tokens.reset();
  usage.cache_write_tokens.reset();
  CHECK(usage.messages_usage().input_tokens == 2600);
  usage.cached_tokens = 3000;  // more than there was to read
  CHECK(usage.messages_usage().input_tokens == 0);
}

// Prices of openai-wire section 1.8.
TEST_CASE("cost counts reads and writes at their own prices, what is unset as input") {
  Usage usage{.input_tokens = 2600};
  CHECK(cost(usage, "gpt-5.6-terra")->nano_dollars == 2600 * 2000);
  usage.cached_tokens = 2000;
  usage.cache_write_tokens = 400;
  CHECK(cost(usage, "gpt-5.6-terra")->nano_dollars == 200 * 2000 + 2000 * 200 + 400 * 2500);
  CHECK(!cost(usage, "somebody's-model"));
}

TEST_CASE("an error body gives type, code, param and message; the status decides the kind") {
  const std::string body =
      R"({"error":{"message":"No such key.","type":"invalid_request_error","param":"model","code":"invalid_api_key"}})";
  const ApiError error = parse_api_error(401, body);
  CHECK(error.status == 401);
  CHECK(error.type == ErrorType::authentication_error);
  CHECK(error.type.text == "invalid_request_error");
  CHECK(error.error_code == "invalid_api_key");
  CHECK(error.param == "model");
  CHECK(error.message == "No such key.");
  CHECK(error.body == body);
  CHECK(std::string(error.what()) == "401 invalid_request_error: No such key.");

  const ApiError numeric = parse_api_error(
      500, R"({"error":{"message":"m","type":"server_error","param":null,"code":500}})");
  CHECK(numeric.error_code == "500");
  CHECK(numeric.param.empty());
  CHECK(numeric.type == ErrorType::api_error);
}

TEST_CASE("the kind of an error follows from the status, as in the official SDKs") {
  const std::pair<int, ErrorType> kinds[] = {{400, ErrorType::invalid_request_error},
                                             {401, ErrorType::authentication_error},
                                             {403, ErrorType::permission_error},
                                             {404, ErrorType::not_found_error},
                                             {409, ErrorType::conflict_error},
                                             {422, ErrorType::invalid_request_error},
                                             {429, ErrorType::rate_limit_error},
                                             {500, ErrorType::api_error},
                                             {502, ErrorType::api_error},
                                             {503, ErrorType::overloaded_error},
                                             {418, ErrorType::unknown}};
  for (const auto& [status, type] : kinds) {
    CAPTURE(status);
    CHECK(parse_api_error(status, R"({"error":{"type":"novel","message":"m"}})").type == type);
    CHECK(parse_api_error(status, "<html>").type == type);
  }
}

TEST_CASE("what is no error envelope is the message") {
  const ApiError page = parse_api_error(502, "<html>Bad gateway</html>");
  CHECK(page.message == "<html>Bad gateway</html>");
  CHECK(page.type.text.empty());
  CHECK(parse_api_error(404, R"({"error":"model not found"})").message == "model not found");
  CHECK(parse_api_error(400, R"({"detail":"x"})").message == R"({"detail":"x"})");
  CHECK(parse_api_error(500, std::string(5000, 'x')).message.size() < 300);
  CHECK(parse_api_error(500, "").message == "no body");
}

}  // namespace
}  // namespace incipit::openai
