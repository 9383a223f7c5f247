// How much an organization may ask per minute. Source: anthropic-wire sections 3.2 and 12, C-106.
#pragma once

#include "gateway/api/exchange.h"
#include "gateway/clock.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace incipit::gateway {

// Per minute. The defaults are so wide that nobody meets them.
struct LimitRates {
  std::int64_t requests = 100'000;
  std::int64_t input_tokens = 100'000'000;  // input and cache writes; reads are free (C-106)
  std::int64_t output_tokens = 20'000'000;
};

// "requests=50,input-tokens=40000,output-tokens=8000", each at most once and above 0. Throws
// std::runtime_error that says which part is not like that.
[[nodiscard]] LimitRates parse_limits(std::string_view text);

// Token buckets by organization and line of models (opus, sonnet, …): full at first, refilled
// continuously, a minute from empty to full. Safe to use from any thread.
class RateLimits {
 public:
  explicit RateLimits(const LimitRates& rates = {}) : rates_(rates) {}

  // Takes a request that will use that many input and write tokens. Throws ApiError 429 with
  // retry-after when a bucket lacks them; what is more than a whole bucket may go when it is full.
  void admit(const std::string& organization, std::string_view model, std::int64_t input_tokens,
             TimePoint now);

  // Takes what has been generated: known only afterwards, so a bucket may go below empty, and the
  // next request waits.
  void charge_output(const std::string& organization, std::string_view model, std::int64_t tokens,
                     TimePoint now);

  // The twelve anthropic-ratelimit-* headers.
  void add_headers(HeaderList& headers, const std::string& organization, std::string_view model,
                   TimePoint now);

 private:
  struct Bucket {
    double level;
    TimePoint at;
  };

  struct Buckets {
    Bucket requests, input, output;
  };

  Buckets& refilled(const std::string& organization, std::string_view model, TimePoint now);

  LimitRates rates_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Buckets> buckets_;
};

}  // namespace incipit::gateway
