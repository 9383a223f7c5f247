#include "gateway/api/anthropic_request.h"

#include "gateway/api/anthropic_body.h"
#include "gateway/api/anthropic_caching.h"
#include "gateway/api/anthropic_flatten.h"
#include "gateway/api/anthropic_rules.h"
#include "gateway/api/anthropic_thinking.h"
#include "incipit/json.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

namespace incipit::gateway {
namespace {

std::uint64_t fresh_seed() {
  thread_local std::mt19937_64 generator{(static_cast<std::uint64_t>(std::random_device{}()) << 32U)
                                         ^ std::random_device{}()};
  return generator();
}

Sampling sampling_of(const MessageRequest& request) {
  Sampling sampling;
  sampling.temperature = static_cast<float>(request.temperature.value_or(1.0));
  sampling.top_p = static_cast<float>(request.top_p.value_or(1.0));
  sampling.top_k = static_cast<int>(
      std::min<std::int64_t>(request.top_k.value_or(0), std::numeric_limits<int>::max()));
  // Greedy requests keep one seed, so that equal requests are equal all through.
  if (sampling.temperature > 0) sampling.seed = fresh_seed();
  return sampling;
}

void fill_reply_settings(const MessageRequest& request, const std::vector<bool>& offered,
                         Conversation& conversation) {
  const ToolChoice choice = request.tool_choice.value_or(ToolChoice{});
  if (choice.type != ToolChoice::Type::none) {
    for (std::size_t i = 0; i < request.tools.size(); ++i) {
      const Tool& tool = request.tools[i];
      if (!offered[i]) continue;
      if (choice.type == ToolChoice::Type::tool && tool.name != choice.name) continue;
      const std::string path = "tools." + std::to_string(i) + ".";
      conversation.callable.push_back(
          {tool.name, tool.input_schema.text(), tool.strict.value_or(false),
           path + (tool.type.empty() ? "custom.input_schema" : tool.type)});
    }
  }
  conversation.must_call =
      choice.type == ToolChoice::Type::any || choice.type == ToolChoice::Type::tool;
  if (request.output_format) {
    conversation.output_schema = request.output_format->value().find("schema")->minified();
  }
  conversation.parallel_tool_calls = !choice.disable_parallel_tool_use;
  conversation.max_tokens =
      static_cast<int>(std::min<std::int64_t>(request.max_tokens, std::numeric_limits<int>::max()));
  conversation.sampling = sampling_of(request);
  conversation.stop_sequences = request.stop_sequences;
}

void set_items(Conversation& conversation, std::vector<Item> items) {
  conversation.continues_assistant =
      items.back().section == Section::messages && items.back().role == Role::assistant;
  conversation.items = std::move(items);
}

// Without thinking a model sees no thoughts (C-66). An edit of its own takes the place of what the
// model does by itself (C-64). C-115: counting leaves earlier turns' thoughts out.
KeptThoughts kept_thoughts(const MessageRequest& request, const ModelTraits& traits,
                           Endpoint endpoint, const std::optional<ContextEdits>& edits) {
  if (thinking_mode(request, traits) == Thinking::Type::disabled) return KeptThoughts::none;
  if (endpoint == Endpoint::count_tokens) return KeptThoughts::current_turn;
  const bool keeps = traits.keeps_thinking || (edits && edits->thinking);
  return keeps ? KeptThoughts::all : KeptThoughts::current_turn;
}

// Applies the edits. Returns the answer's context_management.
std::string edit(Flattened& prompt, const ContextEdits& edits, Endpoint endpoint,
                 const Conversation& settings, const RequestContext& context) {
  const TokenCount count = [&](const Flattened& counted) {
    Conversation conversation = settings;
    set_items(conversation, counted.items);
    return context.count_tokens(conversation);
  };
  std::string answer;
  JsonWriter json(answer);
  json.begin_object();
  if (endpoint == Endpoint::count_tokens) {
    json.key("original_input_tokens").integer(count(prompt));
    (void)apply_edits(prompt, edits, count);
  } else {
    json.key("applied_edits").raw(apply_edits(prompt, edits, count));
  }
  json.end_object();
  return answer;
}

MessagesRequest parse(std::string_view body, Endpoint endpoint, const RequestContext& context) {
  Reading reading{context};
  MessageRequest request = read_body(read_json(body), endpoint, reading);
  const auto model = resolve_model(request.model, context.local_model);
  if (!model) throw ApiError(404, "not_found_error", "model: " + shown(request.model));

  const ModelTraits traits = model_traits(*model);
  check_thinking(request, traits);
  check_tools(request, traits);
  if (endpoint == Endpoint::messages) check_max_tokens(request, *model);
  check_sampling(request, traits);
  check_messages(request, traits);
  check_output_format(request);
  check_thoughts(request);
  FileTexts files(reading);
  Flattened prompt = flatten(request, context.keep_billing_line, files);
  place_markers(prompt, request.cache_control);
  check_offered(request, prompt.offered);
  std::string transformations = "[]";
  if (traits.binds_thinking) {
    transformations = check_bindings(prompt, request, reading.drops_unbound_thoughts);
  }
  if (reading.refusal) throw *reading.refusal;

  MessagesRequest result;
  result.model = *model;
  result.stream = request.stream;
  result.dropped_billing_lines = prompt.dropped_billing_lines;
  result.content_key = prompt.content_key;
  describe_settings(request, *model, traits, context.settings_before_tools, result.conversation);
  fill_reply_settings(request, prompt.offered, result.conversation);
  strip(prompt, kept_thoughts(request, traits, endpoint, reading.context_management));
  result.conversation.thinking = plan_thinking(request, traits, prompt);
  if (reading.context_management) {
    result.context_management =
        edit(prompt, *reading.context_management, endpoint, result.conversation, context);
  }
  if (reading.has_beta("thinking-binding-controls-")) {
    result.input_transformations = std::move(transformations);
  }
  set_items(result.conversation, std::move(prompt.items));
  result.values = std::move(request);
  result.betas = context.betas;
  result.detailed_diagnostics = context.detailed_diagnostics;
  return result;
}

}  // namespace

MessagesRequest parse_messages(std::string_view body, const RequestContext& context) {
  return parse(body, Endpoint::messages, context);
}

MessagesRequest parse_count_tokens(std::string_view body, const RequestContext& context) {
  return parse(body, Endpoint::count_tokens, context);
}

}  // namespace incipit::gateway
