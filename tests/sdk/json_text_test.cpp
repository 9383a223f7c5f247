#include "incipit/json.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit {
namespace {

TEST_CASE("a document is kept byte for byte, white space around it apart") {
  CHECK(JsonText(" \n{ \"b\":1.50,\"a\" : [ ] }\t").text() == "{ \"b\":1.50,\"a\" : [ ] }");
  CHECK(JsonText("null").text() == "null");
  CHECK(JsonText("{}").is_object());
  CHECK_FALSE(JsonText("[]").is_object());
  CHECK(JsonText("{\"a\":1}") != JsonText("{\"a\": 1}"));
  CHECK(JsonText("{\"a\": 1}").value() == JsonText("{\"a\":1}").value());
  CHECK(JsonText().empty());
  CHECK(JsonText().value().is_null());
  CHECK(JsonText(JsonValue::parse("{\"a\": [1.0]}")).text() == "{\"a\":[1.0]}");
}

TEST_CASE("what is not one strict JSON document in UTF-8 is refused with the offset") {
  struct Case {
    std::string text;
    std::size_t offset;
  };

  for (const Case& one : std::vector<Case>{
           {"", 0},
           {"  ", 2},
           {"{\"a\":\"\xff\"}", 6},
           {"{\"\xC3\":1}", 2},
           {"\"\xED\xA0\x80\"", 1},
           {"\"\\ud800\"", 1},
           {"{} {}", 3},
           {"[1] x", 4},
           {"1 2", 2},
           {"{\"a\":01}", 6},
           {"[1,]", 3},
           {"{'a':1}", 1},
           {"[NaN]", 1},
           {"\xEF\xBB\xBF{}", 0},
           {"\"a\nb\"", 2},
       }) {
    CAPTURE(one.text);
    try {
      (void)JsonText(one.text);
      FAIL_CHECK("was not refused");
    } catch (const ParseError& error) {
      CHECK(error.offset == one.offset);
    }
  }
}

}  // namespace
}  // namespace incipit
