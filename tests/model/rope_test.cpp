#include "gateway/model/rope.h"

#include "gateway/model/hf_config.h"

#include <doctest/doctest.h>

namespace incipit::test {
namespace {

TEST_CASE("Llama 3.1's frequency divisors are those of its published formula") {
  // base 500000, head 128, factor 8, 1 and 4, original context 8192; computed by wavelengths.
  const auto factors = gateway::llama3_rope_factors({8.0, 1.0, 4.0, 8192.0}, 500000.0, 128);
  REQUIRE(factors.size() == 64);
  for (int i = 0; i <= 28; ++i)
    CHECK(factors[static_cast<std::size_t>(i)] == 1.0F);
  const double expected[] = {1.207483871283662, 1.5534146285049255, 2.0263132059050553,
                             2.694529687894733, 3.6842525277457185, 5.257326588708467};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(factors[29 + i] == doctest::Approx(expected[i]).epsilon(1e-6));
  }
  for (std::size_t i = 35; i < 64; ++i)
    CHECK(factors[i] == 8.0F);
}

TEST_CASE("Llama 3.2's divisors follow its own factor and head size") {
  const auto factors = gateway::llama3_rope_factors({32.0, 1.0, 4.0, 8192.0}, 500000.0, 64);
  REQUIRE(factors.size() == 32);
  CHECK(factors[14] == 1.0F);
  CHECK(factors[15] == doctest::Approx(1.6513292457638982).epsilon(1e-6));
  CHECK(factors[16] == doctest::Approx(3.2922621029408843).epsilon(1e-6));
  CHECK(factors[17] == doctest::Approx(9.66672897875329).epsilon(1e-6));
  CHECK(factors[18] == 32.0F);
}

TEST_CASE("rotary angles far into the context are right to the last digit of float32") {
  struct Case {
    int position, pair, head_dim;
    double base, cos, sin;
  };

  // Computed with 40 decimal digits.
  const Case cases[] = {
      {100000, 0, 64, 1e4, -0.9993608074382124519, 0.0357487979720165093},
      {100000, 5, 64, 1e4, 0.5439094816808446865, 0.8391438945363750178},
      {32767, 31, 64, 1e6, 0.9987272262237919726, 0.0504373631282470197},
      {6000, 1, 256, 1e4, -0.6806841886263575784, -0.7325769825445495502},
  };
  for (const Case& c : cases) {
    const auto tables = gateway::rope_tables(c.position + 1, c.head_dim, c.base, 1.0, {});
    const std::size_t at =
        static_cast<std::size_t>(c.position) * static_cast<std::size_t>(c.head_dim / 2)
        + static_cast<std::size_t>(c.pair);
    CHECK(tables.cos[at] == static_cast<float>(c.cos));
    CHECK(tables.sin[at] == static_cast<float>(c.sin));
  }
}

TEST_CASE("linear scaling and divisors slow the rotation down") {
  const float divisors[] = {1.0F, 4.0F};
  const auto plain = gateway::rope_tables(9, 4, 1e4, 1.0, {});
  const auto halved = gateway::rope_tables(9, 4, 1e4, 2.0, {});
  const auto divided = gateway::rope_tables(9, 4, 1e4, 1.0, divisors);
  CHECK(halved.cos[8 * 2] == plain.cos[4 * 2]);
  CHECK(halved.sin[8 * 2 + 1] == plain.sin[4 * 2 + 1]);
  CHECK(divided.cos[8 * 2] == plain.cos[8 * 2]);
  CHECK(divided.sin[8 * 2 + 1] == plain.sin[2 * 2 + 1]);
}

}  // namespace
}  // namespace incipit::test
