// What a reply's tokens say.
#pragma once

#include "gateway/prompt/tokenizer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace incipit::gateway {

// The bytes of each token. Markers of calls and thoughts count as their spelling also in a
// vocabulary where they are control tokens, which stand for no text.
class ReplyText {
 public:
  explicit ReplyText(const Tokenizer& tokenizer);

  [[nodiscard]] std::string_view bytes(std::int32_t token) const;

 private:
  const Tokenizer& tokenizer_;
  std::array<std::pair<std::optional<std::int32_t>, std::string_view>, 5> markers_;
};

inline constexpr std::string_view thought_opening = "<think>\n";
inline constexpr std::string_view thought_closing = "</think>";

}  // namespace incipit::gateway
