#include "gateway/api/anthropic_rules.h"

#include "gateway/api/anthropic_block_text.h"
#include "gateway/api/anthropic_fields.h"
#include "gateway/api/error.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace incipit::gateway {
namespace {

const ModelRow* find_row(const std::string& model) {
  const auto& table = model_table();
  const auto row = std::ranges::find(table, std::string_view(model), &ModelRow::id);
  return row == table.end() ? nullptr : &*row;
}

bool forces_tool(const MessageRequest& request) {
  return request.tool_choice
         && (request.tool_choice->type == ToolChoice::Type::any
             || request.tool_choice->type == ToolChoice::Type::tool);
}

std::string_view name_of(Thinking::Type type) {
  switch (type) {
    case Thinking::Type::adaptive:
      return "adaptive";
    case Thinking::Type::enabled:
      return "enabled";
    case Thinking::Type::between_tools:
      return "between_tools";
    case Thinking::Type::disabled:
      break;
  }
  return "disabled";
}

[[noreturn]] void refuse_thinking(Thinking::Type type) {
  if (type == Thinking::Type::adaptive) {
    throw invalid_request("adaptive thinking is not supported on this model");
  }
  std::string message =
      "\"thinking.type." + std::string(name_of(type)) + "\" is not supported for this model.";
  if (type != Thinking::Type::between_tools) {
    message +=
        " Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking "
        "behavior.";
  }
  throw invalid_request(message);
}

void check_tool_counts(const std::vector<Tool>& tools) {
  constexpr std::ptrdiff_t most_deferred = 10'000;  // C-74
  constexpr std::ptrdiff_t most_strict = 20;        // section 7.3
  const auto deferred = std::ranges::count_if(tools, &Tool::defer_loading);
  if (deferred > most_deferred) {
    ApiError error = invalid_request("tools: at most " + std::to_string(most_deferred)
                                     + " tools may have defer_loading=true. Found "
                                     + std::to_string(deferred) + ".");
    error.error_code = "available_tools_limit_exceeded";
    throw error;
  }
  const auto strict =
      std::ranges::count_if(tools, [](const Tool& tool) { return tool.strict.value_or(false); });
  if (strict > most_strict) {
    throw invalid_request("tools: at most " + std::to_string(most_strict)
                          + " tools may have strict=true. Found " + std::to_string(strict) + ".");
  }
}

void check_forced_tool(const MessageRequest& request, const ModelTraits& traits) {
  const ToolChoice& choice = *request.tool_choice;
  if (choice.type == ToolChoice::Type::any && request.tools.empty()) {
    throw invalid_request("tool_choice.any may only be specified while providing tools");
  }
  if (choice.type == ToolChoice::Type::tool
      && std::ranges::find(request.tools, choice.name, &Tool::name) == request.tools.end()) {
    throw invalid_request("Tool '" + shown(choice.name) + "' not found in provided tools");
  }
  if (!traits.forced_tool_use) {
    throw invalid_request(
        "tool_choice: type \"tool\" and \"any\" are not supported for this model.");
  }
  if (request.thinking && request.thinking->type == Thinking::Type::enabled) {
    throw invalid_request("Thinking may not be enabled when tool_choice forces tool use.");
  }
}

}  // namespace

void check_max_tokens(const MessageRequest& request, const std::string& model) {
  const ModelRow* row = find_row(model);
  if (row != nullptr && request.max_tokens > row->max_output_tokens) {
    throw invalid_request("max_tokens: " + std::to_string(request.max_tokens) + " > "
                          + std::to_string(row->max_output_tokens)
                          + ", which is the maximum allowed number of output tokens for " + model);
  }
  if (request.max_tokens > 0) {
    if (request.thinking && request.thinking->budget_tokens >= request.max_tokens) {
      throw invalid_request("`max_tokens` must be greater than `thinking.budget_tokens`.");
    }
    return;
  }
  const auto conflict = [](std::string_view with) {
    throw invalid_request("max_tokens: 0 cannot be combined with " + std::string(with));
  };
  if (request.stream) conflict("stream: true");
  if (request.thinking && request.thinking->type == Thinking::Type::enabled) {
    conflict("thinking.type \"enabled\"");
  }
  if (request.output_format) conflict("output_config.format");
  if (forces_tool(request)) conflict("tool_choice of type \"tool\" or \"any\"");
}

void check_sampling(const MessageRequest& request, const ModelTraits& traits) {
  if (traits.sampling) return;
  const auto refuse = [](std::string_view name) {
    throw invalid_request(std::string(name)
                          + ": non-default values are not supported for this model; leave it out");
  };
  if (request.temperature && *request.temperature != 1.0) refuse("temperature");
  if (request.top_p && *request.top_p != 1.0) refuse("top_p");
  if (request.top_k && *request.top_k != 0) refuse("top_k");
}

void check_output_format(const MessageRequest& request) {
  if (!request.output_format) return;
  const auto conflict = [](std::string_view with) {
    throw invalid_request("output_config.format: structured output cannot be combined with "
                          + std::string(with));
  };
  if (wants_citations(request)) {
    conflict("citations; leave `citations` out of documents and search results");
  }
  if (request.messages.back().role == MessageRole::assistant) {
    conflict("prefill; end the conversation with a user message");
  }
}

void check_offered(const MessageRequest& request, const std::vector<bool>& offered) {
  if (!request.tool_choice || request.tool_choice->type != ToolChoice::Type::tool) return;
  const auto tool = std::ranges::find(request.tools, request.tool_choice->name, &Tool::name);
  if (offered[static_cast<std::size_t>(tool - request.tools.begin())]) return;
  throw invalid_request("tool_choice.tool.name: tool '" + tool->name
                        + "' has defer_loading=true and no `tool_reference` has named it yet");
}

void check_tools(const MessageRequest& request, const ModelTraits& traits) {
  std::unordered_set<std::string_view> names;
  for (const Tool& tool : request.tools) {
    if (!names.insert(tool.name).second) {
      throw invalid_request("tools: Tool names must be unique.");
    }
    if (tool.defer_loading && tool.cache_control) {
      throw invalid_request("Tool '" + tool.name
                            + "' cannot have both defer_loading=true and cache_control set. Tools "
                              "with defer_loading cannot use prompt caching.");
    }
  }
  if (!request.tools.empty() && std::ranges::all_of(request.tools, &Tool::defer_loading)) {
    throw invalid_request(
        "At least one tool must have defer_loading=false. All tools cannot be deferred.");
  }
  check_tool_counts(request.tools);
  if (forces_tool(request)) check_forced_tool(request, traits);
}

void check_thinking(const MessageRequest& request, const ModelTraits& traits) {
  if (!request.thinking) return;
  const Thinking& thinking = *request.thinking;
  switch (traits.thinking[static_cast<std::size_t>(thinking.type)]) {
    case ThinkingSupport::accepted:
      break;
    case ThinkingSupport::refused:
      refuse_thinking(thinking.type);
    case ThinkingSupport::accepted_to_high_effort: {
      const Effort effort = request.effort.value_or(traits.default_effort);
      if (effort <= Effort::high) break;
      const bool disabled = thinking.type == Thinking::Type::disabled;
      throw invalid_request("output_config.effort '"
                            + std::string(effort == Effort::max ? "max" : "xhigh")
                            + "' is not supported when thinking is "
                            + (disabled ? "disabled" : "limited to between tools")
                            + " on this model. Use effort 'high' or below, or enable thinking.");
    }
  }
}

}  // namespace incipit::gateway
