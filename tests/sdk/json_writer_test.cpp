#include "incipit/json.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace incipit {
namespace {

std::string written(std::string_view text) {
  std::string out;
  JsonWriter(out).string(text);
  return out;
}

TEST_CASE("objects and arrays nest, with commas between members only") {
  std::string out = "data: ";
  JsonWriter writer(out);
  writer.begin_object();
  writer.key("z").string("last letter first").key("a").begin_array();
  writer.integer(1).begin_object().end_object().begin_array().end_array().null();
  writer.end_array().key("raw").raw("{\"k\": 1}").key("b").boolean(false);
  writer.key("n").number(0.5).end_object();
  CHECK(
      out
      == R"(data: {"z":"last letter first","a":[1,{},[],null],"raw":{"k": 1},"b":false,"n":0.5})");
}

TEST_CASE("strings escape what JSON demands and nothing else") {
  CHECK(written("") == "\"\"");
  CHECK(written("plain / text") == "\"plain / text\"");
  CHECK(written("\"\\") == R"("\"\\")");
  CHECK(written("\b\f\n\r\t") == R"("\b\f\n\r\t")");
  CHECK(written(std::string_view("\0\x01\x1f\x7f", 4)) == "\"\\u0000\\u0001\\u001f\x7f\"");
  CHECK(written("é😀\xE2\x80\xA8<>&'") == "\"é😀\xE2\x80\xA8<>&'\"");
}

TEST_CASE("ill-formed UTF-8 becomes U+FFFD as Python's decoder does it") {
  const std::string r = "\xEF\xBF\xBD";

  struct Pair {
    std::string bytes, expected;
  };

  // bytes.decode('utf-8', 'replace') of CPython.
  for (const Pair& pair : std::vector<Pair>{
           {"\xff", r},
           {"a\xc3", "a" + r},
           {"\xe2\x82", r},
           {"\xe2\x82x", r + "x"},
           {"\xf0\x9f\x98", r},
           {"\xed\xa0\x80", r + r + r},
           {"\xc0\xaf", r + r},
           {"\xf4\x90\x80\x80", r + r + r + r},
           {"\x80\x80", r + r},
           {"\xf0\x80\x80\x41", r + r + r + "A"},
           {"\xe0\x9f\xbf", r + r + r},
           {"\xc3\xa9", "é"},
           {"\xc3\"", r + "\\\""},
       }) {
    CAPTURE(pair.expected);
    CHECK(written(pair.bytes) == "\"" + pair.expected + "\"");
  }
}

TEST_CASE("keys are escaped like strings") {
  std::string out;
  JsonWriter(out).begin_object().key("a\"\n").integer(1).end_object();
  CHECK(out == R"({"a\"\n":1})");
}

TEST_CASE("integers are exact") {
  std::string out;
  JsonWriter(out)
      .begin_array()
      .integer(0)
      .integer(std::numeric_limits<std::int64_t>::min())
      .integer(std::numeric_limits<std::int64_t>::max())
      .end_array();
  CHECK(out == "[0,-9223372036854775808,9223372036854775807]");
}

TEST_CASE("doubles come out shortest and read back the same") {
  for (const double number : {0.1, 1.0 / 3, 1e21, 1e-7, 123456789012345680.0, 5e-324,
                              1.7976931348623157e308, 0.5, 100.0, -0.0, 2.0 / 3}) {
    std::string out;
    JsonWriter(out).number(number);
    CAPTURE(out);
    CHECK(JsonValue::parse(out).as_double() == number);
    CHECK(out.size() <= 23);
  }
  std::string out;
  JsonWriter(out).begin_array().number(0.1).number(100).number(1.0 / 3).end_array();
  CHECK(out == "[0.1,100,0.3333333333333333]");
}

TEST_CASE("numbers that JSON does not have are null") {
  std::string out;
  JsonWriter(out)
      .begin_array()
      .number(std::numeric_limits<double>::infinity())
      .number(std::numeric_limits<double>::quiet_NaN())
      .end_array();
  CHECK(out == "[null,null]");
}

}  // namespace
}  // namespace incipit
