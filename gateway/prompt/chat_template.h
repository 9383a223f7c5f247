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

struct ChatFormat;

class ChatTemplate {
 public:
  enum class Family : std::uint8_t { chatml, llama3, mistral, gemma, tiny };

  // Throws std::runtime_error that lists the known families when the file matches none.
  ChatTemplate(const ModelConfig& config, const TokenizerSpec& spec);

  [[nodiscard]] Family family() const;
  [[nodiscard]] std::string_view name() const;

  // The family's models can think aloud before they answer: <think> … </think>.
  [[nodiscard]] bool thinks() const { return thinks_; }

  // The prompt ends inside a thought, which the reply goes on with.
  [[nodiscard]] bool opens_thought(const Conversation& conversation) const {
    return thinks_ && conversation.thinking.wanted && !conversation.continues_assistant;
  }

  // The whole prompt in order: tools, system, messages, then the opening of the assistant's turn
  // (or the unfinished assistant turn). Exactly one fragment per item has `ends_item`.
  //
  // Tools come before the caller's system text, also where a family's own template has them behind
  // it, so that requests share the tools' prefix whatever their system text is (C-1).
  //
  // Where an item ends decides what a cached prefix may be reused for, so text before an item's end
  // depends on no later item, but for one thing: whether the item is the last of its turn.
  //  - The closing of a section or turn and the opening of the next belong to the first item of the
  //    next. That an item is the last of the tools, of the system text, or of an assistant turn
  //    changes nothing in front of its end.
  //  - But the last item of a user turn takes the closing of that turn and the opening of the
  //    assistant's turn: nothing else follows a user turn, now or in later requests, and so the
  //    last item ends where the prompt ends. (A system turn between the messages counts as part of
  //    the user turn before it.)
  //  - What joins two items of one turn belongs to the later one.
  //  - Where thinking is wanted from a model that can, all assistant turns open with a thought,
  //    which is closed at once in those that have none.
  [[nodiscard]] std::vector<Fragment> render(const Conversation& conversation) const;

  // Tokens that end the assistant's turn.
  [[nodiscard]] std::vector<std::int32_t> stop_tokens(const Tokenizer& tokenizer) const;

  // How the family writes a tool call in a reply.
  enum class CallSyntax : std::uint8_t {
    tagged,     // <tool_call>{"name": …, "arguments": {…}}</tool_call>
    listed,     // <tool_call>[{"name": …, "arguments": {…}}, …]</tool_call>
    bare,       // {"name": …, "parameters": {…}}
    bracketed,  // [TOOL_CALLS][{"name": …, "arguments": {…}}, …]
  };
  [[nodiscard]] CallSyntax call_syntax() const;

  // The model begins its replies with a blank that belongs to the tokenizer, not to the text.
  [[nodiscard]] bool replies_start_with_blank() const { return replies_start_with_blank_; }

 private:
  const ChatFormat* format_;    // static
  std::string bos_;             // spelling of the beginning-of-text token, or empty
  std::string default_system_;  // what the family puts in when the caller gives no system text
  bool thinks_ = false;
  bool writes_no_thought_ = false;  // answers at once when its turn begins with an empty thought
  bool replies_start_with_blank_ = false;
};

}  // namespace incipit::gateway
