#include "gateway/engine/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace incipit::gateway {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Softmax in float64 of the plain definition, restricted to `allowed`.
std::vector<double> softmax(const std::vector<float>& logits, double temperature,
                            const std::set<int>& allowed) {
  std::vector<double> p(logits.size());
  for (const int i : allowed)
    p[std::size_t(i)] = std::exp(logits[std::size_t(i)] / temperature);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p)
    x /= sum;
  return p;
}

std::set<int> everything(const std::vector<float>& logits) {
  std::set<int> all;
  for (int i = 0; i < int(logits.size()); ++i)
    all.insert(i);
  return all;
}

std::vector<int> draw(const std::vector<float>& logits, const Sampling& sampling, int draws) {
  Sampler sampler;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    ++counts[std::size_t(sampler.sample(logits, sampling, std::uint64_t(i)).value())];
  }
  return counts;
}

double chi_square(const std::vector<int>& counts, const std::vector<double>& p, int draws) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      CHECK(counts[i] == 0);
      continue;
    }
    const double difference = counts[i] - p[i] * draws;
    sum += difference * difference / (p[i] * draws);
  }
  return sum;
}

// Ten tokens, log-probabilities spread over about four.
const std::vector<float> ten{0.5F, 2.0F, -1.0F, 1.0F, 0.0F, -2.0F, 1.5F, 0.25F, -0.5F, 1.75F};

}  // namespace

TEST_CASE("Philox gives the published known answers") {
  // kat_vectors of the Random123 distribution, philox4x32 with 10 rounds.
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
  CHECK(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U})
        == Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
  CHECK(philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U})
        == Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U});
}

TEST_CASE("greedy takes the largest logit, of equal ones the lowest id") {
  Sampler sampler;
  const Sampling sampling{.temperature = 0};
  CHECK(sampler.sample(std::vector<float>{1, 3, 2}, sampling, 0) == 1);
  CHECK(sampler.sample(std::vector<float>{3, 5, 5, 5}, sampling, 9) == 1);
  CHECK(sampler.sample(std::vector<float>{-infinity, -5, -infinity}, sampling, 0) == 1);
  CHECK(sampler.sample(std::vector<float>{-0.0F, 0.0F}, sampling, 0) == 0);
}

TEST_CASE("logits that are no distribution give no token") {
  Sampler sampler;
  for (const float temperature : {0.0F, 1.0F}) {
    const Sampling sampling{.temperature = temperature, .top_p = 0.9F, .top_k = 2};
    CHECK_FALSE(sampler.sample(std::vector<float>{1, nan, 2}, sampling, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{nan, nan}, sampling, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{1, infinity}, sampling, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{-infinity, -infinity}, sampling, 0));
    CHECK_FALSE(sampler.sample(std::vector<float>{}, sampling, 0));
  }
}

TEST_CASE("frequencies follow the softmax") {
  // The 99.9 % point of chi-square with 9 degrees of freedom is 27.88; seeds are fixed.
  for (const double temperature : {0.5, 1.0, 2.0}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      CAPTURE(temperature);
      CAPTURE(seed);
      constexpr int draws = 100000;
      const Sampling sampling{.temperature = float(temperature), .seed = seed};
      const double x =
          chi_square(draw(ten, sampling, draws), softmax(ten, temperature, everything(ten)), draws);
      CHECK(x < 27.88);
      CHECK(x > 0.5);  // too good to be random
    }
  }
}

TEST_CASE("top_k leaves the k most likely, in their proportions") {
  constexpr int draws = 100000;
  const Sampling sampling{.top_k = 4, .seed = 5};
  // By hand: 2.0, 1.75, 1.5, 1.0. Chi-square, 3 degrees of freedom, 99.9 %: 16.27.
  CHECK(chi_square(draw(ten, sampling, draws), softmax(ten, 1.0, {1, 9, 6, 3}), draws) < 16.27);
  const std::vector<float> ties{1, 2, 1, 1};
  const std::vector<int> counts = draw(ties, {.top_k = 2}, 1000);
  CHECK(counts[1] > 0);
  CHECK(counts[0] > 0);
  CHECK(counts[2] + counts[3] == 0);
}

