#include "block_read.h"
#include "incipit/anthropic.h"
#include "json_place.h"
#include "json_slices.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

// Members for which there is no field, as one object.
class Rest {
 public:
  void add(const JsonMemberSlice& member) {
    text_ += text_.empty() ? '{' : ',';
    text_ += member.text();
  }

  [[nodiscard]] JsonText object() && {
    if (!text_.empty()) text_ += '}';
    return JsonText::trusted(std::move(text_));
  }

 private:
  std::string text_;
};

JsonText read_object(const JsonPlace& place) {
  return JsonObject(place).place().json();
}

// Which of the words it is.
template <class Enum, std::size_t size>
std::optional<Enum> find_word(std::string_view word,
                              const std::array<std::string_view, size>& words) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

bool has_only(const JsonObject& object, std::initializer_list<std::string_view> names) {
  return std::ranges::all_of(object.members(), [&](const JsonMemberSlice& member) {
    return std::ranges::any_of(names, [&](auto name) { return member.is_named(name); });
  });
}

// A member of a tool: false for one without a field.
bool read_tool_member(const JsonMemberSlice& member, const JsonPlace& place, Tool& tool) {
  if (member.is_named("cache_control")) return true;  // read apart
  if (place.is_null()) return false;
  if (member.is_named("type")) {
    tool.type = place.string();
  } else if (member.is_named("name")) {
    tool.name = place.string();
  } else if (member.is_named("description")) {
    tool.description = place.string();
  } else if (member.is_named("input_schema")) {
    tool.input_schema = read_object(place);
  } else if (member.is_named("input_examples")) {
    tool.input_examples.clear();
    for (const JsonPlace& example : place.items())
      tool.input_examples.push_back(read_object(example));
  } else if (member.is_named("defer_loading")) {
    tool.defer_loading = place.boolean();
  } else if (member.is_named("strict")) {
    tool.strict = place.boolean();
  } else if (member.is_named("allowed_callers")) {
    tool.allowed_callers = place.strings();
  } else if (member.is_named("eager_input_streaming")) {
    tool.eager_input_streaming = place.boolean();
  } else {
    return false;
  }
  return true;
}

Tool read_tool(const JsonPlace& place) {
  const JsonObject object(place);
  Tool tool;
  Rest rest;
  for (const JsonMemberSlice& member : object.members()) {
    if (!read_tool_member(member, place.part(member.value), tool)) rest.add(member);
  }
  tool.options = std::move(rest).object();
  tool.cache_control = read_marker(object);
  return tool;
}

MessageParam read_turn(const JsonPlace& place) {
  static constexpr std::array<std::string_view, 3> roles = {"user", "assistant", "system"};
  const JsonObject object(place);
  const JsonPlace role_place = object.at("role");
  const auto role = find_word<MessageRole>(role_place.string(), roles);
  if (!role) role_place.fail(R"(should be "user", "assistant" or "system")");
  Rest rest;
  for (const JsonMemberSlice& member : object.members()) {
    if (!member.is_named("role") && !member.is_named("content")) rest.add(member);
  }
  return {.role = *role,
          .content = BlockReader::read_all(object.at("content")),
          .extra = std::move(rest).object()};
}

// Settings whose value may say more than its field can hold. False: it does.

bool read_tool_choice(const JsonPlace& place, MessageRequest& request) {
  static constexpr std::array<std::string_view, 4> types = {"auto", "any", "tool", "none"};
  const JsonObject object(place);
  const auto type = find_word<ToolChoice::Type>(object.at("type").string(), types);
  if (!type || !has_only(object, {"type", "name", "disable_parallel_tool_use"})) return false;
  request.tool_choice = ToolChoice{
      .type = *type,
      .name = object.string_or_empty("name"),
      .disable_parallel_tool_use = object.boolean("disable_parallel_tool_use").value_or(false)};
  return true;
}

bool read_thinking(const JsonPlace& place, MessageRequest& request) {
  static constexpr std::array<std::string_view, 4> types = {"adaptive", "enabled", "between_tools",
                                                            "disabled"};
  const JsonObject object(place);
  const auto type = find_word<Thinking::Type>(object.at("type").string(), types);
  if (!type || !has_only(object, {"type", "budget_tokens", "display"})) return false;
  request.thinking = Thinking{.type = *type,
                              .budget_tokens = object.integer("budget_tokens").value_or(0),
                              .display = object.string_or_empty("display")};
  return true;
}

