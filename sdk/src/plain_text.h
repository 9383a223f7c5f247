// The bytes of a JSON string that need no second look. Private to the SDK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace incipit {

// The first place from `at` on that holds no plain byte, or the end. Plain are the bytes that a
// JSON string holds as they are: ASCII without `"`, `\` and control characters.
[[nodiscard]] inline std::size_t plain_end(std::string_view text, std::size_t at) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t tops = ones * 0x80;
  // Eight at a time: subtracting sets the top bit of a byte that was below the subtrahend.
  while (text.size() - at >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    const std::uint64_t quotes = (word ^ (ones * '"')) - ones;
    const std::uint64_t backslashes = (word ^ (ones * '\\')) - ones;
    const std::uint64_t controls = word - ones * 0x20;
    if (((quotes | backslashes | controls | word) & tops) != 0) break;
    at += 8;
  }
  const auto is_plain = [](char c) {
    return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  while (at < text.size() && is_plain(text[at]))
    ++at;
  return at;
}

}  // namespace incipit
