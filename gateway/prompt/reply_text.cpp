#include "gateway/prompt/reply_text.h"

namespace incipit::gateway {

ReplyText::ReplyText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  markers_ = {{{{}, "[TOOL_CALLS]"},
               {{}, "<tool_call>"},
               {{}, "</tool_call>"},
               {{}, "<think>"},
               {{}, thought_closing}}};
  for (auto& [id, spelling] : markers_)
    id = tokenizer.special(spelling);
}

std::string_view ReplyText::bytes(std::int32_t token) const {
  for (const auto& [id, spelling] : markers_) {
    if (id == token) return spelling;
  }
  return tokenizer_.bytes(token);
}

}  // namespace incipit::gateway
