// Damaged bodies end in an ApiError or parse; nothing else may happen. Worth most under sanitizers.
#include "incipit/json.h"
#include "request_bodies.h"

#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

std::vector<std::string> valid_bodies() {
  std::vector<std::string> bodies;
  for (const std::string name : {"plain", "tools", "coding-agent"}) {
    std::ostringstream text;
    text << std::ifstream(std::string(INCIPIT_TEST_DATA) + "/wire/" + name + ".json").rdbuf();
    bodies.push_back(text.str());
  }
  return bodies;
}

// True if it parsed.
bool survives(std::string_view body, const RequestContext& context) {
  try {
    (void)parse_messages(body, context);
    return true;
  } catch (const ApiError& error) {
    CHECK((error.status == 400 || error.status == 404));
    CHECK(*error.what() != '\0');
    return false;
  }
}

TEST_CASE("every stored body parses") {
  const auto bodies = valid_bodies();
  for (const std::string& body : bodies) {
    CAPTURE(body);
    CHECK(complaint(body, with_beta("prompt-caching-scope-2026-01-05")).empty());
  }
}

TEST_CASE("every truncation of a body is refused as JSON") {
  const RequestContext context = with_beta("prompt-caching-scope-2026-01-05");
  for (const std::string& body : valid_bodies()) {
    const std::size_t end = body.find_last_of('}');
    for (std::size_t length = 0; length <= end; ++length) {
      CHECK(complaint(std::string_view(body).substr(0, length), context)
                .starts_with("The request body is not valid JSON: "));
    }
  }
}

TEST_CASE("flipped, removed and repeated bytes never do worse than an error") {
  const RequestContext context = with_beta("prompt-caching-scope-2026-01-05");
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  int parsed = 0;
  int refused = 0;
  for (const std::string& body : valid_bodies()) {
    for (int round = 0; round < 4000; ++round) {
      std::string damaged = body;
      for (std::size_t hit = 0; hit < 1 + below(3); ++hit) {
        const std::size_t at = below(damaged.size());
        switch (below(4)) {
          case 0:
            damaged[at] = static_cast<char>(below(256));
            break;
          case 1:
            damaged.erase(at, 1 + below(8));
            break;
          case 2:
            damaged.insert(at, damaged.substr(below(damaged.size()), below(40)));
            break;
          default:
            damaged[at] = "{}[]\",:0-n\\"[below(11)];
            break;
        }
        if (damaged.empty()) damaged = "{";
      }
      (survives(damaged, context) ? parsed : refused) += 1;
    }
  }
  // Both outcomes must have been seen, or the damage was of one kind only.
  CHECK(parsed > 100);
  CHECK(refused > 1000);
}

TEST_CASE("values of every kind in every place never do worse than an error") {
  const std::vector<std::string> values = {"null",  "true", "-1",   "1e999", "\"\"",
                                           "\"x\"", "[]",   "[[]]", "{}",    "{\"type\":\"text\"}"};
  const std::vector<std::string> names = {
      "model",        "max_tokens", "messages",      "system",        "stream",    "stop_sequences",
      "temperature",  "top_p",      "top_k",         "metadata",      "tools",     "tool_choice",
      "thinking",     "speed",      "output_config", "cache_control", "container", "diagnostics",
      "service_tier", "thread",     "inference_geo"};
  for (const std::string& name : names) {
    for (const std::string& value : values) {
      std::string body = R"({"filler":0)";
      if (name != "model") body += R"(,"model":"claude-sonnet-4-6")";
      if (name != "max_tokens") body += R"(,"max_tokens":1)";
      if (name != "messages") body += R"(,"messages":[{"role":"user","content":"x"}])";
      body += ",\"" + name + "\":" + value + "}";
      body.erase(1, std::string_view(R"("filler":0,)").size());
      (void)survives(body, older_version());
    }
  }
}

// One of everything that is served.
const std::string rich = R"({
  "model":"claude-haiku-4-5","max_tokens":64,"stream":false,"stop_sequences":["END"],
  "temperature":0.5,"top_p":0.9,"top_k":4,"metadata":{"user_id":"u"},"service_tier":"auto",
  "inference_geo":"us","speed":"fast","cache_control":{"type":"ephemeral","ttl":"5m"},
  "output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}},
  "tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},
  "thinking":{"type":"disabled"},
  "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],
  "tools":[{"type":"custom","name":"f","description":"d","input_schema":{"type":"object"},
      "strict":true,"input_examples":[{"a":1}],"allowed_callers":["direct"],
      "eager_input_streaming":true,"defer_loading":false},
    {"type":"text_editor_20250728","name":"str_replace_based_edit_tool","max_characters":9},
    {"name":"g","input_schema":{"type":"object"},"defer_loading":true}],
  "messages":[{"role":"user","content":[{"type":"text","text":"q"},
      {"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},
       "title":"t","context":"c","citations":{"enabled":false}},
      {"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"}]}},
      {"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}]},
    {"role":"assistant","content":[{"type":"text","text":"a","citations":[
        {"type":"char_location","cited_text":"c","document_index":0,"document_title":"t",
         "start_char_index":0,"end_char_index":1}]},
      {"type":"tool_use","id":"t1","name":"f","input":{"a":[1]},"caller":{"type":"direct"}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":false,"content":[
      {"type":"text","text":"r"},{"type":"tool_reference","tool_name":"g"}]}]}]})";

