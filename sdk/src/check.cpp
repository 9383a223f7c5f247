// Rules for tools and settings, and the order in which all rules are looked at.
// Source: anthropic-wire sections 4, 6, 7 and 8; anthropic-cache-semantics sections 15 and 18.
#include "checks.h"
#include "incipit/prompt.h"
#include "json_slices.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

namespace incipit {
namespace {

constexpr std::size_t most_messages = 100'000;
constexpr std::int64_t least_budget = 1024;
constexpr std::size_t longest_name = 128;
constexpr std::size_t longest_user_id = 256;

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The literal of that member of an object; empty without one.
std::string_view member(std::string_view object, std::string_view name) {
  std::string_view found;
  for (const JsonMemberSlice& each : json_members(object)) {
    if (each.is_named(name)) found = each.value;
  }
  return found;
}

void check_set(const Path& path, const std::optional<std::string>& text) {
  if (text) check_utf8(path, *text);
}

bool forces_tool(const MessageRequest& request) {
  return request.tool_choice
         && (request.tool_choice->type == ToolChoice::Type::any
             || request.tool_choice->type == ToolChoice::Type::tool);
}

bool thinks_by_budget(const MessageRequest& request) {
  return request.thinking && request.thinking->type == Thinking::Type::enabled;
}

void check_options(const Path& path, const Tool& tool) {
  constexpr std::array typed = {
      "name",          "description", "input_schema",    "input_examples",        "defer_loading",
      "cache_control", "strict",      "allowed_callers", "eager_input_streaming", "type"};
  if (tool.options.empty()) return;
  const Path options(path, "options");
  if (!tool.options.is_object()) refuse("W-6.1", options, "must be a JSON object");
  for (const JsonMemberSlice& each : json_members(tool.options.text())) {
    const std::string name = json_unescaped(each.key);
    if (contains(typed, name)) {
      refuse("W-6.1", options, "'" + name + "' has a member of its own; set that instead");
    }
  }
}

void check_schema(const Path& path, const Tool& tool) {
  const Path schema(path, "input_schema");
  if (!tool.input_schema.is_object()) {
    refuse("W-6.1", schema, "a tool needs the JSON Schema of its input, a JSON object");
  }
  if (member(tool.input_schema.text(), "type") != "\"object\"") {
    refuse("W-6.1", Path(schema, "type"), "the schema of a tool's input must have type \"object\"");
  }
}

void check_tools(const MessageRequest& request) {
  const Path tools("tools");
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < request.tools.size(); ++i) {
    const Tool& tool = request.tools[i];
    const Path path(tools, i);
    check_tool(path, tool);
    if (!tool.name.empty() && !names.insert(tool.name).second) {
      refuse("W-6.1", Path(path, "name"),
             "tool names must be unique; '" + shown(tool.name) + "' was there before");
    }
  }
  if (!request.tools.empty() && std::ranges::all_of(request.tools, &Tool::defer_loading)) {
    refuse("C-74", tools,
           "at least one tool must have defer_loading=false. All tools cannot be deferred");
  }
}

void check_tool_choice(const MessageRequest& request) {
  const ToolChoice& choice = *request.tool_choice;
  const Path path("tool_choice");
  check_utf8(Path(path, "name"), choice.name);
  if (choice.type == ToolChoice::Type::any && request.tools.empty()) {
    refuse("W-6.4", path, "\"any\" may only be specified while providing tools");
  }
  // A toolset has no name of its own and brings tools whose names are not here.
  const bool known = std::ranges::any_of(request.tools, [&](const Tool& tool) {
    return tool.name.empty() || tool.name == choice.name;
  });
  if (choice.type == ToolChoice::Type::tool && !known) {
    refuse("W-6.4", Path(path, "name"),
           "tool '" + shown(choice.name) + "' not found in provided tools");
  }
}

void check_prewarm(const MessageRequest& request) {
  const auto conflict = [](std::string_view path, std::string_view with) {
    refuse("C-90", Path(path),
           "max_tokens 0 (fill the cache, generate nothing) cannot be combined with "
               + std::string(with));
  };
  if (request.stream) conflict("stream", "stream");
  if (thinks_by_budget(request)) conflict("thinking.type", "thinking of type \"enabled\"");
  if (request.output_format) conflict("output_config.format", "output_config.format");
  if (forces_tool(request)) conflict("tool_choice", "tool_choice of type \"any\" or \"tool\"");
}

void check_thinking(const MessageRequest& request) {
  const Path path("thinking");
  check_utf8(Path(path, "display"), request.thinking->display);
  if (!thinks_by_budget(request)) return;
  const Path budget(path, "budget_tokens");
  if (request.thinking->budget_tokens < least_budget) {
    refuse("W-7.1", budget, "must be at least 1024");
  }
  if (request.thinking->budget_tokens >= request.max_tokens) {
    refuse("W-7.1", budget,
           "max_tokens (" + std::to_string(request.max_tokens)
               + ") must be greater than thinking.budget_tokens ("
               + std::to_string(request.thinking->budget_tokens)
               + "), since it includes what is thought");
  }
  if (forces_tool(request)) {
    refuse("W-6.4", Path("tool_choice"),
           "\"any\" and \"tool\" do not go with thinking of type \"enabled\"; use \"auto\" or "
           "\"none\"");
  }
}

void check_output_format(const MessageRequest& request) {
  const Path path("output_config.format");
  if (!request.output_format->is_object()) refuse("W-7.3", path, "must be a JSON object");
  if (!request.messages.empty() && request.messages.back().role == MessageRole::assistant
      && !request.messages.back().content.empty()
      && request.messages.back().content.back().is<TextBlock>()) {
    refuse("W-7.3", path,
           "structured output does not go with a reply whose beginning is given; end with a user "
           "message");
  }
}

void check_sampling(const MessageRequest& request, WireVersion version) {
  const auto check_one = [&](std::string_view name, bool set, bool in_range,
                             const std::string& range) {
    if (!set) return;
    if (version == WireVersion::of_2026) {
      refuse("W-4", Path(name),
             "version 2026-10-21 has no " + std::string(name)
                 + "; leave it out, or send version 2023-06-01");
    }
    if (!in_range) refuse("W-4", Path(name), "must be " + range);
  };
  const auto in_unit = [](const std::optional<double>& number) {
    return number && *number >= 0.0 && *number <= 1.0;
  };
  check_one("temperature", request.temperature.has_value(), in_unit(request.temperature),
            "between 0 and 1");
  check_one("top_p", request.top_p.has_value(), in_unit(request.top_p), "between 0 and 1");
  check_one("top_k", request.top_k.has_value(), request.top_k.value_or(0) >= 0, "0 or more");
}

void check_words(const MessageRequest& request) {
  const Path stops("stop_sequences");
  for (std::size_t i = 0; i < request.stop_sequences.size(); ++i) {
    const Path stop(stops, i);
    check_utf8(stop, request.stop_sequences[i]);
    if (is_blank(request.stop_sequences[i])) {
      refuse("W-4", stop, "each stop sequence must contain non-whitespace");
    }
  }
  const std::string user = request.user_id.value_or("");
  const Path user_id("metadata.user_id");
  check_utf8(user_id, user);
  const auto characters = std::ranges::count_if(
      user, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  if (static_cast<std::size_t>(characters) > longest_user_id) {
    refuse("W-4", user_id,
           std::to_string(characters) + " characters; at most 256 are taken: send a hash of it");
  }
  check_set(Path("service_tier"), request.service_tier);
  check_set(Path("inference_geo"), request.inference_geo);
  check_set(Path("speed"), request.speed);
  if (request.diagnostics) {
    check_set(Path("diagnostics.previous_message_id"), request.diagnostics->previous_message_id);
  }
}

void check_extra(const MessageRequest& request) {
  constexpr std::array typed = {"model",       "max_tokens",    "tools",          "system",
                                "messages",    "cache_control", "tool_choice",    "thinking",
                                "temperature", "top_p",         "top_k",          "stream",
                                "metadata",    "speed",         "stop_sequences", "service_tier",
                                "container",   "inference_geo", "diagnostics"};
  if (request.extra.empty()) return;
  const Path path("extra");
  if (!request.extra.is_object()) refuse("W-4", path, "must be a JSON object");
  for (const JsonMemberSlice& each : json_members(request.extra.text())) {
    const std::string name = json_unescaped(each.key);
    // Betas have more members in output_config than effort and format.
    const bool config = name == "output_config" && (request.effort || request.output_format);
    if (config || contains(typed, name)) {
      refuse("W-4", path, "'" + name + "' has a member of its own; set that instead");
    }
  }
}

void check_settings(const MessageRequest& request, WireVersion version) {
  const Path model("model");
  check_utf8(model, request.model);
  if (is_blank(request.model)) refuse("W-4", model, "name a model");
  if (request.max_tokens < 0) {
    refuse("W-4", Path("max_tokens"), "must be greater than or equal to 0");
  }
  check_extra(request);
  check_words(request);
  check_sampling(request, version);
  if (request.max_tokens == 0) check_prewarm(request);
  if (request.thinking) check_thinking(request);
  if (request.output_format) check_output_format(request);
}

// Content first: what follows speaks of ids and names that are known to be text by then.
void check_messages(const MessageRequest& request, WireVersion version, bool needed) {
  const Path messages("messages");
  const bool continued = continues_thread(request);
  if (needed && !continued && request.messages.empty()) {
    refuse("W-4.1", messages, "at least one message is required");
  }
  if (request.messages.size() > most_messages) {
    refuse("W-4.1", messages,
           std::to_string(request.messages.size()) + " messages; at most 100000 are taken");
  }
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const MessageParam& message = request.messages[i];
    const Path place(messages, i);
    const Path content(place, "content");
    for (std::size_t j = 0; j < message.content.size(); ++j) {
      check_block(Path(content, j), message.content[j], message.role, version);
    }
  }
  check_turns(request.messages, {.continued = continued});
}

}  // namespace

