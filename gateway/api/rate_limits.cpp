#include "gateway/api/rate_limits.h"

#include "gateway/api/error.h"
#include "gateway/api/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace incipit::gateway {
namespace {

// claude-opus-4-8 → opus; the local model's own name is a line of its own.
std::string line_of(std::string_view model) {
  for (const std::string_view line : {"opus", "sonnet", "haiku", "fable", "mythos"}) {
    if (model.starts_with("claude-") && model.find(line) != model.npos) return std::string(line);
  }
  return std::string(model);
}

double per_second(std::int64_t rate) {
  return static_cast<double>(rate) / 60.0;
}

// Seconds until a bucket holds `wanted`.
double wait_for(double level, double wanted, std::int64_t rate) {
  return std::max(0.0, (wanted - level) / per_second(rate));
}

ApiError exceeded(const std::string& organization, std::int64_t rate, std::string_view what,
                  double wait) {
  ApiError error(429, "rate_limit_error",
                 fmt::format("This request would exceed your organization's rate limit of {} {} "
                             "per minute (organization: {}). Wait for the time that retry-after "
                             "names, or start the gateway with wider --limits.",
                             rate, what, organization));
  error.retry_after = std::max(1, static_cast<int>(std::ceil(wait)));
  return error;
}

}  // namespace

LimitRates parse_limits(std::string_view text) {
  LimitRates rates;
  std::array<std::pair<std::string_view, std::int64_t*>, 3> known{
      {{"requests", &rates.requests},
       {"input-tokens", &rates.input_tokens},
       {"output-tokens", &rates.output_tokens}}};
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto entry = std::ranges::find_if(
        known, [&](const auto& candidate) { return candidate.first == part.substr(0, equals); });
    const std::string_view digits = part.substr(std::min(equals + 1, part.size()));
    std::int64_t number = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (entry == known.end() || entry->second == nullptr || failure != std::errc()
        || end != digits.data() + digits.size() || number < 1) {
      throw std::runtime_error(fmt::format(
          "'{}' is not like requests=50,input-tokens=40000,output-tokens=8000, each once", part));
    }
    *entry->second = number;
    entry->second = nullptr;
    if (comma == text.size()) return rates;
    text.remove_prefix(comma + 1);
  }
}

RateLimits::Buckets& RateLimits::refilled(const std::string& organization, std::string_view model,
                                          TimePoint now) {
  const auto full = [&](std::int64_t rate) { return Bucket{static_cast<double>(rate), now}; };
  const auto [found, fresh] =
      buckets_.try_emplace({organization, line_of(model)}, full(rates_.requests),
                           full(rates_.input_tokens), full(rates_.output_tokens));
  const auto refill = [&](Bucket& bucket, std::int64_t rate) {
    const std::chrono::duration<double> gone = now - bucket.at;
    bucket.at = std::max(bucket.at, now);
    bucket.level = std::min(static_cast<double>(rate),
                            bucket.level + std::max(0.0, gone.count()) * per_second(rate));
  };
  refill(found->second.requests, rates_.requests);
  refill(found->second.input, rates_.input_tokens);
  refill(found->second.output, rates_.output_tokens);
  return found->second;
}

void RateLimits::admit(const std::string& organization, std::string_view model,
                       std::int64_t input_tokens, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  Buckets& buckets = refilled(organization, model, now);
  const auto need = [&](const Bucket& bucket, double wanted, std::int64_t rate,
                        std::string_view what) {
    wanted = std::min(wanted, static_cast<double>(rate));
    const double wait = wait_for(bucket.level, wanted, rate);
    if (wait > 1e-6) throw exceeded(organization, rate, what, wait);
  };
  need(buckets.requests, 1.0, rates_.requests, "requests");
  need(buckets.input, static_cast<double>(input_tokens), rates_.input_tokens, "input tokens");
  need(buckets.output, 1.0, rates_.output_tokens, "output tokens");
  buckets.requests.level -= 1.0;
  buckets.input.level -= static_cast<double>(input_tokens);
}

void RateLimits::charge_output(const std::string& organization, std::string_view model,
                               std::int64_t tokens, TimePoint now) {
  const std::scoped_lock lock(mutex_);
  refilled(organization, model, now).output.level -= static_cast<double>(tokens);
}

void RateLimits::add_headers(HeaderList& headers, const std::string& organization,
                             std::string_view model, TimePoint now) {
  Buckets buckets;
  {
    const std::scoped_lock lock(mutex_);
    buckets = refilled(organization, model, now);
  }
  const auto add = [&](std::string_view kind, std::int64_t limit, double level, double wait,
                       bool thousands) {
    const std::string stem = fmt::format("anthropic-ratelimit-{}-", kind);
    const auto rounded =
        static_cast<std::int64_t>(thousands ? std::round(std::max(0.0, level) / 1000.0) * 1000.0
                                            : std::floor(std::max(0.0, level)));
    headers.emplace_back(stem + "limit", std::to_string(limit));
    headers.emplace_back(stem + "remaining", std::to_string(std::min(rounded, limit)));
    headers.emplace_back(stem + "reset", utc_time(static_cast<int>(std::ceil(wait))));
  };
  const auto full_in = [](const Bucket& bucket, std::int64_t rate) {
    return wait_for(bucket.level, static_cast<double>(rate), rate);
  };
  const double input_wait = full_in(buckets.input, rates_.input_tokens);
  const double output_wait = full_in(buckets.output, rates_.output_tokens);
  add("requests", rates_.requests, buckets.requests.level,
      full_in(buckets.requests, rates_.requests), false);
  // "tokens" is the sum of both, as in captured headers.
  add("tokens", rates_.input_tokens + rates_.output_tokens,
      std::max(0.0, buckets.input.level) + std::max(0.0, buckets.output.level),
      std::max(input_wait, output_wait), true);
  add("input-tokens", rates_.input_tokens, buckets.input.level, input_wait, true);
  add("output-tokens", rates_.output_tokens, buckets.output.level, output_wait, true);
}

}  // namespace incipit::gateway
