#include "gateway/api/anthropic_body.h"

#include <algorithm>
#include <array>
#include <utility>

namespace incipit::gateway {
namespace {

// Fields that exist only under a beta header; none of them is served yet.
struct BetaField {
  std::string_view name;
  std::string_view beta;
  bool counted;  // exists on count_tokens too
  std::string_view why = "not supported yet by this gateway";
};

constexpr std::array beta_fields = {
    BetaField{
        "compaction", "compact-", true,
        "compaction is not supported by this gateway; summarize the conversation in a request "
        "of your own and send the summary instead of its messages"},
    BetaField{"mcp_servers", "mcp-client-", true, "this gateway connects to no MCP servers"},
    BetaField{"fallbacks", "server-side-fallback-", false, "this gateway has no fallback models"},
    BetaField{"fallback_credit_token", "fallback-credit-", false,
              "this gateway gives no fallback credits"},
    BetaField{"billing_policy", "user-profiles-billing-", false, "this gateway bills nobody"},
};

void read_beta_fields(Fields& body, Endpoint endpoint, MessageRequest& request, Reading& reading) {
  if (reading.has_beta("context-management-") || reading.has_beta("compact-")) {
    if (const JsonValue* edits = body.unless_null("context_management")) {
      reading.context_management = read_context_management(*edits, reading);
      request.extra = JsonText::trusted("{\"context_management\":" + edits->minified() + "}");
    }
  }
  for (const BetaField& field : beta_fields) {
    if (endpoint == Endpoint::count_tokens && !field.counted) continue;
    if (!reading.has_beta(field.beta)) continue;
    if (body.unless_null(field.name) != nullptr) {
      reading.refuse(std::string(field.name), std::string(field.why));
    }
  }
}

// Clients fall back to whole requests on this error code, and on nothing else: so it is given
// whether the beta header was sent or not (C-87).
void refuse_thread(const JsonValue& body, const Reading& reading) {
  const JsonValue* thread = body.find("thread");
  if (thread == nullptr || thread->is_null()) return;
  ApiError error = invalid_request(
      reading.has_beta("message-threads-")
          ? "thread: message threads are not supported by this gateway; send the whole conversation"
          : "thread: Extra inputs are not permitted");
  error.error_code = "thread_unsupported_request";
  throw error;
}

ToolChoice read_tool_choice(const JsonValue& value) {
  Fields head(value, "tool_choice");
  const std::string& type = read_string(head.required("type"), "tool_choice.type");
  constexpr std::array<std::string_view, 4> tags = {"auto", "any", "tool", "none"};
  const auto tag = std::ranges::find(tags, std::string_view(type));
  if (tag == tags.end()) reject_tag("tool_choice", type, {"any", "auto", "none", "tool"});
  ToolChoice choice;
  choice.type = static_cast<ToolChoice::Type>(tag - tags.begin());
  Fields fields(value, "tool_choice." + type);
  (void)fields.required("type");
  if (choice.type == ToolChoice::Type::tool) {
    choice.name = read_string(fields.required("name"), fields.at("name"));
  }
  if (choice.type != ToolChoice::Type::none) {
    if (const JsonValue* disable = fields.optional("disable_parallel_tool_use")) {
      choice.disable_parallel_tool_use =
          read_boolean(*disable, fields.at("disable_parallel_tool_use"));
    }
  }
  fields.reject_others();
  return choice;
}

void read_block_binding(Fields& thinking, Reading& reading) {
  const JsonValue* value = thinking.unless_null("block_binding");
  if (value == nullptr) return;
  Fields fields(*value, thinking.at("block_binding"));
  if (fields.unless_null("prefix_mismatch_behavior") != nullptr) {
    reading.drops_unbound_thoughts =
        fields.choice("prefix_mismatch_behavior", {"error", "drop_block"}) == 1;
  }
  fields.reject_others();
}

Thinking read_thinking(const JsonValue& value, Reading& reading) {
  Fields head(value, "thinking");
  const std::string& type = read_string(head.required("type"), "thinking.type");
  constexpr std::array<std::string_view, 4> tags = {"adaptive", "enabled", "between_tools",
                                                    "disabled"};
  const auto tag = std::ranges::find(tags, std::string_view(type));
  if (tag == tags.end()) {
    reject_tag("thinking", type, {"adaptive", "between_tools", "disabled", "enabled"});
  }
  Thinking thinking;
  thinking.type = static_cast<Thinking::Type>(tag - tags.begin());
  Fields fields(value, "thinking." + type);
  (void)fields.required("type");
  if (thinking.type == Thinking::Type::enabled) {
    const std::string path = fields.at("budget_tokens");
    thinking.budget_tokens = read_integer(fields.required("budget_tokens"), path);
    if (thinking.budget_tokens < 1024) {
      throw invalid_request(path + ": Input should be greater than or equal to 1024");
    }
  }
  if (thinking.type == Thinking::Type::adaptive || thinking.type == Thinking::Type::enabled) {
    if (const JsonValue* display = fields.unless_null("display")) {
      if (reading.has_beta("thinking-display-updates-")) {
        (void)fields.choice("display", {"summarized", "omitted", "updates"});
      } else {
        (void)fields.choice("display", {"summarized", "omitted"});
      }
      thinking.display = display->as_string();
    }
    if (reading.has_beta("thinking-binding-controls-")) read_block_binding(fields, reading);
  }
  fields.reject_others();
  return thinking;
}

JsonText read_format(const JsonValue& value, const std::string& path) {
  Fields fields(value, path);
  (void)fields.choice("type", {"json_schema"});
  (void)read_object(fields.required("schema"), fields.at("schema"));
  fields.reject_others();
  return value;
}

void read_output_config(const JsonValue& value, MessageRequest& request, Reading& reading) {
  Fields fields(value, "output_config");
  if (fields.unless_null("effort") != nullptr) {
    request.effort =
        static_cast<Effort>(fields.choice("effort", {"low", "medium", "high", "xhigh", "max"}));
  }
  if (const JsonValue* format = fields.unless_null("format")) {
    request.output_format = read_format(*format, fields.at("format"));
  }
  if (reading.has_beta("task-budgets-") && fields.unless_null("task_budget") != nullptr) {
    reading.refuse("output_config.task_budget", "not supported yet by this gateway");
  }
  fields.reject_others();
}

// The name that output_config.format had before it was one.
void read_output_format(Fields& body, MessageRequest& request, const Reading& reading) {
  if (!reading.has_beta("structured-outputs-")) return;
  const JsonValue* value = body.unless_null("output_format");
  if (value == nullptr) return;
  if (request.output_format) {
    throw invalid_request(
        "output_format: cannot be given together with output_config.format, which replaces it");
  }
  request.output_format = read_format(*value, "output_format");
}

void read_metadata(const JsonValue& value) {
  Fields fields(value, "metadata");
  if (const JsonValue* user = fields.unless_null("user_id")) {
    const std::string& id = read_string(*user, "metadata.user_id");
    const auto continuation = [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    };
    if (id.size() - static_cast<std::size_t>(std::ranges::count_if(id, continuation)) > 256) {
      throw invalid_request("metadata.user_id: String should have at most 256 characters");
    }
  }
  fields.reject_others();
}

void read_stop_sequences(const JsonValue& value, MessageRequest& request) {
  const JsonValue::Array& list = read_list(value, "stop_sequences");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string& sequence = read_string(list[i], element("stop_sequences", i));
    if (sequence.find_first_not_of(" \t\n\r\f\v") == std::string::npos) {
      throw invalid_request("stop_sequences: each stop sequence must contain non-whitespace");
    }
    request.stop_sequences.push_back(sequence);
  }
}

void read_sampling(Fields& body, MessageRequest& request) {
  if (const JsonValue* value = body.optional("temperature")) {
    request.temperature = read_fraction(*value, "temperature");
  }
  if (const JsonValue* value = body.optional("top_p")) {
    request.top_p = read_fraction(*value, "top_p");
  }
  if (const JsonValue* value = body.optional("top_k")) {
    request.top_k = read_integer(*value, "top_k");
    if (*request.top_k < 0) {
      throw invalid_request("top_k: Input should be greater than or equal to 0");
    }
  }
}

// Fields of /v1/messages alone.
void read_generation_fields(Fields& body, MessageRequest& request, Reading& reading) {
  request.max_tokens = read_integer(body.required("max_tokens"), "max_tokens");
  if (request.max_tokens < 0) {
    throw invalid_request("max_tokens: must be greater than or equal to 0");
  }
  if (const JsonValue* value = body.optional("stream")) {
    request.stream = read_boolean(*value, "stream");
  }
  if (const JsonValue* value = body.optional("stop_sequences")) {
    read_stop_sequences(*value, request);
  }
  // The newer version knows no sampling parameters: they are then names like any unknown one (W-4).
  if (!reading.context.version_2026_10_21) read_sampling(body, request);
  if (const JsonValue* value = body.optional("metadata")) read_metadata(*value);
  if (body.optional("service_tier") != nullptr) {
    const bool automatic = body.choice("service_tier", {"auto", "standard_only"}) == 0;
    request.service_tier = automatic ? "auto" : "standard_only";
  }
  if (const JsonValue* value = body.unless_null("inference_geo")) {
    request.inference_geo = read_string(*value, "inference_geo");
  }
  if (const JsonValue* value = body.unless_null("diagnostics")) {
    Fields fields(*value, "diagnostics");
    request.diagnostics.emplace();
    if (const JsonValue* id = fields.unless_null("previous_message_id")) {
      request.diagnostics->previous_message_id =
          read_string(*id, "diagnostics.previous_message_id");
    }
    fields.reject_others();
  }
  if (body.unless_null("container") != nullptr) {
    reading.refuse("container", "this gateway has no code execution containers");
  }
}

}  // namespace

