// Time as an argument. Everything that expires asks this clock; tests and `--virtual-clock` move it.
#pragma once

#include <atomic>
#include <chrono>

namespace incipit::gateway {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// Steady time plus an offset that only grows. Safe to use from any thread.
class Clock {
 public:
  [[nodiscard]] TimePoint now() const {
    return (frozen_ ? epoch_ : std::chrono::steady_clock::now())
           + Duration(offset_.load(std::memory_order_acquire));
  }

  void advance(Duration by) { offset_.fetch_add(by.count(), std::memory_order_acq_rel); }

  // A clock that stands still except for `advance`, for tests.
  [[nodiscard]] static Clock frozen() { return Clock(true); }

  Clock() = default;

 private:
  explicit Clock(bool frozen) : frozen_(frozen) {}
  bool frozen_ = false;
  TimePoint epoch_ = std::chrono::steady_clock::now();
  std::atomic<Duration::rep> offset_{0};
};

}  // namespace incipit::gateway
