// Tool calls in a stream of reply text.
#pragma once

#include "gateway/prompt/chat_template.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

struct ToolCall {
  std::string name;
  std::string input;  // a JSON object, exactly as the model wrote it
};

// Either text or a call.
struct Finding {
  std::string text;
  std::optional<ToolCall> call;
};

class CallFinder {
 public:
  // Calls of tools that are not in `tools` are text, as is everything malformed.
  CallFinder(ChatTemplate::CallSyntax syntax, std::vector<std::string> tools);

  // Appends what is certain now. Held back: an unfinished call, what may be the beginning of one,
  // and white space that would be dropped if a call came next.
  void feed(std::string_view text, std::vector<Finding>& findings);
  // Appends the rest. A whole call whose closing tag is missing still counts.
  void finish(std::vector<Finding>& findings);

 private:
  enum class Phase : std::uint8_t { outside, inside, only_text };

  // How far a JSON value reaches, found byte by byte.
  struct Extent {
    std::size_t at = 0;  // bytes looked at
    int depth = 0;
    bool in_string = false, escaped = false;
    bool is_whole = false;
    void advance(std::string_view text);
  };

  bool step_outside(std::vector<Finding>& findings);
  bool step_inside(std::vector<Finding>& findings);
  void look_for_bare_call();
  bool take_calls(std::string_view json, std::vector<Finding>& findings);
  void give_up(std::vector<Finding>& findings);
  void emit(std::string_view text, std::vector<Finding>& findings);

  ChatTemplate::CallSyntax syntax_;
  std::string_view opening_, closing_;
  std::vector<std::string> tools_;
  Phase phase_ = Phase::outside;
  std::string held_;       // outside: text that is not certain; inside: what follows the opening
  std::string opened_;     // inside: white space and opening as they came, should it be no call
  Extent extent_;          // inside, of `held_`
  bool has_text_ = false;  // in the present text block
  bool has_called_ = false;
};

}  // namespace incipit::gateway