void check_tool(const Path& path, const Tool& tool) {
  const Path name(path, "name");
  check_utf8(name, tool.name);
  check_set(Path(path, "description"), tool.description);
  check_utf8(Path(path, "type"), tool.type);
  for (const std::string& caller : tool.allowed_callers)
    check_utf8(Path(path, "allowed_callers"), caller);
  if (tool.defer_loading && tool.cache_control) {
    refuse("E-7", path,
           "tool '" + shown(tool.name)
               + "' cannot have both defer_loading=true and cache_control set. Tools with "
                 "defer_loading cannot use prompt caching; mark one that is not deferred");
  }
  check_options(path, tool);
  if (!tool.type.empty() && tool.type != "custom") return;
  if (!is_identifier(tool.name, longest_name)) {
    refuse("W-6.1", name,
           "'" + shown(tool.name)
               + "' should match '^[a-zA-Z0-9_-]{1,128}$': letters, digits, _ and -");
  }
  check_schema(path, tool);
}

bool continues_thread(const MessageRequest& request) {
  if (!request.extra.is_object()) return false;
  const std::string_view thread = member(request.extra.text(), "thread");
  return thread.starts_with('{') && member(thread, "type") == "\"continue\"";
}

void check_request(const MessageRequest& request, WireVersion version, bool messages) {
  check_settings(request, version);
  check_tools(request);
  if (request.tool_choice && !continues_thread(request)) check_tool_choice(request);
  const Path system("system");
  for (std::size_t i = 0; i < request.system.size(); ++i)
    check_system_block(Path(system, i), request.system[i]);
  check_messages(request, version, messages);
  check_markers(request);
}

void check(const MessageRequest& request, std::string_view version) {
  // An unknown date is taken for the newest (W-6).
  const bool old = version == "2023-06-01";
  check_request(request, old ? WireVersion::of_2023 : WireVersion::of_2026, true);
}

}  // namespace incipit
