// The one spelling of tool calls that a reply may have, in the words of the model's family. Replies
// are held to it while they are generated, so reading them needs no more than this.
#pragma once

#include "gateway/prompt/chat_template.h"

#include <string>
#include <string_view>

namespace incipit::gateway {

// TRIGGER OPEN CALL (JOIN CALL)* CLOSE, where CALL is `head(name)`, the input's JSON and TAIL.
// Where nothing joins calls, the next one begins with the trigger again.
struct CallGrammar {
  std::string_view trigger, open;
  std::string_view before_name, behind_name;  // the name is a JSON string
  std::string_view tail, join, close;

  [[nodiscard]] static const CallGrammar& of(ChatTemplate::CallSyntax syntax);

  [[nodiscard]] std::string head(std::string_view name) const;
};

}  // namespace incipit::gateway
