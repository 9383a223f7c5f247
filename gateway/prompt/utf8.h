// One step through bytes that may or may not be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace incipit::gateway {

struct Utf8Step {
  enum class Kind : std::uint8_t { character, invalid, incomplete };
  Kind kind;
  std::size_t length;  // bytes
};

// What `bytes` (not empty) begins with: a whole character, an ill-formed stretch (as long as what
// Unicode recommends to replace by one U+FFFD), or a character that the end of `bytes` cuts off.
[[nodiscard]] inline Utf8Step utf8_step(std::string_view bytes) {
  using Kind = Utf8Step::Kind;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Kind::character, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::invalid, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte excludes overlong forms, surrogates and what lies above U+10FFFF.
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Kind::incomplete, i};
    if (byte(i) < low || byte(i) > high) return {Kind::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Kind::character, length};
}

}  // namespace incipit::gateway
