#include "incipit/anthropic.h"

#include <doctest/doctest.h>

#include <string>

namespace incipit {
namespace {

TEST_CASE("the vectors of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("fooba") == "Zm9vYmE=");
  CHECK(base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("all bytes") {
  // base64.b64encode of CPython
  CHECK(base64(std::string_view("\x00\xff\xfe\xfb\xef\xbe", 6)) == "AP/+++++");
}

}  // namespace
}  // namespace incipit
