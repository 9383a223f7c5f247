// Points of the gateway's clock as dates.
#pragma once

#include "gateway/clock.h"

#include <chrono>
#include <string>

namespace incipit::gateway {

// A date is fixed by the first look at both clocks: what was made keeps its date, and a clock that
// is moved moves the dates. Any thread.
class Calendar {
 public:
  explicit Calendar(const Clock& clock) : start_(clock.now()) {}

  // RFC 3339: "2026-09-29T08:53:31Z"
  [[nodiscard]] std::string date(TimePoint when) const;

 private:
  TimePoint start_;
  std::chrono::system_clock::time_point date_ = std::chrono::system_clock::now();
};

}  // namespace incipit::gateway
