#include "gateway/prompt/call_grammar.h"

#include "incipit/json.h"

namespace incipit::gateway {

CallGrammar::CallGrammar(ChatTemplate::CallSyntax syntax) {
  switch (syntax) {
    case ChatTemplate::CallSyntax::tagged:
      trigger = "<tool_call>";
      before_name_ = "\n{\"name\": ";
      behind_name_ = ", \"arguments\": ";
      tail = "}\n</tool_call>";
      break;
    case ChatTemplate::CallSyntax::listed:
      trigger = "<tool_call>";
      open = "[\n";
      before_name_ = "{\"name\": ";
      behind_name_ = ", \"arguments\": ";
      tail = "}";
      join = ",\n";
      close = "\n]</tool_call>";
      break;
    case ChatTemplate::CallSyntax::bare:
      trigger = "{\"name\": ";
      behind_name_ = ", \"parameters\": ";
      tail = "}";
      break;
    case ChatTemplate::CallSyntax::bracketed:
      trigger = "[TOOL_CALLS]";
      open = "[";
      before_name_ = "{\"name\": ";
      behind_name_ = ", \"arguments\": ";
      tail = "}";
      join = ", ";
      close = "]";
      break;
  }
}

std::string CallGrammar::head(std::string_view name) const {
  std::string text(before_name_);
  JsonWriter(text).string(name);
  return text.append(behind_name_);
}

}  // namespace incipit::gateway
