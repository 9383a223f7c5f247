// Counters for `GET /metrics`, in Prometheus' text format.
#pragma once

#include "gateway/api/log.h"
#include "gateway/engine/generation.h"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace incipit::gateway {

// Threads: any.
class Metrics {
 public:
  void count(const RequestRecord& record);

  // `live_entries` and `entries_lost` come from the ledger.
  [[nodiscard]] std::string text(const EngineStats& engine, std::size_t live_entries,
                                 std::int64_t entries_lost) const;

 private:
  // Upper bounds of the TTFT histogram's buckets, in seconds; one more holds the rest.
  static constexpr std::array<double, 12> ttft_bounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                      0.5,   1,    2.5,   5,    10,  30};

  mutable std::mutex mutex_;
  std::map<int, std::int64_t> requests_by_status_;
  Usage tokens_;
  std::int64_t kv_reused_ = 0;
  std::array<std::int64_t, ttft_bounds.size() + 1> ttft_counts_{};
  double ttft_sum_ = 0;
};

}  // namespace incipit::gateway
