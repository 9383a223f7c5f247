#include "gateway/api/anthropic_flatten.h"

#include "gateway/api/anthropic_block_text.h"
#include "gateway/api/signature.h"
#include "incipit/json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>

namespace incipit::gateway {
namespace {

// Removes billing lines at the start of `text`; returns how many.
int strip_billing_lines(std::string& text) {
  constexpr std::string_view prefix = "x-anthropic-billing-header:";
  std::size_t at = 0;
  int lines = 0;
  while (std::string_view(text).substr(at).starts_with(prefix)) {
    ++lines;
    at = std::min(text.find('\n', at), text.size());
    at = std::min(text.find_first_not_of("\r\n", at), text.size());
  }
  text.erase(0, at);
  return lines;
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::user:
      return "user";
    case Role::assistant:
      return "assistant";
    case Role::system:
      break;
  }
  return "system";
}

Item tool_item(const Tool& tool) {
  Item item;
  item.section = Section::tools;
  item.role = Role::system;
  item.kind = ItemKind::tool;
  item.name = tool.name;
  item.schema = tool.input_schema.text();
  item.text = describe(tool);
  JsonWriter key(item.key_bytes);
  write_tool_key(tool, key);
  return item;
}

void set_input(Item& item, std::string input) {
  item.text = std::move(input);
  item.key_bytes.clear();
  JsonWriter(item.key_bytes)
      .begin_object()
      .key("tool_use")
      .string(item.id)
      .key("name")
      .string(item.name)
      .key("input")
      .raw(item.text)
      .end_object();
}

Item call_item(const ToolUseBlock& call) {
  Item item;
  item.role = Role::assistant;
  item.kind = ItemKind::tool_use;
  item.id = call.id;
  item.name = call.name;
  set_input(item, call.input.text());
  return item;
}

Item thinking_item(std::string thought) {
  Item item;
  item.role = Role::assistant;
  item.kind = ItemKind::thinking;
  item.text = std::move(thought);
  JsonWriter(item.key_bytes).begin_object().key("thinking").string(item.text).end_object();
  return item;
}

Role role_of(MessageRole role) {
  switch (role) {
    case MessageRole::assistant:
      return Role::assistant;
    case MessageRole::system:
      return Role::system;
    case MessageRole::user:
      break;
  }
  return Role::user;
}

class Flattener {
 public:
  Flattener(const MessageRequest& request, bool keep_billing_line, FileTexts& files)
      : texts_(request.tools, files), keep_billing_line_(keep_billing_line) {}

  void add_tools(const std::vector<Tool>& tools) {
    for (std::size_t i = 0; i < tools.size(); ++i) {
      if (tools[i].defer_loading) continue;
      push(tool_item(tools[i]), {});
      mark(tools[i].cache_control, "tools." + std::to_string(i));
    }
  }

  void add_system(const std::vector<TextBlock>& system) {
    for (std::size_t i = 0; i < system.size(); ++i) {
      TextBlock block = system[i];
      const int lines = strip_billing_lines(block.text);
      if (!block.text.empty()) content_.add(block.text);
      if (keep_billing_line_) {
        block.text = system[i].text;
      } else {
        result_.dropped_billing_lines += lines;
      }
      if (!block.text.empty()) {
        Item item = content_item(std::move(block), Role::system, "");
        item.section = Section::system;
        append(std::move(item), {});
      }
      mark(system[i].cache_control, "system." + std::to_string(i));
    }
  }

  void add_messages(const std::vector<MessageParam>& messages) {
    int turn = -1;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (i == 0 || messages[i].role != messages[i - 1].role) {
        ++turn;
        keys_of_turn_.clear();
      }
      const auto& content = messages[i].content;
      for (std::size_t j = 0; j < content.size(); ++j) {
        const std::string path = "messages." + std::to_string(i) + ".content." + std::to_string(j);
        Origin origin{.message = i, .block = j};
        origin.is_turn_scoped = !messages[i].extra.empty();
        if (messages[i].role == MessageRole::assistant) keys_of_turn_.insert(content_.key());
        Item item = item_of(content[j], role_of(messages[i].role), path, origin);
        item.turn = turn;
        push(std::move(item), origin);
        add_markers(content[j], path);
      }
    }
  }

