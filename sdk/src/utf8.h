// Where well-formed UTF-8 ends. Private to the SDK.
#pragma once

#include <cstddef>
#include <string_view>

namespace incipit {

// Whether all of it is well-formed; with SIMD, where there is any.
[[nodiscard]] bool is_utf8(std::string_view text);

// What starts at `text[at]`: the bytes of one well-formed sequence, or of the longest ill-formed
// beginning of one (at least 1), which a decoder replaces by one U+FFFD.
struct Utf8Sequence {
  std::size_t length;
  bool well_formed;
};

[[nodiscard]] inline Utf8Sequence utf8_sequence(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0U : first == 0xF0 ? 0x90U : 0x80U;
  const unsigned high = first == 0xED ? 0x9FU : first == 0xF4 ? 0x8FU : 0xBFU;
  if (byte(at + 1) < low || byte(at + 1) > high) return {1, false};
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return {i, false};
  }
  return {length, true};
}

}  // namespace incipit
