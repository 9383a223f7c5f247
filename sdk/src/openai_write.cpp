#include "checks.h"
#include "incipit/openai.h"
#include "json_slices.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::openai {
namespace {

// The members of one object. Text is refused when it is not UTF-8 (W-1); JSON of the caller goes
// out byte for byte. `add` leaves out what is unset.
class Members {
 public:
  // `path` leads to the object; null for the body itself.
  explicit Members(JsonWriter& writer, const Path* path = nullptr) : writer_(writer), path_(path) {}

  void text(std::string_view key, std::string_view text) const {
    check_utf8(path(key), text);
    writer_.key(key).string(text);
  }

  void add(std::string_view key, const std::string& value) const {
    if (!value.empty()) text(key, value);
  }

  void add(std::string_view key, const std::optional<std::string>& value) const {
    if (value) text(key, *value);
  }

  void add(std::string_view key, const JsonText& json) const {
    if (!json.empty()) writer_.key(key).raw(json.text());
  }

  void add(std::string_view key, std::optional<std::int64_t> number) const {
    if (number) writer_.key(key).integer(*number);
  }

  void add(std::string_view key, std::optional<double> number) const {
    if (number) writer_.key(key).number(*number);
  }

  void add(std::string_view key, std::optional<bool> truth) const {
    if (truth) writer_.key(key).boolean(*truth);
  }

  void add(std::string_view key, const std::vector<std::string>& texts) const {
    if (texts.empty()) return;
    writer_.key(key).begin_array();
    const Path array = path(key);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      check_utf8(Path(array, i), texts[i]);
      writer_.string(texts[i]);
    }
    writer_.end_array();
  }

  // An array, be it empty.
  void items(std::string_view key, const std::vector<JsonText>& items) const {
    writer_.key(key).begin_array();
    const Path array = path(key);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].empty()) refuse("W-1", Path(array, i), "is empty, not a JSON object");
      writer_.raw(items[i].text());
    }
    writer_.end_array();
  }

  // An array of objects, each the work of `write(members, element)`.
  template <class Element, class Write>
  void objects(std::string_view key, const std::vector<Element>& elements,
               const Write& write) const {
    writer_.key(key).begin_array();
    const Path array = path(key);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const Path element(array, i);
      writer_.begin_object();
      write(Members(writer_, &element), elements[i]);
      writer_.end_object();
    }
    writer_.end_array();
  }

  // An object, the work of `write(members)`.
  template <class Write>
  void object(std::string_view key, const Write& write) const {
    const Path inner = path(key);
    writer_.key(key).begin_object();
    write(Members(writer_, &inner));
    writer_.end_object();
  }

  // The members of `extra`, as spelled.
  void splice(const JsonText& extra) const {
    if (extra.empty()) return;
    if (!extra.is_object()) refuse("W-1", path("extra"), "must be a JSON object");
    const std::string_view members = json_inside(extra.text());
    if (!members.empty()) writer_.raw(members);
  }

 private:
  [[nodiscard]] Path path(std::string_view key) const {
    return path_ == nullptr ? Path(key) : Path(*path_, key);
  }

  JsonWriter& writer_;
  const Path* path_;
};

void write_call(const Members& call_members, const ToolCall& call) {
  // A custom tool takes any text, a function JSON.
  const bool custom = call.type == "custom";
  call_members.text("id", call.id);
  call_members.text("type", call.type);
  call_members.object(call.type, [&](const Members& members) {
    members.text("name", call.name);
    members.text(custom ? "input" : "arguments", call.arguments);
  });
}

void write_message(const Members& members, const ChatMessage& message) {
  members.text("role", message.role);
  if (!message.parts.empty()) {
    members.items("content", message.parts);
  } else if (message.content) {
    members.text("content", *message.content);
  } else if (message.tool_calls.empty()) {
    members.add("content", JsonText::trusted("null"));  // only calls may come without any
  }
  members.add("refusal", message.refusal);
  members.add("name", message.name);
  if (!message.tool_calls.empty()) {
    members.objects("tool_calls", message.tool_calls, write_call);
  }
  members.add("tool_call_id", message.tool_call_id);
}

