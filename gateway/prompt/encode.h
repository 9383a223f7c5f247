// Conversation to tokens and boundaries, in one pass.
#pragma once

#include "gateway/cache/prefix_key.h"
#include "gateway/prompt/chat_template.h"
#include "gateway/prompt/conversation.h"
#include "gateway/prompt/tokenizer.h"

#include <cstdint>
#include <vector>

namespace incipit::gateway {

struct EncodedPrompt {
  std::vector<std::int32_t> tokens;
  std::vector<Boundary> boundaries;  // one per item, token_end ascending, the last = tokens.size()
};

// Text is tokenised item by item, so the tokens up to a boundary never depend on what follows it.
[[nodiscard]] EncodedPrompt encode(const Conversation& conversation,
                                   const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace incipit::gateway