// `value` with its node number `at`, in the order of the text, made by `change`. Nodes inside the
// caller's own JSON are not counted.
template <typename Change>
JsonValue changed(const JsonValue& value, int& at, const Change& change) {
  if (at-- == 0) return change(value);
  if (value.is_array()) {
    JsonValue::Array items;
    for (const JsonValue& item : value.as_array())
      items.push_back(changed(item, at, change));
    return JsonValue::array(std::move(items));
  }
  if (!value.is_object()) return value;
  JsonValue::Object members;
  for (const JsonMember& member : value.as_object()) {
    const bool is_theirs = member.name == "input" || member.name == "input_schema"
                           || member.name == "schema" || member.name == "input_examples";
    members.push_back({member.name, is_theirs ? member.value : changed(member.value, at, change)});
  }
  return JsonValue::object(std::move(members));
}

int count_nodes(const JsonValue& value) {
  int far = 1 << 20;
  (void)changed(value, far, [](const JsonValue& same) { return same; });
  return (1 << 20) - far;
}

TEST_CASE("the body of everything is accepted") {
  CHECK(complaint(rich) == "");
}

TEST_CASE("another kind of value in any place is accepted or told its place") {
  const JsonValue body = JsonValue::parse(rich);
  const int nodes = count_nodes(body);
  CHECK(nodes > 90);
  int refused = 0;
  for (const char* text :
       {"null", "true", "-1", "1e999", "\"\"", "\"x\"", "[]", "[[]]", "{}", "[7]"}) {
    const JsonValue other = JsonValue::parse(text);
    for (int node = 1; node < nodes; ++node) {
      int at = node;
      const std::string damaged =
          changed(body, at, [&](const JsonValue&) { return other; }).minified();
      CAPTURE(damaged);
      if (!survives(damaged, older_version())) ++refused;
    }
  }
  CHECK(refused > 8 * nodes);
}

TEST_CASE("a member that nobody knows is refused in every object") {
  const JsonValue body = JsonValue::parse(rich);
  const int nodes = count_nodes(body);
  int objects = 0;
  for (int node = 0; node < nodes; ++node) {
    int at = node;
    bool is_object = false;
    const JsonValue more = changed(body, at, [&](const JsonValue& value) {
      is_object = value.is_object();
      if (!is_object) return value;
      JsonValue::Object members = value.as_object();
      members.push_back({"zebra", {}});
      return JsonValue::object(std::move(members));
    });
    if (!is_object) continue;
    ++objects;
    CAPTURE(more.minified());
    CHECK(complaint(more.minified()).ends_with("zebra: Extra inputs are not permitted"));
  }
  CHECK(objects > 25);
}

TEST_CASE("deep nesting is refused") {
  const std::string deep(100'000, '[');
  CHECK(complaint(deep).find("nested deeper than 200 levels") != std::string::npos);
  std::string schema = "{}";
  for (int i = 0; i < 300; ++i)
    schema = "{\"a\":" + schema + "}";
  CHECK(complaint(fields("\"metadata\":" + schema)).find("nested deeper than 200 levels")
        != std::string::npos);
}

TEST_CASE("a key that is there twice is refused, with its place") {
  CHECK(
      complaint(R"({"model":"a","model":"b"})")
      == "The request body is not valid JSON: duplicate key \"model\": line 1 column 14 (char 13)");
  CHECK(complaint(blocks("{\"type\":\"text\",\n\"text\":\"x\",\"\\u0074ext\":\"y\"}"))
            .starts_with("The request body is not valid JSON: duplicate key \"text\": line 2 "));
  CHECK(complaint(
            fields(R"("tools":[{"name":"f","input_schema":{"type":"object","type":"object"}}])"))
            .starts_with("The request body is not valid JSON: duplicate key \"type\": "));
  CHECK(complaint(fields(R"("metadata":{"user_id":"x"},"metadata":null)"))
            .starts_with("The request body is not valid JSON: duplicate key \"metadata\": "));
}

TEST_CASE("lone surrogates are refused") {
  for (const char* text :
       {R"(\ud800)", R"(\udc00)", R"(\ud800x)", R"(\ud800\ud800)", R"(\ud83d\u0041)"}) {
    CAPTURE(text);
    CHECK(complaint(blocks(R"({"type":"text","text":")" + std::string(text) + "\"}"))
              .find("The request body is not valid JSON: lone surrogate in a string: line 1 ")
          == 0);
  }
  CHECK(complaint(blocks(R"({"type":"text","text":"\ud83d\ude00"})")).empty());
}

TEST_CASE("numbers out of range are refused as what they are") {
  struct Case {
    std::string field, message;
  };

  for (const Case& test : std::vector<Case>{
           {R"("temperature":1e999)", "temperature: Input should be less than or equal to 1"},
           {R"("temperature":-1e999)", "temperature: Input should be greater than or equal to 0"},
           {R"("top_k":9223372036854775808)", "top_k: Input should be a valid integer"},
           {R"("top_k":1e999)", "top_k: Input should be a valid integer"},
           {R"("top_k":0.5)", "top_k: Input should be a valid integer"},
           {R"("top_k":9223372036854775807)", ""},
       }) {
    CAPTURE(test.field);
    CHECK(complaint(fields(test.field)) == test.message);
  }
  CHECK(complaint(R"({"model":"claude-sonnet-4-6","max_tokens":9223372036854775808,"messages":[]})")
        == "max_tokens: Input should be a valid integer");
  // In a caller's own JSON a number is what its spelling says.
  CHECK(conversation(
            fields(R"("tools":[{"name":"f","input_schema":{"type":"object","default":1e999}}])"))
            .items[0]
            .schema
        == R"({"type":"object","default":1e999})");
}

}  // namespace
}  // namespace incipit::gateway
