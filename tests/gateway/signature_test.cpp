// Signatures of thinking blocks: they carry the thought and are told from what is not theirs.
#include "gateway/api/signature.h"

#include <doctest/doctest.h>

#include <string>

namespace incipit::gateway {
namespace {

constexpr PrefixKey key{0x0123456789ABCDEFULL, 0xFEDCBA9876543210ULL};

TEST_CASE("a signature gives back what was signed") {
  for (const std::string& thought : {std::string(), std::string("a"), std::string("né\n\"2\""),
                                     std::string(5, '\0'), std::string(100'000, 'x')}) {
    for (const bool was_shown : {true, false}) {
      const auto read = read_signature(sign_thought(thought, key, was_shown));
      REQUIRE(read);
      CHECK(read->thought == thought);
      CHECK(read->bound_to == key);
      CHECK(read->was_shown == was_shown);
    }
  }
}

TEST_CASE("a signature is base64, the same each time, another for each argument") {
  const std::string signature = sign_thought("Let me see.", key, true);
  CHECK(signature.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
        == std::string::npos);
  CHECK(signature.size() % 4 == 0);
  CHECK(sign_thought("Let me see.", key, true) == signature);
  CHECK(sign_thought("Let me be.", key, true) != signature);
  CHECK(sign_thought("Let me see.", {key.high, key.low + 1}, true) != signature);
  CHECK(sign_thought("Let me see.", key, false) != signature);
}

TEST_CASE("what was not signed here has no meaning") {
  const std::string signature = sign_thought("Let me see.", key, true);
  for (std::size_t i = 0; i < signature.size(); ++i) {
    CAPTURE(i);
    std::string damaged = signature;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    CHECK_FALSE(read_signature(damaged));
    CHECK_FALSE(read_signature(signature.substr(0, i)));
  }
  for (const char* foreign : {"", "=", "====", "EqQBCgIYAhIM", "not base64!", "\xC3\xA9"}) {
    CHECK_FALSE(read_signature(foreign));
  }
  CHECK_FALSE(read_signature(signature + "A"));
  CHECK_FALSE(read_signature(signature + "="));
  CHECK_FALSE(read_signature(signature + "\n"));
}

}  // namespace
}  // namespace incipit::gateway
