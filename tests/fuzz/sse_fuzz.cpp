// Any bytes, cut anywhere, give the events that they give in one piece; none makes the parser
// stumble.
#include "sdk/src/sse_parser.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

// In pieces whose sizes are `sizes`, over and over; in one piece if there are none.
Events parsed(std::string_view text, const std::vector<std::size_t>& sizes) {
  incipit::SseParser parser;
  Events events;
  const auto take_all = [&] {
    while (const auto event = parser.next())
      events.emplace_back(event->name, event->data);
  };
  for (std::size_t i = 0; !text.empty(); ++i) {
    const std::size_t size =
        sizes.empty() ? text.size() : std::min(sizes[i % sizes.size()], text.size());
    // A copy of its own, so that reading beyond the piece is seen.
    parser.feed(std::string(text.substr(0, size)));
    text.remove_prefix(size);
    if (i % 3 != 2 || text.empty()) take_all();  // now and then late
  }
  parser.finish();
  take_all();
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::vector<std::size_t> sizes = {data[0] % 17U + 1U, data[1] % 5U + 1U};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Events whole = parsed(text, {});
  if (parsed(text, sizes) != whole || parsed(text, {1}) != whole) __builtin_trap();
  for (const auto& [name, value] : whole) {
    const bool has_line_end =
        name.find_first_of("\r\n") != std::string::npos || value.find('\r') != std::string::npos;
    if (value.empty() || has_line_end) __builtin_trap();
  }
  return 0;
}
