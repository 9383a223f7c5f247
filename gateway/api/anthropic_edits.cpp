#include "gateway/api/anthropic_edits.h"

#include "gateway/api/anthropic_body.h"
#include "gateway/api/anthropic_fields.h"
#include "gateway/api/anthropic_flatten.h"
#include "gateway/api/anthropic_thinking.h"
#include "gateway/api/error.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace incipit::gateway {
namespace {

constexpr std::array<std::string_view, 3> edit_types = {
    "clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112"};

std::int64_t read_count(Fields& fields, std::int64_t least) {
  const std::string path = fields.at("value");
  const std::int64_t value = read_integer(fields.required("value"), path);
  if (value < least) {
    throw invalid_request(path + ": Input should be greater than or equal to "
                          + std::to_string(least));
  }
  return value;
}

// {"type": TAG, "value": n} with one of the tags; returns its place and n.
std::pair<std::size_t, std::int64_t> read_quantity(const JsonValue& value, const std::string& path,
                                                   std::initializer_list<std::string_view> tags,
                                                   std::int64_t least) {
  Fields fields(value, path);
  const std::size_t tag = fields.choice("type", tags);
  const std::int64_t count = read_count(fields, least);
  fields.reject_others();
  return {tag, count};
}

std::vector<std::string> read_names(const JsonValue& value, const std::string& path) {
  std::vector<std::string> names;
  for (const JsonValue& name : read_list(value, path)) {
    names.push_back(read_string(name, element(path, names.size())));
  }
  return names;
}

ClearThinking read_clear_thinking(const JsonValue& value, const std::string& path) {
  Fields fields(value, path);
  (void)fields.required("type");
  ClearThinking edit{.keep = 1};
  if (const JsonValue* keep = fields.unless_null("keep")) {
    const std::string keep_path = fields.at("keep");
    if (keep->is_string()) {
      (void)fields.choice("keep", {"all"});
      edit.keep.reset();
    } else {
      Fields head(*keep, keep_path);
      if (head.choice("type", {"thinking_turns", "all"}) == 1) {
        edit.keep.reset();
      } else {
        edit.keep = read_count(head, 1);
      }
      head.reject_others();
    }
  }
  fields.reject_others();
  return edit;
}

ClearToolUses read_clear_tool_uses(const JsonValue& value, const std::string& path) {
  Fields fields(value, path);
  (void)fields.required("type");
  ClearToolUses edit;
  if (const JsonValue* trigger = fields.unless_null("trigger")) {
    const auto [tag, count] =
        read_quantity(*trigger, fields.at("trigger"), {"input_tokens", "tool_uses"}, 1);
    edit.trigger_counts_calls = tag == 1;
    edit.trigger = count;
  }
  if (const JsonValue* keep = fields.unless_null("keep")) {
    edit.keep = read_quantity(*keep, fields.at("keep"), {"tool_uses"}, 0).second;
  }
  if (const JsonValue* least = fields.unless_null("clear_at_least")) {
    edit.clear_at_least =
        read_quantity(*least, fields.at("clear_at_least"), {"input_tokens"}, 0).second;
  }
  if (const JsonValue* names = fields.unless_null("exclude_tools")) {
    edit.exclude_tools = read_names(*names, fields.at("exclude_tools"));
  }
  if (const JsonValue* inputs = fields.unless_null("clear_tool_inputs")) {
    if (inputs->is_boolean()) {
      edit.clear_inputs = inputs->as_boolean();
    } else if (inputs->is_array()) {
      edit.clear_inputs_of = read_names(*inputs, fields.at("clear_tool_inputs"));
    } else {
      throw invalid_request(fields.at("clear_tool_inputs")
                            + ": Input should be a valid boolean or list");
    }
  }
  fields.reject_others();
  return edit;
}

void read_edit(const JsonValue& value, std::size_t index, ContextEdits& edits, Reading& reading) {
  const std::string base = element("context_management.edits", index);
  Fields head(value, base);
  const std::string& type = read_string(head.required("type"), head.at("type"));
  const auto found = std::ranges::find(edit_types, std::string_view(type));
  if (found == edit_types.end()) {
    reject_tag(base, type, {edit_types.begin(), edit_types.end()});
  }
  const std::string path = base + "." + type;
  const auto reject_second = [&](bool is_second) {
    if (is_second) throw invalid_request(base + ": `" + type + "` may be given only once");
  };
  if (type == "clear_thinking_20251015") {
    reject_second(edits.thinking.has_value());
    if (index > 0) {
      throw invalid_request(base
                            + ": `clear_thinking_20251015` must be the first edit in the list");
    }
    edits.thinking = read_clear_thinking(value, path);
  } else if (type == "clear_tool_uses_20250919") {
    reject_second(edits.tool_uses.has_value());
    edits.tool_uses = read_clear_tool_uses(value, path);
  } else {
    reading.refuse(path,
                   "compaction is not supported by this gateway; shorten the conversation with "
                   "`clear_tool_uses_20250919`, or summarize it in a request of your own");
  }
}

// Takes out the thoughts of all but the latest turns that have some; returns of how many turns.
std::int64_t clear_thinking(Flattened& prompt, std::int64_t keep) {
  const std::vector<int> turns = assistant_turns(prompt);
  std::vector<bool> is_gone(prompt.items.size(), false);
  std::int64_t seen = 0;
  std::optional<int> turn;
  for (std::size_t i = prompt.items.size(); i-- > 0;) {
    if (prompt.items[i].kind != ItemKind::thinking) continue;
    if (std::exchange(turn, turns[i]) != turns[i]) ++seen;
    is_gone[i] = seen > keep;
  }
  remove_items(prompt, is_gone);
  return std::max<std::int64_t>(0, seen - keep);
}

// Clears the results of all but the latest calls, and returns how many. Excluded tools are neither
// cleared nor among those that are kept.
std::int64_t clear_tool_uses(Flattened& prompt, const ClearToolUses& edit) {
  const std::unordered_set<std::string_view> excluded(edit.exclude_tools.begin(),
                                                      edit.exclude_tools.end());
  const std::unordered_set<std::string_view> emptied(edit.clear_inputs_of.begin(),
                                                     edit.clear_inputs_of.end());
  std::vector<Item*> calls;
  for (Item& item : prompt.items) {
    if (item.kind == ItemKind::tool_use && !excluded.contains(item.name)) calls.push_back(&item);
  }
  const auto count = static_cast<std::int64_t>(calls.size()) - edit.keep;
  if (count <= 0) return 0;
  std::unordered_set<std::string_view> cleared;
  for (Item* call : std::span(calls).first(static_cast<std::size_t>(count))) {
    cleared.insert(call->id);
    if (edit.clear_inputs || emptied.contains(call->name)) clear_input(*call);
  }
  for (Item& item : prompt.items) {
    if (item.kind == ItemKind::tool_result && cleared.contains(item.id)) clear_result(item);
  }
  return count;
}

// A prompt and its length, counted when somebody asks.
class Measured {
 public:
  Measured(Flattened& prompt, const TokenCount& count) : prompt_(prompt), count_(count) {}