bool read_output_config(const JsonPlace& place, MessageRequest& request) {
  static constexpr std::array<std::string_view, 5> efforts = {"low", "medium", "high", "xhigh",
                                                              "max"};
  const JsonObject object(place);
  if (!has_only(object, {"effort", "format"})) return false;
  const auto word = object.string("effort");
  const auto effort = word ? find_word<Effort>(*word, efforts) : std::nullopt;
  if (word && !effort) return false;
  request.effort = effort;
  if (const auto format = object.find("format")) request.output_format = read_object(*format);
  return true;
}

bool read_metadata(const JsonPlace& place, MessageRequest& request) {
  const JsonObject object(place);
  if (!has_only(object, {"user_id"})) return false;
  request.user_id = object.string("user_id");
  return true;
}

bool read_diagnostics(const JsonPlace& place, MessageRequest& request) {
  const JsonObject object(place);
  if (!has_only(object, {"previous_message_id"})) return false;
  request.diagnostics = DiagnosticsParam{object.string("previous_message_id")};
  return true;
}

bool read_container(const JsonPlace& place, MessageRequest& request) {
  request.container = place.is_string() ? place.json() : read_object(place);
  return true;
}

bool read_tools(const JsonPlace& place, MessageRequest& request) {
  request.tools.clear();
  for (const JsonPlace& tool : place.items())
    request.tools.push_back(read_tool(tool));
  return true;
}

bool read_messages(const JsonPlace& place, MessageRequest& request) {
  request.messages.clear();
  for (const JsonPlace& message : place.items())
    request.messages.push_back(read_turn(message));
  return true;
}

bool read_system(const JsonPlace& place, MessageRequest& request) {
  request.system.clear();
  if (place.is_string()) {
    request.system.push_back({.text = place.string()});
    return true;
  }
  for (const JsonPlace& item : place.items()) {
    const JsonObject object(item);
    const JsonPlace type = object.at("type");
    if (type.string() != "text") type.fail(R"(should be "text")");
    request.system.push_back(read_text_block(object));
  }
  return true;
}

struct Setting {
  std::string_view name;
  bool (*read)(const JsonPlace& place, MessageRequest& request);
};

// A setting whose field holds any value of its type.
template <auto field, auto get>
bool read_plain(const JsonPlace& place, MessageRequest& request) {
  request.*field = (place.*get)();
  return true;
}

constexpr auto settings = std::to_array<Setting>({
    {"model", read_plain<&MessageRequest::model, &JsonPlace::string>},
    {"max_tokens", read_plain<&MessageRequest::max_tokens, &JsonPlace::integer>},
    {"tools", read_tools},
    {"system", read_system},
    {"messages", read_messages},
    {"cache_control", [](const JsonPlace&, MessageRequest&) { return true; }},  // read apart
    {"tool_choice", read_tool_choice},
    {"thinking", read_thinking},
    {"output_config", read_output_config},
    {"stop_sequences", read_plain<&MessageRequest::stop_sequences, &JsonPlace::strings>},
    {"temperature", read_plain<&MessageRequest::temperature, &JsonPlace::number>},
    {"top_p", read_plain<&MessageRequest::top_p, &JsonPlace::number>},
    {"top_k", read_plain<&MessageRequest::top_k, &JsonPlace::integer>},
    {"stream", read_plain<&MessageRequest::stream, &JsonPlace::boolean>},
    {"metadata", read_metadata},
    {"service_tier", read_plain<&MessageRequest::service_tier, &JsonPlace::string>},
    {"inference_geo", read_plain<&MessageRequest::inference_geo, &JsonPlace::string>},
    {"speed", read_plain<&MessageRequest::speed, &JsonPlace::string>},
    {"container", read_container},
    {"diagnostics", read_diagnostics},
});

}  // namespace

MessageRequest parse_message_request(std::string_view json) {
  const JsonPlace root = JsonPlace::check(json);
  const JsonObject object(root);
  for (const std::string_view required : {"model", "messages"})
    (void)object.at(required);
  MessageRequest request;
  Rest rest;
  for (const JsonMemberSlice& member : object.members()) {
    const JsonPlace place = root.part(member.value);
    const auto setting = std::ranges::find_if(
        settings, [&](const Setting& known) { return member.is_named(known.name); });
    if (setting == settings.end()) {
      rest.add(member);
    } else if (!place.is_null() && !setting->read(place, request)) {
      rest.add(member);
    }
  }
  request.extra = std::move(rest).object();
  request.cache_control = read_marker(object);
  return request;
}

}  // namespace incipit
