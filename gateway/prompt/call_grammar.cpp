#include "gateway/prompt/call_grammar.h"

#include "incipit/json.h"

#include <array>
#include <cstddef>

namespace incipit::gateway {

const CallGrammar& CallGrammar::of(ChatTemplate::CallSyntax syntax) {
  static constexpr std::array<CallGrammar, 4> grammars = {{
      {"<tool_call>", "", "\n{\"name\": ", ", \"arguments\": ", "}\n</tool_call>", "", ""},
      {"<tool_call>", "[\n", "{\"name\": ", ", \"arguments\": ", "}", ",\n", "\n]</tool_call>"},
      {"{\"name\": ", "", "", ", \"parameters\": ", "}", "", ""},
      {"[TOOL_CALLS]", "[", "{\"name\": ", ", \"arguments\": ", "}", ", ", "]"},
  }};
  return grammars.at(static_cast<std::size_t>(syntax));
}

std::string CallGrammar::head(std::string_view name) const {
  std::string text(before_name);
  JsonWriter(text).string(name);
  return text.append(behind_name);
}

}  // namespace incipit::gateway
