// Beginnings of documents (anthropic-wire section 19.4), and places in whole ones.
#include "incipit/json.h"
#include "sdk/src/json_slices.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

std::string shown(const std::string& beginning) {
  return parse_partial_json(beginning).minified();
}

TEST_CASE("what is open is closed, and what is unfinished left out") {
  struct Case {
    std::string beginning, value;
  };

  for (const Case& one : std::vector<Case>{
           {"", "null"},
           {" \n", "null"},
           {"{", "{}"},
           {R"({"a)", "{}"},
           {R"({"a")", "{}"},
           {R"({"a" :)", "{}"},
           {R"({"a":")", R"({"a":""})"},
           {R"({"a":"x)", R"({"a":"x"})"},
           {R"({"a":"x\)", R"({"a":"x"})"},
           {R"({"a":"x\u00e)", R"({"a":"x"})"},
           {R"({"a":"x\ud83d)", R"({"a":"x"})"},
           {R"({"a":"x\ud83d\)", R"({"a":"x"})"},
           {R"({"a":"x\ud83d\ude0)", R"({"a":"x"})"},
           {R"({"a":"x\ud83d\ude00)", R"({"a":"x😀"})"},
           {"{\"a\":\"x\xF0\x9F\x98", R"({"a":"x"})"},
           {R"({"a":1,)", R"({"a":1})"},
           {R"({"a":1,"b":{"c":[1,[2,)", R"({"a":1,"b":{"c":[1,[2]]}})"},
           {"[1", "[1]"},
           {"[1.", "[]"},
           {"[12,1.5e", "[12]"},
           {"[12,-", "[12]"},
           {"[1e+", "[]"},
           {"[true,fals", "[true]"},
           {"[true", "[true]"},
           {"nul", "null"},
           {"-", "null"},
           {"12", "12"},
           {R"("abc)", R"("abc")"},
           {R"({"a":[]}  )", R"({"a":[]})"},
       }) {
    CAPTURE(one.beginning);
    CHECK(shown(one.beginning) == one.value);
  }
}

TEST_CASE("what no continuation can make JSON is refused with the offset") {
  struct Case {
    std::string text;
    std::size_t offset;
  };

  for (const Case& one : std::vector<Case>{
           {"}", 0},
           {"{a", 1},
           {"{\"a\"5", 4},
           {"[1,,", 3},
           {"[1,]", 3},
           {"{\"a\":1,}", 7},
           {"[1}", 2},
           {"[1 2", 3},
           {"{} x", 3},
           {"[trx", 1},
           {"[01", 1},
           {"[1.x", 1},
           {"[--", 1},
           {"[\"a\nb", 3},
           {"[\"\\x", 2},
           {"[\"\\ude00", 2},
           {"[\"\xff", 2},
           {"[\"\xE2\x28", 2},
       }) {
    CAPTURE(one.text);
    try {
      (void)parse_partial_json(one.text);
      FAIL_CHECK("was not refused");
    } catch (const ParseError& error) {
      CHECK(error.offset == one.offset);
    }
  }
}

TEST_CASE("every beginning of a document is shown, and the whole document is itself") {
  for (
      const std::string& document : std::vector<std::string>{
          R"({"path":"a\\b\"\u00e9\n\ud83d\ude00","n":[0,-1.50e-3,12E+4,true,false,null],"e":{},"s":""})",
          "{\"é\xF0\x9F\x98\x80\" : [ \"grüße 世界\" , [ [ ] , { \"a\" : { } } ] ] }",
          R"([{"city":"Oslo","days":3},{"city":"Rome","days":-0.25}])",
          R"("just \u0074ext 😀")",
          "-12.5e+10",
          "  true ",
      }) {
    for (std::size_t length = 0; length <= document.size(); ++length) {
      CAPTURE(document.substr(0, length));
      CHECK_NOTHROW((void)parse_partial_json(document.substr(0, length)));
    }
    CHECK(parse_partial_json(document) == JsonValue::parse(document));
  }
}

