// The thinking of a request: the blocks that it sends back, and how its reply is to think.
// Source: anthropic-wire section 7.1; anthropic-cache-semantics C-63..C-69, C-76, C-115.
#pragma once

#include "gateway/api/anthropic_flatten.h"
#include "gateway/api/anthropic_traits.h"
#include "gateway/prompt/conversation.h"
#include "incipit/anthropic.h"

#include <cstdint>
#include <string>
#include <vector>

namespace incipit::gateway {

// What the model does when the request leaves thinking out counts too.
[[nodiscard]] Thinking::Type thinking_mode(const MessageRequest& request,
                                           const ModelTraits& traits);

// For the reply to `prompt`.
[[nodiscard]] ThinkingPlan plan_thinking(const MessageRequest& request, const ModelTraits& traits,
                                         const Flattened& prompt);

// Throws ApiError for thoughts that were not signed here, for a changed text in the latest
// assistant message, and for a thought to be continued. The text of an earlier block, and one
// written into the empty field of a block that was not shown, do not matter: what was signed
// counts.
void check_thoughts(const MessageRequest& request);

// Preserved thinking: throws ApiError for the first thought that was signed for other content than
// it follows here; or, if it `drops`, takes it out together with the thoughts right behind it.
// Returns the entries of `input_transformations`, a JSON array.
[[nodiscard]] std::string check_bindings(Flattened& prompt, const MessageRequest& request,
                                         bool drops);

enum class KeptThoughts : std::uint8_t { all, current_turn, none };

// Takes out the thoughts that the model does not see again, and turn-scoped system messages once
// there is a later user message.
void strip(Flattened& prompt, KeptThoughts kept);

// The number of the assistant's turn that each item belongs to, from 0. Such a turn lasts until the
// user says something: a loop of calls and results is one.
[[nodiscard]] std::vector<int> assistant_turns(const Flattened& prompt);

}  // namespace incipit::gateway
