#include "gateway/constrain/constraint.h"
#include "tests/constrain/vocabularies.h"

#include <doctest/doctest.h>

#include <optional>
#include <string_view>

namespace incipit::constrain {
namespace {

std::shared_ptr<const CompiledShape> compile(const Shape& shape) {
  static const auto bytes = byte_vocabulary();
  return std::make_shared<const CompiledShape>(shape, bytes);
}

Shape schema(std::string_view text, Dialect dialect = Dialect::strict) {
  return Shape::schema(JsonValue::parse(text), dialect);
}

// Where the first byte stands that cannot follow; the length when the text may not end there;
// nothing when it is a whole value.
std::optional<std::size_t> fault(const Shape& shape, std::string_view text) {
  Constraint constraint(compile(shape));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!constraint.advance(static_cast<unsigned char>(text[i]))) return i;
  }
  if (constraint.end_allowed()) return std::nullopt;
  return text.size();
}

struct Case {
  const char* schema;
  std::vector<std::string_view> valid;
  // With the byte at which each goes wrong.
  std::vector<std::pair<std::string_view, std::size_t>> invalid;
};

void check(const std::vector<Case>& cases, Dialect dialect = Dialect::strict) {
  for (const Case& c : cases) {
    CAPTURE(c.schema);
    const Shape shape = schema(c.schema, dialect);
    for (const std::string_view text : c.valid) {
      CAPTURE(std::string(text));
      CHECK(fault(shape, text) == std::nullopt);
    }
    for (const auto& [text, at] : c.invalid) {
      CAPTURE(std::string(text));
      CHECK(fault(shape, text) == at);
    }
  }
}

TEST_CASE("types allow their values and nothing else") {
  check({
      {R"({"type": "null"})", {"null"}, {{"nul", 3}, {"Null", 0}, {"nullx", 4}, {" null", 0}}},
      {R"({"type": "boolean"})", {"true", "false"}, {{"tru", 3}, {"1", 0}}},
      {R"({"type": "integer"})",
       {"0", "7", "-7", "123456789012345", "-123456789012345"},
       {{"-0", 1},
        {"01", 1},
        {"1.0", 1},
        {"1e2", 1},
        {"+1", 0},
        {"-", 1},
        {"1234567890123456", 15}}},
      {R"({"type": "number"})",
       {"0", "-1", "0.5", "-0.5", "12.25", "1e5", "1E-7", "2.5e+10", "0e0", "100.000000000000001"},
       {{"-0", 2},
        {"-0e1", 2},
        {".5", 0},
        {"1.", 2},
        {"1.e3", 2},
        {"1e", 2},
        {"1e100", 4},
        {"00", 1},
        {"0.1234567890123456", 17},
        {"NaN", 0},
        {"Infinity", 0}}},
      {R"({"type": ["string", "null"]})", {"null", "\"\"", "\"x\""}, {{"1", 0}, {"nil", 1}}},
      {R"({"type": ["integer", "number"]})", {"1", "1.5"}, {{"\"", 0}}},
  });
}

TEST_CASE("strings are any JSON strings of well-formed UTF-8") {
  check({{R"({"type": "string"})",
          {"\"\"", "\"abc\"", "\"\x7F\"", "\"/\"", R"("\"\\\/\b\f\n\r\t")",
           R"("\u0041\u00e9\uFFFF")", R"("\ud83d\ude00")", R"("\uD83D\uDE00 and \u0000")",
           "\"é漢😀\"", "\"\xF4\x8F\xBF\xBF\"", "\"\xED\x9F\xBF\xEE\x80\x80\"", "\"{[]}: ,\""},
          {{"abc", 0},
           {"\"a\nb\"", 2},
           {std::string_view("\"\0\"", 3), 1},
           {"\"\x1F\"", 1},
           {R"("\x")", 2},
           {R"("\u12G4")", 5},
           {R"("\ud83d")", 7},
           {R"("\ud83dx")", 7},
           {R"("\ud83d\n")", 8},
           {R"("\ud83d\u0041")", 9},
           {R"("\ude00")", 4},
           {"\"\x80\"", 1},
           {"\"\xC0\xAF\"", 1},
           {"\"\xC3\"", 2},
           {"\"\xE0\x9F\x80\"", 2},
           {"\"\xED\xA0\x80\"", 2},
           {"\"\xF0\x8F\x80\x80\"", 2},
           {"\"\xF4\x90\x80\x80\"", 2},
           {"\"\xF5\"", 1},
           {"\"abc", 4}}}});
}

