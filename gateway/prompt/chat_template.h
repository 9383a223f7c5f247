// How a model family writes a conversation. One family, one table entry; recognised from the model
// file at load.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/prompt/conversation.h"
#include "gateway/prompt/tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// A stretch of prompt: literal template text with special tokens, or the caller's text.
struct Fragment {
  std::string text;
  bool is_template = true;  // special tokens in it are recognised
  bool ends_item = false;   // a boundary lies after this fragment; items end in order
};

class ChatTemplate {
 public:
  enum class Family : std::uint8_t { chatml, llama3, mistral, gemma, tiny };

  // Throws std::runtime_error that lists the known families when the file matches none.
  ChatTemplate(const ModelConfig& config, const TokenizerSpec& spec);

  [[nodiscard]] Family family() const;
  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] bool supports_tools() const;

  // The whole prompt in order: tools, system, messages, then the opening of the assistant's turn
  // (or the unfinished assistant turn). Exactly one fragment per item has `ends_item`. The closing
  // of a turn and the opening of the next belong to the last item of the turn, so that the last
  // item ends where the prompt ends. Text before an item's end never depends on a later item,
  // except that: whether the item is the last of its turn.
  [[nodiscard]] std::vector<Fragment> render(const Conversation& conversation) const;

  // Tokens that end the assistant's turn.
  [[nodiscard]] std::vector<std::int32_t> stop_tokens(const Tokenizer& tokenizer) const;

 private:
  Family family_;
  std::string default_system_;  // what the family puts in when the caller gives no system text
};

}  // namespace incipit::gateway
