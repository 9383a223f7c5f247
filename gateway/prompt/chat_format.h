// How a model family writes a conversation, as data: one entry per family or variant of one.
#pragma once

#include "gateway/prompt/chat_template.h"

#include <array>
#include <string_view>

namespace incipit::gateway {

// Literal text; special tokens are spelled out. In the patterns of single items
//   $n is the tool's name, $d its description, $q the text, each escaped for a JSON string; $N and
//   $D as they are, $t the text as it is, $s the schema, $i the id in nine letters and digits, $e
//   "Error: " when the tool failed.
struct ChatFormat {
  ChatTemplate::Family family;
  std::string_view name;
  std::string_view marker;  // a piece that every vocabulary of this format has as a special token

  std::string_view system_open;  // of the system section; with `tools_open` the two alternatives
  std::string_view system_close;
  bool always_has_system = false;           // opened even when there is no text for it
  bool system_joins_user = false;           // no turn of its own: leads the first user turn
  std::string_view later_system_open = {};  // of a system turn between the messages

  std::string_view user_open, user_close;
  std::string_view assistant_open, assistant_close;
  std::string_view join;  // between two items of one turn

  std::string_view tools_open;
  std::string_view tool = {};  // pattern
  std::string_view tool_join = {};
  std::string_view tools_close = {};        // after the last tool …
  std::string_view tools_then_system = {};  // … when system text follows
  std::string_view tools_then_turn = {};    // … when none does
  bool tools_join_user = false;  // then: no turn of their own, they lead the first user turn

  ChatTemplate::CallSyntax call_syntax = ChatTemplate::CallSyntax::tagged;  // in replies
  std::string_view call = {};                                               // pattern of a tool_use
  std::string_view calls_open = {}, calls_join = {}, calls_close = {};      // around a run of them
  std::string_view result = {};                          // pattern of a tool_result
  bool result_is_turn = false;                           // a result is no part of a user turn
  std::string_view result_open = {}, result_close = {};  // then: around each

  std::array<std::string_view, 3> stops;  // special tokens that end the assistant's turn
};

// Throws std::runtime_error that lists the known formats when the file matches none.
[[nodiscard]] const ChatFormat& recognise_format(const ModelConfig& config,
                                                 const TokenizerSpec& spec);

}  // namespace incipit::gateway