// The valid ones: examples of the RFCs, and cases at the edges of their rules.
TEST_CASE("formats allow what their RFCs say") {
  check({
      {R"({"type": "string", "format": "date"})",
       {R"("2024-02-29")", R"("2000-02-29")", R"("1999-12-31")", R"("0001-01-01")",
        R"("2023-04-30")", R"("0400-02-29")"},
       {{R"("2023-02-29")", 10},
        {R"("1900-02-29")", 10},
        {R"("2023-04-31")", 10},
        {R"("2023-13-01")", 7},
        {R"("2023-00-01")", 7},
        {R"("2023-01-00")", 10},
        {R"("2023-1-1")", 7},
        {R"("0000-01-01")", 4}}},
      {R"({"type": "string", "format": "time"})",
       {R"("20:20:39+00:00")", R"("08:30:06Z")", R"("23:59:59.123456789-12:30")"},
       {{R"("24:00:00Z")", 2},
        {R"("12:60:00Z")", 4},
        {R"("12:00:60Z")", 7},
        {R"("12:00:00")", 9},
        {R"("12:00:00.Z")", 10},
        {R"("12:00:00+24:00")", 11}}},
      {R"({"type": "string", "format": "date-time"})",
       {R"("1985-04-12T23:20:50.52Z")", R"("1996-12-19T16:39:57-08:00")",
        R"("2024-02-29T00:00:00Z")"},
       {{R"("2024-02-30T00:00:00Z")", 9},
        {R"("2024-02-29 00:00:00Z")", 11},
        {R"("2024-02-29T00:00:00")", 20}}},
      {R"({"type": "string", "format": "duration"})",
       {R"("P3Y6M4DT12H30M5S")", R"("P1W")", R"("PT0S")", R"("P1M")", R"("PT1M")", R"("P1DT2H")"},
       {{R"("P")", 2},
        {R"("PT")", 3},
        {R"("P1Y2D")", 5},
        {R"("PT1H2S")", 6},
        {R"("P1H")", 3},
        {R"("1Y")", 1},
        {R"("P1W1D")", 4}}},
      {R"({"type": "string", "format": "email"})",
       {R"("a@b.co")", R"("first.last+tag@sub.example.com")", R"("o'hara@example.ie")",
        R"("x_y-z@my-host.org")"},
       {{R"("@b.co")", 1},
        {R"(".a@b.co")", 1},
        {R"("a..b@c.de")", 3},
        {R"("a.@b.co")", 3},
        {R"("a@b")", 4},
        {R"("a@-b.co")", 3},
        {R"("a@b.c")", 6},
        {R"("a b@c.de")", 2}}},
      {R"({"type": "string", "format": "hostname"})",
       {R"("localhost")", R"("www.example.com")", R"("3com.net")", R"("a-b.c")"},
       {{R"("-a.com")", 1},
        {R"("a-.com")", 3},
        {R"("a..b")", 3},
        {R"("a_b")", 2},
        {R"("")", 1},
        {R"("a.")", 3}}},
      {R"({"type": "string", "format": "uri"})",
       {R"("https://example.com")", R"("http://localhost:8080/a/b%20c?q=1&r=2#top")",
        R"("mailto:John.Doe@example.com")",
        R"("urn:oasis:names:specification:docbook:dtd:xml:4.1.2")", R"("tel:+1-816-555-1212")",
        R"("file:///etc/hosts")", R"("ftp://ftp.is.co.za/rfc/rfc1808.txt")",
        R"("http://192.168.0.1/")", R"("git+ssh://host.xz:22/path")"},
       {{R"("example.com")", 12},
        {R"("/relative")", 1},
        {R"("http://")", 8},
        {R"("http://a b")", 9},
        {R"("http://a/%G0")", 11},
        {R"("http://a.b/{x}")", 12},
        {R"("1http://a")", 1},
        {R"("http://a:99999")", 14}}},
      {R"({"type": "string", "format": "ipv4"})",
       {R"("127.0.0.1")", R"("255.255.255.255")", R"("0.0.0.0")", R"("192.168.10.99")"},
       {{R"("256.0.0.1")", 3}, {R"("01.2.3.4")", 2}, {R"("1.2.3")", 6}, {R"("1.2.3.4.5")", 8}}},
      {R"({"type": "string", "format": "ipv6"})",
       {R"("::")", R"("::1")", R"("2001:db8::ff00:42:8329")", R"("1:2:3:4:5:6:7:8")",
        R"("FE80::0202:B3FF:FE1E:8329")", R"("1::")", R"("1:2:3:4:5:6:7::")",
        R"("::2:3:4:5:6:7:8")"},
       {{R"(":1")", 2},
        {R"("1:2")", 4},
        {R"("12345::")", 5},
        {R"("1::2::3")", 6},
        {R"("1:2:3:4:5:6:7:8:9")", 16},
        {R"("g::")", 1}}},
      {R"({"type": "string", "format": "uuid"})",
       {R"("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")", R"("F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6")"},
       {{R"("f81d4fae7dec-11d0-a765-00a0c91e6bf6")", 9},
        {R"("f81d4fae-7dec-11d0-a765-00a0c91e6bf")", 36}}},
  });
}

TEST_CASE("objects have their properties in the order of the schema and no others") {
  check({
      {R"({"type": "object", "properties": {}, "additionalProperties": false})",
       {"{}"},
       {{"{ }", 1}, {"{\"a\"", 1}, {"[]", 0}}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"},
           "c": {"type": "null"}}, "required": ["b"], "additionalProperties": false})",
       {R"({"b":""})", R"({"a":1,"b":"x"})", R"({"a": 1, "b": "x", "c": null})",
        R"({"b": "x","c":null})"},
       {{"{}", 1},
        {R"({"c":null})", 2},
        {R"({"a":1})", 6},
        {R"({"a":1,"c":null,"b":""})", 8},
        {R"({"b":"","a":1})", 9},
        {R"({"b":"","b":""})", 9},
        {R"({"b":"","d":1})", 9},
        {R"({"a":1,})", 7},
        {R"({"a":  1,"b":""})", 6},
        {R"({"a" :1,"b":""})", 4},
        {"{\"a\":\n1", 5},
        {R"({,"b":""})", 1},
        {R"({"b":"x" })", 8}}},
      {R"({"type": "object", "properties": {"a": {"type": "null"}, "ab": {"type": "null"}},
           "additionalProperties": false})",
       {"{}", R"({"a":null})", R"({"ab":null})", R"({"a":null,"ab":null})"},
       {{R"({"b":null})", 2}, {R"({"ab":null,"a":null})", 10}}},
      {R"({"type": "object", "properties": {"q\"\\/é\n": {"type": "null"}},
           "additionalProperties": false})",
       {R"({"q\"\\/é\n":null})"},
       {{R"({"q\"\\\/")", 7}}},
  });
}

TEST_CASE("arrays have items, and one at least where the schema says so") {
  check({
      {R"({"type": "array", "items": {"type": "integer"}})",
       {"[]", "[1]", "[1,2, 3]"},
       {{"[1,]", 3}, {"[,1]", 1}, {"[ 1]", 1}, {"[1 ,2]", 2}, {"[1,  2]", 4}, {"[\"a\"]", 1}}},
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 1})",
       {"[1]", "[1,2]"},
       {{"[]", 1}}},
      {R"({"type": "array", "items": {"type": "array", "items": {"type": "null"}}, "minItems": 0})",
       {"[]", "[[]]", "[[null],[], [null, null]]"},
       {{"[null]", 1}}},
      {R"({"type": "array"})", {"[]", R"([1, "a", null, {"b": [true]}])"}, {{"[x]", 1}}},
  });
}

