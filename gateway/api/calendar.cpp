#include "gateway/api/calendar.h"

#include <array>
#include <ctime>

namespace incipit::gateway {

std::string Calendar::date(TimePoint when) const {
  const auto gone = std::chrono::duration_cast<std::chrono::system_clock::duration>(when - start_);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(date_ + gone);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

}  // namespace incipit::gateway
