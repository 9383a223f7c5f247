#include "gateway/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace incipit::gateway {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  const auto multiply = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; };
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = multiply(0xD2511F53U, counter[0]);
    const std::uint64_t odd = multiply(0xCD9E8D57U, counter[2]);
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

namespace {

// Uniform in [0, 1), 53 bits.
double uniform(std::uint64_t seed, std::uint64_t position) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto words =
      philox({low(position), low(position >> 32), 0, 0}, {low(seed), low(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32) | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// The first id with the largest logit; empty if the logits are no distribution.
std::optional<std::int32_t> most_likely(std::span<const float> logits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float best = -infinity;
  std::int32_t id = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < infinity)) return std::nullopt;
    if (logits[i] > best) {
      best = logits[i];
      id = static_cast<std::int32_t>(i);
    }
  }
  if (id < 0) return std::nullopt;
  return id;
}

}  // namespace

void mask_logits(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  constexpr float impossible = -std::numeric_limits<float>::infinity();
  for (std::size_t begin = 0; begin < logits.size(); begin += 64) {
    const std::uint64_t word = begin / 64 < allowed.size() ? allowed[begin / 64] : 0;
    const std::size_t count = std::min<std::size_t>(64, logits.size() - begin);
    if (word == ~std::uint64_t{0}) continue;
    for (std::size_t bit = 0; bit < count; ++bit) {
      if ((word >> bit & 1U) == 0) logits[begin + bit] = impossible;
    }
  }
}

void Sampler::narrow(std::span<const float> logits, const Sampling& sampling) {
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto is_before = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::size_t count = order_.size();
  if (sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < count) {
    count = static_cast<std::size_t>(sampling.top_k);
    std::nth_element(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count) - 1,
                     order_.end(), is_before);
    order_.resize(count);
  }
  const auto weight = [&](std::int32_t id) { return weights_[static_cast<std::size_t>(id)]; };
  double mass = 0;
  for (const std::int32_t id : order_)
    mass += weight(id);
  const double wanted = sampling.top_p < 1.0F ? mass * std::max(0.0F, sampling.top_p)
                                              : std::numeric_limits<double>::infinity();
  // A nucleus is mostly a handful of ids: sort only as much of the head as it takes.
  double sum = 0;
  std::size_t kept = 0;
  for (std::size_t sorted = std::min<std::size_t>(64, count); kept < count;
       sorted = std::min(sorted * 8, count)) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(kept);
    std::partial_sort(begin, order_.begin() + static_cast<std::ptrdiff_t>(sorted), order_.end(),
                      is_before);
    while (kept < sorted) {
      sum += weight(order_[kept++]);
      if (sum >= wanted) {
        order_.resize(kept);
        return;
      }
    }
  }
}

std::optional<std::int32_t> Sampler::sample(std::span<const float> logits, const Sampling& sampling,
                                            std::uint64_t position) {
  const std::optional<std::int32_t> best = most_likely(logits);
  if (!best || !(sampling.temperature > 0)) return best;
  const double maximum = logits[static_cast<std::size_t>(*best)];
  weights_.resize(logits.size());
  double mass = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double exponent = (logits[i] - maximum) / double{sampling.temperature};
    // Below e^-60 even a million ids together are lost in the rounding of the sum.
    weights_[i] = exponent < -60 ? 0 : std::exp(exponent);
    mass += weights_[i];
  }
  const double u = uniform(sampling.seed, position);
  const bool is_narrowed =
      sampling.top_p < 1.0F
      || (sampling.top_k > 0 && static_cast<std::size_t>(sampling.top_k) < logits.size());
  if (!is_narrowed) {
    double rest = u * mass;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if ((rest -= weights_[i]) < 0) return static_cast<std::int32_t>(i);
    }
    return best;  // only if rounding used up the whole sum
  }
  narrow(logits, sampling);
  mass = 0;
  for (const std::int32_t id : order_)
    mass += weights_[static_cast<std::size_t>(id)];
  double rest = u * mass;
  for (const std::int32_t id : order_) {
    if ((rest -= weights_[static_cast<std::size_t>(id)]) < 0) return id;
  }
  return best;
}

}  // namespace incipit::gateway