  Flattened take() {
    result_.content_key = content_.key();
    result_.offered = texts_.offered();
    return std::move(result_);
  }

 private:
  Item item_of(const ContentBlock& block, Role role, const std::string& path, Origin& origin) {
    if (const auto* call = block.get_if<ToolUseBlock>()) return call_item(*call);
    if (const auto* thought = block.get_if<ThinkingBlock>()) {
      return signed_item(thought->signature, origin);
    }
    if (const auto* redacted = block.get_if<RedactedThinkingBlock>()) {
      return signed_item(redacted->data, origin);
    }
    if (const auto* result = block.get_if<ToolResultBlock>()) return result_item(*result, path);
    return content_item(block, role, path);
  }

  Item content_item(const ContentBlock& block, Role role, const std::string& path) {
    Item item;
    item.role = role;
    item.kind = ItemKind::text;
    JsonWriter key(item.key_bytes);
    key.begin_object().key(name_of(role));
    texts_.add(block, path, item.text, key);
    key.end_object();
    return item;
  }

  Item result_item(const ToolResultBlock& result, const std::string& path) {
    Item item;
    item.role = Role::user;
    item.kind = ItemKind::tool_result;
    item.id = result.tool_use_id;
    item.is_error = result.is_error;
    JsonWriter key(item.key_bytes);
    key.begin_object().key("tool_result").string(result.tool_use_id).key("is_error");
    key.boolean(result.is_error).key("content").begin_array();
    for (std::size_t i = 0; i < result.content.size(); ++i) {
      if (i > 0) item.text += '\n';
      texts_.add(result.content[i], path + ".content." + std::to_string(i), item.text, key);
    }
    key.end_array().end_object();
    return item;
  }

  Item signed_item(std::string_view signature, Origin& origin) {
    SignedThought signed_thought = read_signature(signature).value();
    origin.follows_its_content = keys_of_turn_.contains(signed_thought.bound_to);
    return thinking_item(std::move(signed_thought.thought));
  }

  void push(Item item, Origin origin) {
    if (item.kind != ItemKind::thinking) content_.add(item.key_bytes);
    append(std::move(item), origin);
  }

  void append(Item item, Origin origin) {
    result_.items.push_back(std::move(item));
    result_.origins.push_back(origin);
  }

  // Markers on parts of a block come before its own: all act at its end (C-12).
  void add_markers(const ContentBlock& block, const std::string& path) {
    const auto add_parts = [&](const auto& parts, std::string_view place) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string part = path + std::string(place) + std::to_string(i);
        if constexpr (std::is_same_v<decltype(parts[i]), const TextBlock&>) {
          mark(parts[i].cache_control, part);
        } else {
          add_markers(parts[i], part);
        }
      }
    };
    if (const auto* result = block.get_if<ToolResultBlock>()) {
      add_parts(result->content, ".content.");
    } else if (const auto* found = block.get_if<SearchResultBlock>()) {
      add_parts(found->content, ".content.");
    } else if (const auto* document = block.get_if<DocumentBlock>()) {
      if (const auto* parts = std::get_if<ContentSource>(&document->source)) {
        add_parts(parts->content, ".source.content.");
      }
    }
    mark(block.cache_control(), path);
  }

  void mark(const std::optional<CacheControl>& control, std::string path) {
    if (!control) return;
    std::optional<std::size_t> last;
    if (!result_.items.empty()) last = result_.items.size() - 1;
    result_.markers.push_back({last, std::move(path), control->ttl});
  }

  BlockTexts texts_;
  bool keep_billing_line_;
  Flattened result_;
  PrefixHasher content_;
  std::unordered_set<PrefixKey> keys_of_turn_;  // the assistant's, so far
};

