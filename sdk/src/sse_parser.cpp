#include "sdk/src/sse_parser.h"

#include <algorithm>
#include <cstring>

namespace incipit {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// The line's value if it is of that field.
std::optional<std::string_view> value_of(std::string_view field, std::string_view line) {
  if (!line.starts_with(field)) return std::nullopt;
  line.remove_prefix(field.size());
  if (line.empty()) return line;
  if (line[0] != ':') return std::nullopt;
  line.remove_prefix(line.starts_with(": ") ? 2 : 1);
  return line;
}

}  // namespace

void SseParser::feed(std::string_view bytes) {
  if (handed_out_) forget_event();
  const std::size_t used = has_data_ ? data_ : line_;
  if (used > buffer_.size() / 2) {  // never moves more than it drops
    buffer_.erase(0, used);
    line_ -= used;
    lf_ -= std::min(lf_, used);
    cr_ -= std::min(cr_, used);
    data_ -= std::min(data_, used);
  }
  buffer_.append(bytes);
}

std::optional<SseEvent> SseParser::next() {
  if (handed_out_) forget_event();
  while (const auto line = next_line()) {
    if (!line->empty()) {
      take_field(*line);
    } else if (data_size_ != 0) {
      handed_out_ = true;
      return SseEvent{name_, std::string_view(buffer_).substr(data_, data_size_)};
    } else {
      forget_event();
    }
  }
  return std::nullopt;
}

void SseParser::finish() {
  feed("\n\n");
}

std::optional<std::string_view> SseParser::next_line() {
  if (line_ == buffer_.size()) return std::nullopt;
  if (after_cr_ && buffer_[line_] == '\n') ++line_;
  after_cr_ = false;

  const std::size_t end = std::min(find('\n', lf_), find('\r', cr_));
  if (end == buffer_.size()) return std::nullopt;
  std::string_view line = std::string_view(buffer_).substr(line_, end - line_);
  after_cr_ = buffer_[end] == '\r';
  line_ = end + 1;
  if (at_start_ && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  at_start_ = false;
  return line;
}

// Remembers how far it has looked, so that no byte is looked at twice: neither those of a long line
// that comes in small pieces, nor all that follow when one of the two kinds of line end is never
// used.
std::size_t SseParser::find(char end, std::size_t& searched) const {
  searched = std::max(searched, line_);
  if (searched < buffer_.size() && buffer_[searched] != end) {
    const char* from = buffer_.data() + searched;
    const void* found = std::memchr(from, end, buffer_.size() - searched);
    searched = found == nullptr
                   ? buffer_.size()
                   : static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
  }
  return searched;
}

void SseParser::take_field(std::string_view line) {
  if (const auto data = value_of("data", line)) {
    take_data(*data);
  } else if (const auto name = value_of("event", line)) {
    name_ = *name;
  }
}

void SseParser::take_data(std::string_view value) {
  const auto at = static_cast<std::size_t>(value.data() - buffer_.data());
  if (!has_data_) {
    has_data_ = true;
    data_ = at;
    data_size_ = value.size();
    return;
  }
  char* end = buffer_.data() + data_ + data_size_;
  *end = '\n';  // there is room: the line end before this line
  std::memmove(end + 1, value.data(), value.size());
  data_size_ += 1 + value.size();
}

void SseParser::forget_event() {
  name_.clear();
  has_data_ = false;
  data_size_ = 0;
  handed_out_ = false;
}

}  // namespace incipit
