// What an outside project does with the SDK, without a network. Ends with 1 on a wrong result.
#include <incipit/incipit.h>

#include <cstdio>
#include <string>

namespace {

bool broken = false;

void expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "consumer: %s\n", what);
  broken = true;
}

void json() {
  const incipit::JsonValue value = incipit::JsonValue::parse(R"({"b": 1.50, "a": "\u00e9"})");
  expect(value.minified() == "{\"b\":1.50,\"a\":\"\xc3\xa9\"}", "JSON loses order or spelling");
  std::string out;
  incipit::JsonWriter(out).begin_array().integer(1).string("\"").end_array();
  expect(out == R"([1,"\""])", "JsonWriter writes something else");
}

// List prices per million tokens: 3 plain, 3.75 written, 0.30 read, 15 out.
void cost() {
  const incipit::Usage usage{.input_tokens = 100,
                             .cache_creation_5m = 1000,
                             .cache_read_input_tokens = 2000,
                             .output_tokens = 10};
  const auto price = incipit::cost(usage, "claude-sonnet-4-6");
  expect(price && price->text() == "$0.0048", "usage costs something else");
  expect(!incipit::cost(usage, "claude-none"), "an unknown model has a price");
}

// Across the border of the library, and (in one of the projects) without RTTI.
void exceptions() {
  try {
    (void)incipit::JsonText("{\"a\":}");
    expect(false, "bad JSON is taken");
  } catch (const incipit::ParseError& error) {
    expect(error.offset == 5, "a ParseError points elsewhere");
  }
}

}  // namespace

int main() {
  json();
  cost();
  exceptions();
  return broken ? 1 : 0;
}
