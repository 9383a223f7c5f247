// Token ids to pieces of content blocks: whole UTF-8 characters, thoughts and tool calls recognised
// in the family's own format, stop sequences cut. Stop sequences count in text alone.
#pragma once

#include "gateway/prompt/chat_template.h"
#include "gateway/prompt/conversation.h"
#include "gateway/prompt/tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {

struct Piece {
  enum class Kind : std::uint8_t {
    thinking_start,
    thinking,  // `text`: more of the current thought
    text_start,
    text,        // `text`: more of the current text block
    tool_start,  // `name`
    tool_input,  // `text`: more of the input JSON; the pieces of a call join to one JSON object,
                 // unless the reply ended before it did
    stop,        // the current block ends
  };
  Kind kind = Kind::text;
  std::string text;
  std::string name;
};

class ReplyParser {
 public:
  // A small model that has begun to repeat a call would go on to the end of its budget.
  static constexpr int most_calls = 16;

  // References stay alive as long as the parser.
  ReplyParser(const Conversation& conversation, const ChatTemplate& chat_template,
              const Tokenizer& tokenizer);
  ~ReplyParser();

  // After a stop sequence has matched, further tokens are ignored.
  [[nodiscard]] std::vector<Piece> feed(std::int32_t token);
  // Flushes what was held back (an unfinished character becomes U+FFFD) and closes the open block.
  [[nodiscard]] std::vector<Piece> finish();

  [[nodiscard]] const std::optional<std::string>& stop_sequence() const;
  [[nodiscard]] bool called_tools() const;
  // Tokens fed until the thought had ended.
  [[nodiscard]] std::int64_t thinking_tokens() const;
  // No more output is wanted: a stop sequence matched, or the last permitted tool call is complete.
  [[nodiscard]] bool done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