std::string_view name_of(Effort effort) {
  constexpr std::array<std::string_view, 5> names = {"low", "medium", "high", "xhigh", "max"};
  return names[static_cast<std::size_t>(effort)];
}

// auto and none differ only if there is a tool to call.
std::string_view choice_of(const MessageRequest& request) {
  if (request.tools.empty()) return "none";
  if (!request.tool_choice) return "auto";
  constexpr std::array<std::string_view, 4> names = {"auto", "any", "tool", "none"};
  return names[static_cast<std::size_t>(request.tool_choice->type)];
}

std::string thinking_of(const MessageRequest& request, const ModelTraits& traits) {
  if (!request.thinking) return traits.thinks_by_default ? "adaptive" : "disabled";
  switch (request.thinking->type) {
    case Thinking::Type::adaptive:
      return "adaptive";
    case Thinking::Type::enabled:
      return "enabled " + std::to_string(request.thinking->budget_tokens);
    case Thinking::Type::between_tools:
      return "between_tools";
    case Thinking::Type::disabled:
      break;
  }
  return "disabled";
}

}  // namespace

Flattened flatten(const MessageRequest& request, bool keep_billing_line, FileTexts& files) {
  Flattener flattener(request, keep_billing_line, files);
  flattener.add_tools(request.tools);
  flattener.add_system(request.system);
  flattener.add_messages(request.messages);
  return flattener.take();
}

void remove_items(Flattened& prompt, const std::vector<bool>& is_gone) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < prompt.items.size(); ++i) {
    if (is_gone[i]) continue;
    if (kept != i) {
      prompt.items[kept] = std::move(prompt.items[i]);
      prompt.origins[kept] = prompt.origins[i];
    }
    ++kept;
  }
  prompt.items.resize(kept);
  prompt.origins.resize(kept);
  int turn = -1;
  std::optional<Role> role;
  for (Item& item : prompt.items) {
    if (item.section != Section::messages) continue;
    if (std::exchange(role, item.role) != item.role) ++turn;
    item.turn = turn;
  }
}

void clear_result(Item& item) {
  item.text = "[This result was cleared to make room.]";
  item.key_bytes.clear();
  JsonWriter(item.key_bytes)
      .begin_object()
      .key("cleared_tool_result")
      .string(item.id)
      .key("is_error")
      .boolean(item.is_error)
      .end_object();
}

void clear_input(Item& item) {
  set_input(item, "{}");
}

void describe_settings(const MessageRequest& request, const std::string& model,
                       const ModelTraits& traits, bool settings_before_tools,
                       Conversation& conversation) {
  conversation.model = model;
  conversation.key_before_tools = model;
  std::string thinking;
  JsonWriter(thinking)
      .begin_object()
      .key("thinking")
      .string(thinking_of(request, traits))
      .key("effort")
      .string(name_of(request.effort.value_or(traits.default_effort)))
      .end_object();
  if (settings_before_tools) conversation.key_before_tools += thinking;
  JsonWriter before_system(conversation.key_before_system);
  before_system.begin_object().key("output_format");
  if (request.output_format) {
    before_system.raw(request.output_format->text());
  } else {
    before_system.null();
  }
  before_system.key("citations").boolean(wants_citations(request));
  before_system.key("speed").string(request.speed.value_or("standard")).end_object();
  const ToolChoice choice = request.tool_choice.value_or(ToolChoice{});
  JsonWriter(conversation.key_before_messages)
      .begin_object()
      .key("tool_choice")
      .string(choice_of(request))
      .key("name")
      .string(choice.name)
      .key("disable_parallel_tool_use")
      .boolean(choice.disable_parallel_tool_use)
      .end_object();
  if (!settings_before_tools) conversation.key_before_messages += thinking;
}

}  // namespace incipit::gateway
