// A unit test of what an application does with the cache, against a local gateway whose clock it
// moves: incipit serve --model tiny --virtual-clock
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <incipit/incipit.h>

#include <doctest/doctest.h>

#include <string>

namespace {

incipit::Usage ask(const incipit::Client& client, incipit::Ttl ttl) {
  incipit::Prompt prompt("claude-sonnet-4-6");
  const std::string name = ttl == incipit::Ttl::one_hour ? "an hour: " : "five minutes: ";
  prompt.system(name + std::string(8000, 'a')).breakpoint(ttl).user("Hello");
  return client.send(prompt.request({.max_tokens = 1})).usage;
}

// [advance]
void advance(const incipit::Client& client, int seconds) {
  const std::string body = R"({"advance_seconds":)" + std::to_string(seconds) + "}";
  (void)client.call("POST", "/incipit/clock", body);
}

// [/advance]

}  // namespace

// [ttl_in_a_test]
TEST_CASE("a five minute prefix is gone after five minutes, an hour's after an hour") {
  const incipit::Client client;
  for (const auto& [ttl, seconds] :
       {std::pair(incipit::Ttl::five_minutes, 300), std::pair(incipit::Ttl::one_hour, 3600)}) {
    CHECK(ask(client, ttl).cache_creation_input_tokens() > 1024);
    advance(client, seconds - 1);
    CHECK(ask(client, ttl).cache_creation_input_tokens() == 0);  // read, and good for as long again
    advance(client, seconds + 1);
    CHECK(ask(client, ttl).cache_read_input_tokens == 0);
  }
}

// [/ttl_in_a_test]