TEST_CASE("enum, const, anyOf, allOf and $ref") {
  check({
      {R"({"enum": ["a", "ab", 1, 12.5, null, true, "é\"\u0001"]})",
       {"\"a\"", "\"ab\"", "1", "12.5", "null", "true", R"("é\"\u0001")"},
       {{"\"b\"", 1}, {"\"abc\"", 3}, {"12", 2}, {"2", 0}, {"false", 0}, {R"("\u00e9)", 1}}},
      {R"({"type": "string", "enum": ["a", 1]})", {"\"a\""}, {{"1", 0}}},
      {R"({"type": "string", "format": "date", "enum": ["2024-01-01", "soon"]})",
       {"\"2024-01-01\""},
       {{"\"soon\"", 1}}},
      {R"({"const": {"a": [1, {"b": null}]}})",
       {R"({"a":[1,{"b":null}]})", R"({"a": [1, {"b": null}]})"},
       {{R"({"b")", 2}}},
      {R"({"enum": ["a", "b"], "const": "b"})", {"\"b\""}, {{"\"a\"", 1}}},
      {R"({"anyOf": [{"type": "integer"}, {"const": "auto"}, {"type": "string", "format": "uuid"}]})",
       {"1", "\"auto\"", R"("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")"},
       {{"null", 0}, {"\"x\"", 1}}},
      {R"({"anyOf": [{"type": "object", "properties": {"t": {"const": "a"}, "n": {"type": "integer"}},
                      "required": ["t", "n"], "additionalProperties": false},
                     {"type": "object", "properties": {"t": {"const": "b"}, "s": {"type": "string"}},
                      "required": ["t", "s"], "additionalProperties": false}]})",
       {R"({"t": "a", "n": 1})", R"({"t": "b", "s": ""})"},
       {{R"({"t": "a", "s": ""})", 12}}},
      {R"({"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]})",
       {"1"},
       {{"\"", 0}, {"null", 0}}},
      {R"({"allOf": [{"type": "number"}, {"type": "integer"}]})", {"1"}, {{"1.5", 1}}},
      {R"({"allOf": [{"type": "object", "properties": {"a": {"type": ["string", "null"]},
                      "b": {"type": "null"}}, "additionalProperties": false},
                     {"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "required": ["a"]}]})",
       {R"({"a":"x"})", R"({"a":"x","b":null})"},
       {{"{}", 1}, {R"({"a":null})", 5}, {R"({"a":1})", 5}}},
      {R"({"type": ["string", "null"], "anyOf": [{"enum": ["a", 1]}, {"type": ["null", "integer"]}]})",
       {"\"a\"", "null"},
       {{"1", 0}}},
      {R"({"$defs": {"p": {"type": "array", "items": {"$ref": "#/$defs/q~1r"}}, "q/r": {"type": "null"}},
           "type": "object", "properties": {"x": {"$ref": "#/$defs/p", "description": "d"},
           "y": {"$ref": "#/$defs/p"}}, "required": ["x", "y"], "additionalProperties": false})",
       {R"({"x":[null],"y":[]})"},
       {{R"({"x":[1])", 6}}},
      {R"({"$defs": {"a b": {"type": "null"}}, "$ref": "#/%24defs/a%20b"})", {"null"}, {{"1", 0}}},
      {R"({"definitions": {"n": {"type": "null"}}, "$ref": "#/definitions/n"})", {"null"}, {}},
      {R"({"title": "T", "description": "d", "default": 1, "examples": [1], "$comment": "c",
           "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "null"})",
       {"null"},
       {}},
  });
}

