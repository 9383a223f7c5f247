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
  std::string_view data;  // the `data:` lines, joined by \n; never empty
};

// Lines end with \n, \r or \r\n; a byte order mark at the start, comments and unknown fields are
// skipped; an event without any data, or with an empty one, is none. Holds the bytes of the events
// that were fed and not yet taken: take all before feeding more.
class SseParser {
 public:
  // Takes the next bytes of the stream. Views handed out before are no longer valid.
  void feed(std::string_view bytes);

  // The next whole event, or nothing until more bytes are fed. Its views are valid until the next
  // call of `next` or `feed`.
  std::optional<SseEvent> next();

  // The stream has ended: an event that lacks only its blank line, or the end of its last line too,
  // becomes whole.
  void finish();

 private:
  std::optional<std::string_view> next_line();
  std::size_t find(char end, std::size_t& searched) const;
  void take_field(std::string_view line);
  void take_data(std::string_view value);
  void forget_event();

  std::string buffer_;
  std::size_t line_ = 0;  // where the next line starts
  std::size_t lf_ = 0;    // no \n between line_ and here
  std::size_t cr_ = 0;    // no \r between line_ and here
  bool at_start_ = true;
  bool after_cr_ = false;  // a \n here belongs to the line end before it
  bool handed_out_ = false;

  // The event so far. Its data lies in the buffer: further lines are moved up to the first.
  std::string name_;
  std::size_t data_ = 0;
  std::size_t data_size_ = 0;
  bool has_data_ = false;
};

}  // namespace incipit
