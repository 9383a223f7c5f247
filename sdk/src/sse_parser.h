// Server-sent events from bytes, however they are cut. No I/O. Private to the SDK.
// Source: anthropic-wire section 19.4; the WHATWG event stream format.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace incipit {

struct SseEvent {
  std::string_view name;  // of `event:`; empty when there was none
  std::string_view data;  // the `data:` lines, joined by \n
};

// Lines end with \n, \r or \r\n; a byte order mark at the start, comments and unknown fields are
// skipped; an event without any data is none.
class SseParser {
 public:
  // Takes the next bytes of the stream. Views handed out before are no longer valid.
  void feed(std::string_view bytes);

  // The next whole event, or nothing until more bytes are fed. Its views are valid until the next call
  // of `next` or `feed`.
  std::optional<SseEvent> next();

  // The stream has ended: an event that lacks only its blank line becomes whole.
  void finish();

 private:
  // The implementation's own.
};

}  // namespace incipit
