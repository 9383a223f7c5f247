// Tool calls in a stream of reply text.
#pragma once

#include "gateway/prompt/call_grammar.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

struct Finding {
  enum class Kind : std::uint8_t {
    text,
    call,   // `text` is the tool's name
    input,  // more of the call's input; the inputs of a call join to one JSON object
    end     // of the call
  };
  Kind kind = Kind::text;
  std::string text;
};

class CallFinder {
 public:
  // Calls of tools that are not in `tools` are text, as is what is spelled in another way. Keeps a
  // reference to `grammar`.
  CallFinder(const CallGrammar& grammar, const std::vector<std::string>& tools);

  // Appends what is certain now: an input as it comes. Held back: what may be the beginning of a
  // call, and white space that would be dropped if a call came next.
  void feed(std::string_view text, std::vector<Finding>& findings);
  // Appends the rest. An input that has not ended is left as it is.
  void finish(std::vector<Finding>& findings);

  // Between the trigger of a call and its end.
  [[nodiscard]] bool is_inside() const { return phase_ != Phase::outside; }

 private:
  enum class Phase : std::uint8_t { outside, opening, head, input, tail, behind };

  bool step(std::vector<Finding>& findings);
  bool step_outside(std::vector<Finding>& findings);
  bool step_head(std::vector<Finding>& findings);
  bool step_input(std::vector<Finding>& findings);
  bool pass(std::string_view literal, Phase next, std::vector<Finding>& findings);
  bool give_up(std::vector<Finding>& findings);
  void emit_text(std::string_view text, std::vector<Finding>& findings);

  // How far a JSON object reaches, found byte by byte.
  struct Extent {
    int depth = 0;
    bool in_string = false, escaped = false;
    // How much of `text` belongs to it; `depth` is 0 when that is its end.
    std::size_t advance(std::string_view text);
  };

  const CallGrammar& grammar_;
  std::vector<std::string> tools_, heads_;
  Phase phase_ = Phase::outside;
  std::string held_;  // not yet given out
  std::string
      opened_;  // what has been passed since the text before the trigger, should it be no call
  Extent extent_;
  bool has_text_ = false;  // in the present text block
  bool has_called_ = false;
};

}  // namespace incipit::gateway
