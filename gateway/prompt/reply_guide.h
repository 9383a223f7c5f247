// Holds a reply to what was asked of it: calls in the family's spelling, inputs and output that are
// valid for their schemas, thoughts that end in time.
#pragma once

#include "gateway/constrain/shape.h"
#include "gateway/prompt/chat_template.h"
#include "gateway/prompt/conversation.h"
#include "gateway/prompt/tokenizer.h"

#include <chrono>
#include <memory>

namespace incipit::gateway {

// Made once per model. Compiled shapes are kept, the ones used last, so that a conversation pays
// for its tools and schemas once. Any thread.
class ReplyGuides {
 public:
  ReplyGuides(const ChatTemplate& chat_template, const Tokenizer& tokenizer);
  ~ReplyGuides();

  // Null where any reply will do. Schemas are strict for output formats and strict tools, lenient
  // for other tools; the input of a tool that need not be called is just an object when its schema
  // goes beyond what can be guaranteed. Throws constrain::SchemaError, or constrain::ShapeError
  // when the model's vocabulary cannot write what is asked.
  [[nodiscard]] std::shared_ptr<TokenGuide> guide(const Conversation& conversation) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