TEST_CASE("a lenient schema may leave objects open and values free, what is written is valid") {
  check(
      {
          {R"({"type": "object", "properties": {"a": {"type": "string"}}})",
           {"{}", R"({"a":""})"},
           {{R"({"b":1})", 2}, {R"({"a":1})", 5}}},
          {R"({"type": "object"})",
           {"{}", R"({"x": 1, "y": {"z": [[]]}})"},
           {{"[]", 0}, {R"({"x"})", 4}}},
          {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
           {"{}", R"({"x": 1, "y":2})"},
           {{R"({"x": ""})", 6}}},
          {R"({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"],
               "additionalProperties": {"type": "integer"}})",
           {R"({"a":null,"b":1})", R"({"b":1})"},
           {{"{}", 1}, {R"({"b":"")", 5}}},
          {R"({"properties": {"a": true}, "required": ["a"]})",
           {R"({"a":1})", R"({"a":{"b":[{"c":[1]}]}})"},
           {{"1", 0}, {R"({"a":{"b":[{"c":[[1]]}]}})", 17}}},
          {"{}", {"null", "[[[[1]]]]", R"({"a":{"b":{"c":{"d":1}}}})", "-12.5"}, {{"[[[[[", 4}}},
          {R"({"type": "string", "format": "password", "x-order": 3})", {"\"anything\""}, {}},
          {R"({"type": "number", "format": "double"})", {"1.5"}, {}},
          {R"({"type": "array", "items": true})", {"[1,\"a\"]"}, {}},
          {R"({"enum": [[1], {"a": 2}]})", {"[1]", R"({"a":2})"}, {{"[2]", 1}}},
      },
      Dialect::lenient);
}