bool Reading::has_beta(std::string_view prefix) const {
  return std::ranges::any_of(context.betas,
                             [&](const std::string& beta) { return beta.starts_with(prefix); });
}

void Reading::refuse(const std::string& path, const std::string& why) {
  if (!refusal) refusal = invalid_request(path + ": " + why);
}

std::optional<CacheControl> read_cache_control(Fields& owner, const Reading& reading) {
  const JsonValue* value = owner.unless_null("cache_control");
  if (value == nullptr) return std::nullopt;
  const std::string path = owner.at("cache_control");
  Fields head(*value, path);
  (void)head.choice("type", {"ephemeral"});
  Fields fields(*value, path + ".ephemeral");
  (void)fields.optional("type");
  CacheControl control;
  if (fields.optional("ttl") != nullptr && fields.choice("ttl", {"5m", "1h"}) == 1) {
    control.ttl = Ttl::one_hour;
  }
  // Only Claude Code sends it; what it asks for has no meaning on one machine (C-13).
  if (reading.has_beta("prompt-caching-scope-")) (void)fields.optional("scope");
  fields.reject_others();
  return control;
}

MessageRequest read_body(const JsonValue& document, Endpoint endpoint, Reading& reading) {
  Fields body(document, "");
  refuse_thread(document, reading);
  (void)body.unless_null("thread");
  MessageRequest request;
  request.model = read_string(body.required("model"), "model");
  if (endpoint == Endpoint::messages) read_generation_fields(body, request, reading);
  request.messages = read_messages(body.required("messages"), reading);
  if (const JsonValue* system = body.optional("system")) {
    request.system = read_system(*system, reading);
  }
  if (const JsonValue* tools = body.optional("tools")) {
    request.tools = read_tools(*tools, request.model, reading);
  }
  if (const JsonValue* choice = body.optional("tool_choice")) {
    request.tool_choice = read_tool_choice(*choice);
  }
  if (const JsonValue* thinking = body.optional("thinking")) {
    request.thinking = read_thinking(*thinking, reading);
  }
  if (const JsonValue* config = body.optional("output_config")) {
    read_output_config(*config, request, reading);
  }
  read_output_format(body, request, reading);
  if (body.unless_null("speed") != nullptr) {
    request.speed = body.choice("speed", {"standard", "fast"}) == 0 ? "standard" : "fast";
  }
  request.cache_control = read_cache_control(body, reading);
  read_beta_fields(body, endpoint, request, reading);
  body.reject_others();
  return request;
}

}  // namespace incipit::gateway
