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

void prompt() {
  incipit::Prompt prompt("claude-sonnet-4-6");
  prompt.system("Rules").breakpoint(incipit::Ttl::one_hour).user("Hello");
  expect(incipit::to_json(prompt.request({.max_tokens = 9}))
             == R"({"model":"claude-sonnet-4-6","max_tokens":9,)"
                R"("system":[{"type":"text","text":"Rules",)"
                R"("cache_control":{"type":"ephemeral","ttl":"1h"}}],)"
                R"("messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]})",
         "a prompt has other bytes");
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

// Errors cross the border of the library; one of the projects has no RTTI.
void errors() {
  try {
    (void)incipit::JsonText("{\"a\":}");
    expect(false, "bad JSON is taken");
  } catch (const incipit::ParseError& error) {
    expect(error.offset == 5, "a ParseError points elsewhere");
  }
  try {  // through curl, to a port where nobody listens
    const incipit::Client client(
        {.api_key = "any", .base_url = "http://127.0.0.1:1", .max_retries = 0});
    (void)client.call("GET", "/v1/models");
    expect(false, "nobody answers");
  } catch (const incipit::TransportError& error) {
    expect(error.kind == incipit::TransportError::Kind::connect,
           "a TransportError of another kind");
  }
}

}  // namespace

int main() {
  json();
  prompt();
  cost();
  errors();
  return broken ? 1 : 0;
}