TEST_CASE("a forced call of one of several tools, in the families' formats") {
  const auto call = [](const char* name, const char* arguments) {
    return Shape::sequence(
        {Shape::literal("<tool_call>\n{\"name\": \"" + std::string(name) + "\", \"arguments\": "),
         schema(arguments), Shape::literal("}\n</tool_call>")});
  };
  const Shape tools = Shape::any_of(
      {call("get",
            R"({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                       "additionalProperties": false})"),
       call("get_all", R"({"type": "object", "properties": {}, "additionalProperties": false})")});
  const std::string get =
      "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": 1}}\n</tool_call>";
  const std::string all = "<tool_call>\n{\"name\": \"get_all\", \"arguments\": {}}\n</tool_call>";
  CHECK(fault(tools, get) == std::nullopt);
  CHECK(fault(tools, all) == std::nullopt);
  CHECK(fault(tools, "<tool_call>\n{\"name\": \"set") == 22);
  CHECK(fault(tools, "Let me") == 0);
  CHECK(fault(tools, get + "\n") == get.size());

  const Shape several = Shape::repeated(tools, "\n", 1, std::nullopt);
  CHECK(fault(several, get) == std::nullopt);
  CHECK(fault(several, get + "\n" + all + "\n" + get) == std::nullopt);
  CHECK(fault(several, get + "\n") == get.size() + 1);

  const Shape at_most_two = Shape::repeated(tools, "\n", 0, 2);
  CHECK(fault(at_most_two, "") == std::nullopt);
  CHECK(fault(at_most_two, get + "\n" + get) == std::nullopt);
  CHECK(fault(at_most_two, get + "\n" + get + "\n") == 2 * get.size() + 1);

  const Shape llama = Shape::sequence(
      {Shape::literal(R"({"name": "f", "parameters": )"),
       schema(R"({"type": "object", "properties": {}, "additionalProperties": false})"),
       Shape::literal("}")});
  CHECK(fault(llama, R"({"name": "f", "parameters": {}})") == std::nullopt);
  CHECK(fault(llama, R"({"name": "f", "parameters": {}}.)") == 31);
}

TEST_CASE("text is free until a trigger, and again behind what it stands for") {
  const Shape number =
      schema(R"({"type": "object", "properties": {}, "additionalProperties": false})");
  const Shape calls = Shape::free_until("<<a>", number, 0, std::nullopt);
  CHECK(fault(calls, "") == std::nullopt);
  CHECK(fault(calls, "any \xFF < <<b <<<a} text") == std::nullopt);
  CHECK(fault(calls, "text <<a>{} more <<<a>{}") == std::nullopt);
  CHECK(fault(calls, "text <<a>x") == 9);
  CHECK(fault(calls, "text <<<<a>") == 11);
  CHECK(fault(calls, "<<a>{}<<a>x") == 10);

  const Shape one = Shape::free_until("<<a>", number, 0, 1);
  CHECK(fault(one, "text") == std::nullopt);
  CHECK(fault(one, "text <<a>{}") == std::nullopt);
  CHECK(fault(one, "text <<a>{} ") == 11);

  const Shape thoughts = Shape::free_until("</think>", number, 1, 1);
  CHECK(fault(thoughts, "hm") == 2);
  CHECK(fault(thoughts, "hm</think>{}") == std::nullopt);

  const Shape two = Shape::free_until("!", Shape::literal("."), 2, 3);
  CHECK(fault(two, "a!.b") == 4);
  CHECK(fault(two, "a!.b!.c") == std::nullopt);
  CHECK(fault(two, "!.!.!.") == std::nullopt);
  CHECK(fault(two, "!.!.!..") == 6);
}

}  // namespace
}  // namespace incipit::constrain
