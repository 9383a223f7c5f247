#include "incipit/json.h"

#include <doctest/doctest.h>

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace incipit {
namespace {

// Where `text` is refused, or -1 when it parses.
int refused_at(std::string_view text, const JsonLimits& limits = {}) {
  try {
    (void)JsonValue::parse(text, limits);
    return -1;
  } catch (const ParseError& error) {
    return static_cast<int>(error.offset);
  }
}

TEST_CASE("broken documents are refused at the byte, line and column where Python's json does") {
  struct Broken {
    const char* text;
    std::size_t character, line, column, offset;
  };

  // From json.JSONDecodeError of CPython; `offset` is the UTF-8 length before `pos`.
  const std::vector<Broken> cases = {
      {"", 0, 1, 1, 0},
      {"   ", 3, 1, 4, 3},
      {"{", 1, 1, 2, 1},
      {"[", 1, 1, 2, 1},
      {"[1,2", 4, 1, 5, 4},
      {"{\"a\"", 4, 1, 5, 4},
      {"{\"a\":", 5, 1, 6, 5},
      {"{\"a\":1", 6, 1, 7, 6},
      {"{\"a\":1,", 7, 1, 8, 7},
      {"{\"a\" 1}", 5, 1, 6, 5},
      {"{\"a\":1 \"b\":2}", 7, 1, 8, 7},
      {"[1 2]", 3, 1, 4, 3},
      {"[1,]", 3, 1, 4, 3},
      {"{\"a\":1,}", 7, 1, 8, 7},
      {"{,}", 1, 1, 2, 1},
      {"[,1]", 1, 1, 2, 1},
      {"tru", 0, 1, 1, 0},
      {"nul", 0, 1, 1, 0},
      {"[tru,1]", 1, 1, 2, 1},
      {"{\"a\":nul}", 5, 1, 6, 5},
      {"[01]", 2, 1, 3, 2},
      {"[1.]", 2, 1, 3, 2},
      {"[.5]", 1, 1, 2, 1},
      {"[+1]", 1, 1, 2, 1},
      {"[-]", 1, 1, 2, 1},
      {"[1e]", 2, 1, 3, 2},
      {"[\"a", 1, 1, 2, 1},
      {"[\"a\\x\"]", 3, 1, 4, 3},
      {"[\"a\\u12g4\"]", 3, 1, 4, 3},
      {"[\"a\nb\"]", 3, 1, 4, 3},
      {"[\"a\tb\"]", 3, 1, 4, 3},
      {"{\"a\":1}}", 7, 1, 8, 7},
      {"[1]]", 3, 1, 4, 3},
      {"[1] x", 4, 1, 5, 4},
      {"null x", 5, 1, 6, 5},
      {"\"a\" \"b\"", 4, 1, 5, 4},
      {"[1}", 2, 1, 3, 2},
      {"{\"a\":[1,2}", 9, 1, 10, 9},
      {"{1:2}", 1, 1, 2, 1},
      {"{'a':1}", 1, 1, 2, 1},
      {"[\n1,\n2\n3]", 7, 4, 1, 7},
      {"{\"é\":x}", 5, 1, 6, 6},
      {"[\"😀\",x]", 5, 1, 6, 8},
      {"// c\n1", 0, 1, 1, 0},
      {"[1,2]\n\n]", 7, 3, 1, 7},
      {"{\"a\":{\"b\":[1,{\"c\":tru}]}}", 18, 1, 19, 18},
  };
  for (const Broken& broken : cases) {
    CAPTURE(broken.text);
    try {
      (void)JsonValue::parse(broken.text);
      FAIL("parsed");
    } catch (const ParseError& error) {
      CAPTURE(error.what());
      CHECK(error.character == broken.character);
      CHECK(error.line == broken.line);
      CHECK(error.column == broken.column);
      CHECK(error.offset == broken.offset);
    }
  }
}

TEST_CASE("what Python's json lets pass and JSON does not is refused") {
  CHECK(refused_at("[NaN]") == 1);
  CHECK(refused_at("[-Infinity]") == 1);
  CHECK(refused_at("[\"\\ud800\"]") == 2);
  CHECK(refused_at("[\"\\ud800\\u0041\"]") == 2);
  CHECK(refused_at("[\"x\\udc00\"]") == 3);
  CHECK(refused_at("{\"\\ud83d\":1}") == 2);
  CHECK(refused_at("[\"\\ud83d\\ude00\"]") == -1);
  CHECK(refused_at(std::string_view("[\"a\0b\"]", 7)) == 3);
  CHECK(refused_at(std::string_view("[1]\0", 4)) == 3);
  CHECK(refused_at("\xEF\xBB\xBF[1]") == 0);
}

TEST_CASE("invalid UTF-8 is refused where it is") {
  for (const char* bad : {"\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\xaf",
                          "\xf4\x90\x80\x80", "\x80", "\xf0\x80\x80\x41", "\xe0\x9f\xbf"}) {
    CAPTURE(bad);
    CHECK(refused_at("[\"é" + std::string(bad) + "\"]") == 4);
    CHECK(refused_at("{\"é" + std::string(bad) + "\":1}") == 4);
  }
}

TEST_CASE("every kind of value is read") {
  const JsonValue value = JsonValue::parse(
      R"( {"n":null,"t":true,"f":false,"i":-12,"d":2.50,"s":"a\"\\\/\b\f\n\r\tA\u00e9\ud83d\ude00","a":[1,[]],"o":{}} )");
  REQUIRE(value.is_object());
  REQUIRE(value.as_object().size() == 8);
  CHECK(value.find("n")->is_null());
  CHECK(value.find("t")->as_boolean());
  CHECK_FALSE(value.find("f")->as_boolean());
  CHECK(value.find("i")->number_text() == "-12");
  CHECK(value.find("i")->as_integer() == -12);
  CHECK(value.find("d")->number_text() == "2.50");
  CHECK(value.find("d")->as_double() == 2.5);
  CHECK(value.find("s")->as_string() == "a\"\\/\b\f\n\r\tAé😀");
  CHECK(value.find("a")->as_array().size() == 2);
  CHECK(value.find("o")->as_object().empty());
  CHECK(value.find("missing") == nullptr);
  CHECK(value.find("t")->find("x") == nullptr);
}

TEST_CASE("a document may be a scalar") {
  CHECK(JsonValue::parse(" 1.0 ").number_text() == "1.0");
  CHECK(JsonValue::parse("\"x\\n\"").as_string() == "x\n");
  CHECK(JsonValue::parse("null").is_null());
  CHECK(JsonValue::parse("false\n").as_boolean() == false);
}

TEST_CASE("minified text keeps order and spelling and normalises the rest") {
  struct Pair {
    const char* text;
    const char* minified;
  };

  for (const Pair& pair : std::vector<Pair>{
           {"{ \"b\" : 1 , \"a\" : [ ] }", "{\"b\":1,\"a\":[]}"},
           {"[1,1.0,1e0,1E+0,-0,0.10,12345678901234567890123]",
            "[1,1.0,1e0,1E+0,-0,0.10,12345678901234567890123]"},
           {R"(["\u0041\/\u00e9\ud83d\ude00\u001f\u000a"])", "[\"A/é😀\\u001f\\n\"]"},
           {R"({"\u0061":1})", R"({"a":1})"},
           {"[true,false,null]", "[true,false,null]"},
       }) {
    CAPTURE(pair.text);
    CHECK(JsonValue::parse(pair.text).minified() == pair.minified);
    CHECK(JsonValue::parse(JsonValue::parse(pair.text).minified()).minified() == pair.minified);
  }
}

TEST_CASE("of duplicate keys the last value wins in the place of the first") {
  CHECK(JsonValue::parse(R"({"a":1,"b":2,"a":3})").minified() == R"({"a":3,"b":2})");
  std::string many = "{";
  std::string expected = "{";
  for (int i = 0; i < 50; ++i) {
    many += "\"k" + std::to_string(i) + "\":0,";
    expected += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + (i == 20 ? "9" : "0");
  }
  CHECK(JsonValue::parse(many + "\"k20\":9}").minified() == expected + "}");
}

TEST_CASE("duplicate keys are an error, at the second, where they are forbidden") {
  const JsonLimits limits{.unique_keys = true};
  const auto offset = [&](std::string_view text) -> std::optional<std::size_t> {
    try {
      (void)JsonValue::parse(text, limits);
      return std::nullopt;
    } catch (const ParseError& error) {
      CHECK(std::string(error.what()).starts_with("duplicate key \"a\""));
      return error.offset;
    }
  };
  CHECK(offset(R"({"a":1,"b":2,"a":3})") == 13);
  CHECK(offset(R"( [{"b":{"a":1, "\u0061":3}}])") == 15);
  CHECK_FALSE(offset(R"([{"a":1},{"a":{"a":2}}])"));
  std::string many = "{\"a\":0";
  for (int i = 0; i < 50; ++i)
    many += ",\"k" + std::to_string(i) + "\":0";
  CHECK_FALSE(offset(many + "}"));
  CHECK(offset(many + ",\"a\":0}") == many.size() + 1);
}

TEST_CASE("numbers become integers only when they are") {
  const auto integer = [](const char* text) { return JsonValue::parse(text).as_integer(); };
  CHECK(integer("0") == 0);
  CHECK(integer("-0") == 0);
  CHECK(integer("3.0") == 3);
  CHECK(integer("3e2") == 300);
  CHECK(integer("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(integer("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK_FALSE(integer("9223372036854775808"));
  CHECK_FALSE(integer("3.5"));
  CHECK_FALSE(integer("1e30"));
  CHECK_FALSE(integer("1e999999999999"));
  CHECK_FALSE(integer("true"));
  CHECK_FALSE(integer("\"3\""));
}

TEST_CASE("numbers become the nearest double, or an infinity or zero beyond the range") {
  const auto number = [](const std::string& text) { return *JsonValue::parse(text).as_double(); };
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(number("0.1") == 0.1);
  CHECK(number("5e-324") == 5e-324);
  CHECK(number("1e999") == infinite);
  CHECK(number("-1e999") == -infinite);
  CHECK(number("1e-999") == 0);
  CHECK(number("1" + std::string(400, '0')) == infinite);
  CHECK(number("0." + std::string(400, '0') + "1") == 0);
  CHECK_FALSE(JsonValue::parse("null").as_double());
}

TEST_CASE("nesting is limited") {
  const auto nested = [](int levels, const std::string& inside) {
    std::string text;
    for (int i = 0; i < levels; ++i)
      text += i % 2 == 0 ? "[" : "{\"a\":";
    text += inside;
    for (int i = levels - 1; i >= 0; --i)
      text += i % 2 == 0 ? "]" : "}";
    return text;
  };
  CHECK(refused_at(nested(200, "1")) == -1);
  CHECK(refused_at(nested(201, "1")) == 100 * 6);
  CHECK(refused_at(nested(3, "1"), {.depth = 2}) == 6);
  CHECK(refused_at(nested(200, "\"\\ud83d\\ude00\"")) == -1);
  CHECK(refused_at(nested(201, "\"\\ud83d\\ude00\"")) == 600);
  CHECK(refused_at(std::string(1'000'000, '[')) == 200);
  CHECK(refused_at(std::string(1'000'000, '{')) == 1);
}

TEST_CASE("the number of values is limited") {
  CHECK(refused_at("[1,2,3]", {.values = 3}) == -1);
  try {
    (void)JsonValue::parse("[1,2,3,4]", {.values = 3});
    FAIL("parsed");
  } catch (const ParseError& error) {
    CHECK(std::string(error.what()) == "more than 3 values");
  }
}

TEST_CASE("damaged documents are refused or parse into what they print") {
  const std::string good =
      R"({"a":[1,2.5e-3,"x\u00e9\n",{"b":null,"c":[true,false,[]]}],"d":{"":"\ud83d\ude00"},"e":-0.0})";
  REQUIRE(refused_at(good) == -1);
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK(refused_at(std::string_view(good).substr(0, length)) >= 0);
  }
  std::mt19937 random(11);
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned hit = 0; hit <= random() % 2; ++hit) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = static_cast<char>(random() % 256);
      } else {
        text.erase(at, 1 + random() % 3);
      }
    }
    try {
      const JsonValue value = JsonValue::parse(text);
      CHECK(JsonValue::parse(value.minified()) == value);
      ++parsed;
    } catch (const ParseError& error) {
      CHECK(error.offset <= text.size());
    }
  }
  CHECK(parsed > 500);
}

TEST_CASE("values can be made by hand") {
  const JsonValue made = JsonValue::object(
      {{"s", JsonValue::string("x")},
       {"l", JsonValue::array({JsonValue::number("1.0"), JsonValue::boolean(true), JsonValue()})}});
  CHECK(made.minified() == R"({"s":"x","l":[1.0,true,null]})");
  CHECK(made == JsonValue::parse(R"({"s":"x","l":[1.0,true,null]})"));
  CHECK_FALSE(made == JsonValue::parse(R"({"l":[1.0,true,null],"s":"x"})"));
}

}  // namespace
}  // namespace incipit
