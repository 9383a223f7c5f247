// What the values of a request must fulfil together, given the model. Each function throws
// ApiError. Source: anthropic-wire sections 4, 6.4, 7, 8; anthropic-cache-semantics sections 15
// and 18.
#pragma once

#include "gateway/api/anthropic_request.h"
#include "gateway/api/anthropic_traits.h"
#include "incipit/anthropic.h"

#include <vector>

namespace incipit::gateway {

// Roles in order, content not empty, prefill, and each tool_use answered (4.1, 4.2).
void check_messages(const MessageRequest& request, const ModelTraits& traits);

// max_tokens against the model's cap and against what a pre-warming request may contain (C-90).
void check_max_tokens(const MessageRequest& request, const std::string& model);

void check_sampling(const MessageRequest& request, const ModelTraits& traits);

// Names, numbers, deferral, and tool_choice against tools, model and thinking.
void check_tools(const MessageRequest& request, const ModelTraits& traits);

// What a schema for the reply cannot be combined with (7.3).
void check_output_format(const MessageRequest& request);

// A tool that must be called is one that the model has been told of; `offered` by place in `tools`.
void check_offered(const MessageRequest& request, const std::vector<bool>& offered);

// Thinking and effort against the model.
void check_thinking(const MessageRequest& request, const ModelTraits& traits);

}  // namespace incipit::gateway