void write_chat_tool(const Members& tool_members, const FunctionTool& tool) {
  tool_members.text("type", "function");
  tool_members.object("function", [&](const Members& members) {
    members.text("name", tool.name);
    members.add("description", tool.description);
    members.add("parameters", tool.parameters);
    members.add("strict", tool.strict);
  });
}

// Flat here, and the last two are required, be it as null.
void write_responses_tool(const Members& members, const FunctionTool& tool) {
  const JsonText null = JsonText::trusted("null");
  members.text("type", "function");
  members.text("name", tool.name);
  members.add("description", tool.description);
  members.add("parameters", tool.parameters.empty() ? null : tool.parameters);
  members.add("strict", tool.strict ? JsonText::trusted(*tool.strict ? "true" : "false") : null);
}

template <class Request>
void write_cache_settings(const Members& members, const Request& request) {
  members.add("prompt_cache_key", request.prompt_cache_key);
  members.add("prompt_cache_options", request.prompt_cache_options);
  members.add("prompt_cache_retention", request.prompt_cache_retention);
}

// One JSON object with the members that `write(members)` gives it.
template <class Write>
std::string object(const Write& write) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  write(Members(writer));
  writer.end_object();
  return out;
}

template <class Write>
JsonText part(const Write& write) {
  return JsonText::trusted(object(write));
}

}  // namespace

JsonText text_part(std::string_view text) {
  return part([&](const Members& members) {
    members.text("type", "text");
    members.text("text", text);
  });
}

JsonText image_part(std::string_view url, std::string_view detail) {
  return part([&](const Members& part_members) {
    part_members.text("type", "image_url");
    part_members.object("image_url", [&](const Members& members) {
      members.text("url", url);
      members.add("detail", std::string(detail));
    });
  });
}

JsonText message_item(std::string_view role, std::string_view text) {
  return part([&](const Members& members) {
    members.text("role", role);
    members.text("content", text);
  });
}

JsonText function_call_output_item(std::string_view call_id, std::string_view output) {
  return part([&](const Members& members) {
    members.text("type", "function_call_output");
    members.text("call_id", call_id);
    members.text("output", output);
  });
}

std::string to_json(const ChatRequest& request, bool stream) {
  return object([&](const Members& members) {
    members.text("model", request.model);
    if (!request.tools.empty()) members.objects("tools", request.tools, write_chat_tool);
    members.objects("messages", request.messages, write_message);
    members.add("tool_choice", request.tool_choice);
    members.add("response_format", request.response_format);
    members.add("max_completion_tokens", request.max_completion_tokens);
    members.add("temperature", request.temperature);
    members.add("top_p", request.top_p);
    members.add("stop", request.stop);
    members.add("seed", request.seed);
    members.add("reasoning_effort", request.reasoning_effort);
    write_cache_settings(members, request);
    if (stream) {
      members.add("stream", std::optional(true));
      // Without it a stream says nothing of tokens; the caller's own options stand for themselves.
      if (request.extra.value().find("stream_options") == nullptr) {
        members.add("stream_options", JsonText::trusted(R"({"include_usage":true})"));
      }
    }
    members.splice(request.extra);
  });
}

std::string to_json(const ResponsesRequest& request, bool stream) {
  return object([&](const Members& members) {
    members.text("model", request.model);
    if (!request.tools.empty()) members.objects("tools", request.tools, write_responses_tool);
    members.add("instructions", request.instructions);
    members.items("input", request.input);
    members.add("tool_choice", request.tool_choice);
    members.add("text", request.text);
    members.add("max_output_tokens", request.max_output_tokens);
    members.add("temperature", request.temperature);
    members.add("top_p", request.top_p);
    members.add("previous_response_id", request.previous_response_id);
    members.add("store", request.store);
    members.add("reasoning", request.reasoning);
    members.add("include", request.include);
    write_cache_settings(members, request);
    if (stream) members.add("stream", std::optional(true));
    members.splice(request.extra);
  });
}

}  // namespace incipit::openai
