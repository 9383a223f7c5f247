#include "kernels/backend.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace incipit::kernels {

TEST_CASE("levels end with plain, and each can be asked for") {
  const auto levels = cpu_isa_levels();
  REQUIRE_FALSE(levels.empty());
  CHECK(levels.back() == "plain");
  for (const std::string& level : levels) {
    CHECK_NOTHROW((void)make_backend("cpu", {.threads = 1, .max_isa = level}));
  }
}

TEST_CASE("a level above what the machine has falls back to the best below it") {
  CHECK_NOTHROW((void)make_backend("cpu", {.threads = 1, .max_isa = "amx"}));
  CHECK(make_backend("cpu", {.threads = 1, .max_isa = "plain"})->description()
        == "cpu (no vector extensions, 1 thread)");
}

TEST_CASE("auto is the cpu, with as many threads as asked") {
  const auto backend = make_backend("auto", {.threads = 3, .max_isa = {}});
  CHECK(backend->description().find("3 threads") != std::string::npos);
}

TEST_CASE("what is not there is named, with what is") {
  CHECK_THROWS_WITH_AS((void)make_backend("cuda", {}), doctest::Contains("no CUDA support"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS((void)make_backend("cuda", {}), doctest::Contains("plain"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS((void)make_backend("rocm", {}), doctest::Contains("\"rocm\""),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS((void)make_backend("cpu", {.threads = 1, .max_isa = "sse9"}),
                       doctest::Contains("\"sse9\""), std::runtime_error);
}

}  // namespace incipit::kernels
