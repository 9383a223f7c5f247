// Whatever a server sends as the events of a stream, one to a line: it is taken or refused with an
// Error.
#include "incipit/stream.h"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  incipit::MessageAccumulator accumulator;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() == rest.size() ? line.size() : line.size() + 1);
    try {
      if (const auto event = incipit::parse_stream_event(line)) accumulator.add(*event);
      for (std::size_t i = 0; i < 3; ++i)
        (void)accumulator.partial_input(i);
    } catch (const incipit::Error&) {  // ParseError, ApiError: anything else is a find
    }
  }
  return 0;
}