TEST_CASE("nesting has the limit of whole documents") {
  CHECK_NOTHROW((void)parse_partial_json(std::string(200, '[')));
  CHECK_THROWS_AS((void)parse_partial_json(std::string(201, '[')), ParseError);
  CHECK_THROWS_AS((void)parse_partial_json(std::string(100'000, '[')), ParseError);
}

TEST_CASE("json_offset finds the value at a path") {
  const std::string json =
      R"( {"a": [10, {"b.c": "x", "b": {"c": 7}}], "\u0064": [ ], "a.b": 1, "": 2} )";
  const auto at = [&](std::string_view path) { return json.substr(json_offset(json, path), 4); };
  CHECK(json_offset(json, "") == 1);
  CHECK(at("a") == "[10,");
  CHECK(at("a.0") == "10, ");
  CHECK(at("a.1") == R"({"b.)");
  CHECK(at("a.1.b.c") == R"("x",)");  // the longest name that fits
  CHECK(at("d") == "[ ],");
  CHECK(at("a.b") == "1, \"");
  // Of a path that leads nowhere: the last value on the way.
  CHECK(at("a.1.b.x") == R"({"c")");
  CHECK(at("a.9") == "[10,");
  CHECK(at("a.x") == "[10,");
  CHECK(at("a.0.y") == "10, ");
  CHECK(json_offset(json, "zzz") == 1);
  CHECK(json_offset("", "a") == 0);
  CHECK(json_offset("  ", "a") == 0);
}

TEST_CASE("a document in slices") {
  const std::string json = R"( [ {"k\"]": "v,}" , "n":-1.5e3},[ ] ,"\\", null])";
  const auto items = json_items(std::string_view(json).substr(1));
  REQUIRE(items.size() == 4);
  CHECK(items[0] == R"({"k\"]": "v,}" , "n":-1.5e3})");
  CHECK(items[1] == "[ ]");
  CHECK(items[2] == R"("\\")");
  CHECK(items[3] == "null");
  const auto members = json_members(items[0]);
  REQUIRE(members.size() == 2);
  CHECK(members[0].is_named("k\"]"));
  CHECK(members[0].value == R"("v,}")");
  CHECK(members[0].text() == R"("k\"]": "v,}")");
  CHECK(members[1].key == R"("n")");
  CHECK(members[1].value == "-1.5e3");
  CHECK(json_items(items[1]).empty());
  CHECK(json_members(items[1]).empty());
  CHECK(json_inside(items[1]).empty());
  CHECK(json_inside(R"({ "a" : 1 })") == R"("a" : 1)");
}

TEST_CASE("members are taken out with one comma") {
  CHECK(json_without(R"({"x":1,"a":2})", "x") == R"({"a":2})");
  CHECK(json_without(R"({ "a":2 , "x":[1,2] })", "x") == R"({ "a":2 })");
  CHECK(json_without(R"({"a":2, "x":1, "b" : 3})", "x") == R"({"a":2, "b" : 3})");
  CHECK(json_without(R"({"x":1,"x":2,"a":0,"\u0078":3})", "x") == R"({"a":0})");
  CHECK(json_without(R"({"x":1})", "x") == "{}");
  CHECK(json_without(R"({ })", "x") == "{ }");
  CHECK(json_without(R"({"a":{"x":1}})", "x") == R"({"a":{"x":1}})");
}

TEST_CASE("slices of text that is not JSON stay within it") {
  const std::string json = R"({"a":[1,"b\"",{"c":null}],"d":"\ud83d\ude00"})";
  for (std::size_t from = 0; from <= json.size(); ++from) {
    for (std::size_t to = from; to <= json.size(); ++to) {
      // A copy of its own, so that a sanitizer sees a step beyond it.
      const std::string part = json.substr(from, to - from);
      (void)json_members(part);
      (void)json_items(part);
      (void)json_inside(part);
      (void)json_unescaped(part);
      (void)json_without(part, "a");
      (void)json_offset(part, "a.2.c");
    }
  }
}

}  // namespace
}  // namespace incipit