  [[nodiscard]] const Flattened& prompt() const { return prompt_; }

  std::int64_t tokens() {
    if (!tokens_) tokens_ = count_(prompt_);
    return *tokens_;
  }

  // Puts `edited` in its place if that saves `least` tokens at least. Returns how many it saves.
  std::optional<std::int64_t> replace(Flattened edited, std::int64_t least) {
    const std::int64_t shorter = count_(edited);
    const std::int64_t saved = std::max<std::int64_t>(0, tokens() - shorter);
    if (saved < least) return std::nullopt;
    prompt_ = std::move(edited);
    tokens_ = shorter;
    return saved;
  }

 private:
  Flattened& prompt_;
  const TokenCount& count_;
  std::optional<std::int64_t> tokens_;
};

bool is_triggered(const ClearToolUses& edit, Measured& prompt) {
  if (!edit.trigger_counts_calls) return prompt.tokens() > edit.trigger;
  return std::ranges::count(prompt.prompt().items, ItemKind::tool_use, &Item::kind) > edit.trigger;
}

void write_edit(JsonWriter& json, std::string_view type, std::string_view name,
                std::int64_t cleared, std::int64_t tokens) {
  json.begin_object().key("type").string(type).key(name).integer(cleared);
  json.key("cleared_input_tokens").integer(tokens).end_object();
}

}  // namespace

ContextEdits read_context_management(const JsonValue& value, Reading& reading) {
  Fields fields(value, "context_management");
  ContextEdits edits;
  if (const JsonValue* list = fields.unless_null("edits")) {
    const JsonValue::Array& entries = read_list(*list, fields.at("edits"));
    for (std::size_t i = 0; i < entries.size(); ++i)
      read_edit(entries[i], i, edits, reading);
  }
  fields.reject_others();
  return edits;
}

std::string apply_edits(Flattened& prompt, const ContextEdits& edits, const TokenCount& count) {
  std::string applied;
  JsonWriter json(applied);
  json.begin_array();
  Measured measured(prompt, count);
  if (edits.thinking && edits.thinking->keep) {
    Flattened edited = prompt;
    const std::int64_t turns = clear_thinking(edited, *edits.thinking->keep);
    if (turns > 0) {
      const std::int64_t saved = measured.replace(std::move(edited), 0).value();
      write_edit(json, "clear_thinking_20251015", "cleared_thinking_turns", turns, saved);
    }
  }
  if (edits.tool_uses && is_triggered(*edits.tool_uses, measured)) {
    Flattened edited = prompt;
    const std::int64_t calls = clear_tool_uses(edited, *edits.tool_uses);
    if (calls > 0) {
      const auto saved = measured.replace(std::move(edited), edits.tool_uses->clear_at_least);
      if (saved) write_edit(json, "clear_tool_uses_20250919", "cleared_tool_uses", calls, *saved);
    }
  }
  json.end_array();
  return applied;
}

}  // namespace incipit::gateway