TEST_CASE("top_p leaves the shortest head that holds its mass") {
  constexpr int draws = 100000;
  // Probabilities 0.5, 0.25, 0.125, 0.125, in another order of ids.
  const std::vector<float> logits{std::log(0.125F), std::log(0.5F), std::log(0.125F),
                                  std::log(0.25F)};
  const auto support = [&](float top_p) {
    std::set<int> ids;
    const std::vector<int> counts = draw(logits, {.top_p = top_p, .seed = 3}, 2000);
    for (int i = 0; i < 4; ++i) {
      if (counts[std::size_t(i)] > 0) ids.insert(i);
    }
    return ids;
  };
  CHECK(support(0.0F) == std::set{1});
  CHECK(support(0.49F) == std::set{1});
  CHECK(support(0.51F) == std::set{1, 3});
  CHECK(support(0.74F) == std::set{1, 3});
  CHECK(support(0.76F) == std::set{0, 1, 3});  // of the equal ones the lower id
  CHECK(support(0.9F) == std::set{0, 1, 2, 3});
  const Sampling sampling{.top_p = 0.74F, .seed = 8};
  // One degree of freedom, 99.9 %: 10.83.
  CHECK(chi_square(draw(logits, sampling, draws), softmax(logits, 1.0, {1, 3}), draws) < 10.83);
}

TEST_CASE("top_p counts within top_k, and after the temperature") {
  // 0.4, 0.3, 0.2, 0.1: of the best two the first holds 4/7 of the mass.
  const std::vector<float> logits{std::log(0.4F), std::log(0.3F), std::log(0.2F), std::log(0.1F)};
  std::vector<int> counts = draw(logits, {.top_p = 0.5F, .top_k = 2}, 1000);
  CHECK(counts[0] == 1000);
  counts = draw(logits, {.top_p = 0.5F}, 1000);
  CHECK(counts[0] + counts[1] == 1000);
  CHECK(counts[1] > 0);
  // At temperature 0.25 the first holds 0.4^4 of 0.0354, 72 %.
  counts = draw(logits, {.temperature = 0.25F, .top_p = 0.7F}, 1000);
  CHECK(counts[0] == 1000);
}

TEST_CASE("a nucleus larger than the first sorted chunk is still exact") {
  // 1000 equally likely ids and top_p one half: the 500 lowest ids, give or take rounding.
  const std::vector<float> flat(1000, 1.0F);
  const std::vector<int> counts = draw(flat, {.top_p = 0.4995F, .seed = 4}, 20000);
  CHECK(std::all_of(counts.begin() + 500, counts.end(), [](int n) { return n == 0; }));
  CHECK(std::count_if(counts.begin(), counts.begin() + 500, [](int n) { return n > 0; }) == 500);
}

TEST_CASE("a draw depends on seed and position alone") {
  Sampler used, fresh;
  const Sampling sampling{.top_p = 0.95F, .seed = 42};
  std::set<int> by_position, by_seed;
  for (std::uint64_t i = 0; i < 200; ++i) {
    (void)used.sample(std::vector<float>(50, 0.5F), {.seed = i}, i);
    const auto token = used.sample(ten, sampling, i);
    CHECK(token == fresh.sample(ten, sampling, i));
    by_position.insert(*token);
    by_seed.insert(*used.sample(ten, {.top_p = 0.95F, .seed = i}, 7));
  }
  CHECK(by_position.size() > 5);
  CHECK(by_seed.size() > 5);
}

TEST_CASE("extreme temperatures and far logits do no harm") {
  Sampler sampler;
  const std::vector<float> wide{-3e38F, 3e38F, -infinity, 0.0F};
  CHECK(sampler.sample(wide, {.temperature = 1e-30F}, 1) == 1);
  CHECK(sampler.sample(wide, {.temperature = 1.0F, .top_p = 0.5F, .top_k = 3}, 1) == 1);
  const std::vector<int> counts = draw({0.0F, 1.0F, -infinity}, {.temperature = 1e30F}, 1000);
  CHECK(counts[0] > 400);
  CHECK(counts[1] > 400);
  CHECK(counts[2] == 0);
}

}  // namespace incipit::gateway
