// What the hosted API lets a model's requests contain, by line and generation.
// Source: anthropic-wire sections 4, 6.4, 7; anthropic-cache-semantics C-75.
#pragma once

#include "incipit/anthropic.h"

#include <array>
#include <string_view>

namespace incipit::gateway {

// Whether a thinking mode may be asked for.
enum class ThinkingSupport : std::uint8_t {
  accepted,
  accepted_to_high_effort,  // not together with xhigh and max
  refused,
};

struct ModelTraits {
  bool prefill = true;          // the conversation may end with an assistant message
  bool system_messages = true;  // role "system" inside `messages`
  bool sampling = true;         // temperature, top_p, top_k other than the default
  bool forced_tool_use = true;  // tool_choice any and tool
  bool thinks_by_default = false;
  bool shows_thinking = true;   // thinking.display where the request leaves it out
  bool keeps_thinking = true;   // of earlier turns in the prompt (C-64)
  bool binds_thinking = false;  // to the content before it: preserved thinking
  Effort default_effort = Effort::high;
  std::array<ThinkingSupport, 4> thinking{};  // by Thinking::Type
};

// By canonical id. A name that is not of the shape claude-LINE-GENERATION (the local model's own
// name among them) may do everything: what it cannot do is then the local model's matter.
[[nodiscard]] ModelTraits model_traits(std::string_view model);

}  // namespace incipit::gateway
