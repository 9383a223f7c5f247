#include "usage_oracle.h"

#include <algorithm>
#include <optional>

namespace incipit::oracle {

namespace json = boost::json;

namespace {

constexpr std::int64_t minute = 60'000;

const json::value* member(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}

std::string text_member(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value ? std::string(value->as_string()) : std::string();
}

// Minutes of a marker, 0 where there is none.
int ttl_of(const json::object& owner) {
  const json::value* marker = member(owner, "cache_control");
  if (!marker) return 0;
  return text_member(marker->as_object(), "ttl") == "1h" ? 60 : 5;
}

// What the block adds to the prompt besides the markers of turns.
struct Rendered {
  std::string identity;  // all that C-2 hashes of it
  std::size_t bytes = 0;
  std::string turn;  // tools, system, user or assistant: where its markers come from
  bool is_call = false, is_result = false;
  int ttl = 0;
};

Rendered text_block(const std::string& turn, const std::string& role, std::string text, int ttl) {
  const std::size_t bytes = text.size();
  return {role + " says " + std::move(text), bytes, turn, false, false, ttl};
}

Rendered tool_block(const json::object& tool) {
  const std::string schema = json::serialize(tool.at("input_schema"));
  const std::string name = text_member(tool, "name");
  const std::string description = text_member(tool, "description");
  return {"tool " + name + '\0' + (member(tool, "description") ? "=" : "-") + description + '\0'
              + schema,
          name.size() + description.size() + schema.size(),
          "tools",
          false,
          false,
          ttl_of(tool)};
}

Rendered call_block(const json::object& call) {
  const std::string input = json::serialize(call.at("input"));
  const std::string name = text_member(call, "name");
  return {"call " + text_member(call, "id") + '\0' + name + '\0' + input,
          name.size() + input.size(),
          "assistant",
          true,
          false,
          ttl_of(call)};
}

// Several texts of one result are lines of it. Markers inside act at its end (C-12).
Rendered result_block(const json::object& result) {
  Rendered block{
      "result of " + text_member(result, "tool_use_id"), 0, "user", false, true, ttl_of(result)};
  const json::value* error = member(result, "is_error");
  if (error && error->as_bool()) block.identity += " failed";
  const json::value* content = member(result, "content");
  if (content && content->is_string()) {
    block.identity += '\0' + std::string(content->as_string());
    block.bytes = content->as_string().size();
  } else if (content) {
    const json::array& parts = content->as_array();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string text = text_member(parts[i].as_object(), "text");
      block.identity += '\0' + text;
      block.bytes += text.size() + (i > 0 ? 1 : 0);
      block.ttl = std::max(block.ttl, ttl_of(parts[i].as_object()));
    }
  }
  return block;
}

constexpr std::string_view billing = "x-anthropic-billing-header:";

std::vector<Rendered> system_blocks(const json::object& body) {
  std::vector<Rendered> blocks;
  const json::value* system = member(body, "system");
  if (!system) return blocks;
  if (system->is_string()) {
    std::string text(system->as_string());
    if (!text.empty() && !text.starts_with(billing)) {
      blocks.push_back(text_block("system", "system", std::move(text), 0));
    }
    return blocks;
  }
  for (const json::value& value : system->as_array()) {
    const json::object& block = value.as_object();
    std::string text = text_member(block, "text");
    // Section 24: the line that changes with every request takes no part.
    if (blocks.empty() && text.starts_with(billing)) continue;
    blocks.push_back(text_block("system", "system", std::move(text), ttl_of(block)));
  }
  return blocks;
}

Rendered thought_block(const json::object& thought) {
  const std::string text = text_member(thought, "thinking");
  constexpr std::size_t tags = 19;  // "<think>\n" before and "\n</think>\n\n" behind
  return {"thought " + text, text.size() + tags, "assistant", false, false, 0};
}

// The mode that the request has or that its model has without one.
std::string thinking_mode(const json::object& body, const ModelFacts& model) {
  const json::value* thinking = member(body, "thinking");
  if (thinking) return text_member(thinking->as_object(), "type");
  return model.thinks_by_default ? "adaptive" : "disabled";
}

bool holds_result(const json::object& message) {
  const json::value& content = message.at("content");
  return content.is_array()
         && std::ranges::any_of(content.as_array(), [](const json::value& block) {
              return text_member(block.as_object(), "type") == "tool_result";
            });
}

// Index of the first message whose thoughts the model sees: all of them, those since the user said
// something (C-64; counting does so on every model, C-115), or none without thinking (C-66).
std::size_t first_with_thoughts(const json::object& body, const ModelFacts& model,
                                bool only_counts) {
  const json::array& messages = body.at("messages").as_array();
  if (thinking_mode(body, model) == "disabled") return messages.size();
  if (model.keeps_all_thinking && !only_counts) return 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const json::object& message = messages[i].as_object();
    if (text_member(message, "role") == "user" && !holds_result(message)) first = i;
  }
  return first;
}

std::vector<Rendered> message_blocks(const json::object& body, std::size_t first_thoughtful) {
  std::vector<Rendered> blocks;
  std::size_t index = 0;
  for (const json::value& value : body.at("messages").as_array()) {
    const json::object& message = value.as_object();
    const bool keeps_thoughts = index++ >= first_thoughtful;
    const std::string role = text_member(message, "role");
    // A system message belongs to the user's turn before it, but opens itself.
    const std::string turn = role == "system" ? "later system" : role;
    const json::value& content = message.at("content");
    if (content.is_string()) {
      if (content.as_string().empty()) continue;
      blocks.push_back(text_block(turn, role, std::string(content.as_string()), 0));
      continue;
    }
    for (const json::value& item : content.as_array()) {
      const json::object& block = item.as_object();
      const std::string type = text_member(block, "type");
      if (type == "text") {
        blocks.push_back(text_block(turn, role, text_member(block, "text"), ttl_of(block)));
      } else if (type == "thinking") {
        if (keeps_thoughts) blocks.push_back(thought_block(block));
      } else if (type == "tool_use") {
        blocks.push_back(call_block(block));
      } else {
        blocks.push_back(result_block(block));
      }
    }
  }
  return blocks;
}

bool is_user_turn(const std::string& turn) {
  return turn == "user" || turn == "later system";
}

// T(1)..T(n). The first block of a turn closes the turn before it and opens its own; but the last
// block of a user turn closes that and opens the assistant's.
std::vector<std::int64_t> tokens_of(const std::vector<Rendered>& blocks) {
  std::vector<std::int64_t> tokens;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string& turn = blocks[i].turn;
    const std::string before = i > 0 ? blocks[i - 1].turn : "";
    const std::string after = i + 1 < blocks.size() ? blocks[i + 1].turn : "";
    if (before.empty()) {
      total += 1;
    } else if (before != turn && !(is_user_turn(before) && turn == "assistant")) {
      total += 2;
    }
    total += static_cast<std::int64_t>(blocks[i].bytes);
    if (is_user_turn(turn) && !is_user_turn(after)) total += 2;
    tokens.push_back(total);
  }
  return tokens;
}

// Section 9, rows "tool_choice" and "disable_parallel_tool_use". A setting at its default is the
// same as none, here and below.
std::string choice_of(const json::object& body) {
  std::string choice = "auto", name;
  bool parallel = true;
  if (const json::value* value = member(body, "tool_choice")) {
    const json::object& given = value->as_object();
    choice = text_member(given, "type");
    name = text_member(given, "name");
    const json::value* disable = member(given, "disable_parallel_tool_use");
    parallel = !disable || !disable->as_bool();
  }
  return "choice " + choice + '\0' + name + '\0' + (parallel ? "parallel" : "single");
}

// Section 9, rows "thinking config" and "effort".
std::string effort_of(const json::object& body, const ModelFacts& model) {
  std::string thinking = thinking_mode(body, model);
  if (const json::value* value = member(body, "thinking")) {
    if (const json::value* budget = member(value->as_object(), "budget_tokens")) {
      thinking += json::serialize(*budget);
    }
  }
  std::string effort = model.default_effort;
  if (const json::value* config = member(body, "output_config")) {
    const std::string given = text_member(config->as_object(), "effort");
    if (!given.empty()) effort = given;
  }
  return "thinks " + thinking + '\0' + effort;
}

// Section 9, row "output_config.format".
std::string settings_before_system(const json::object& body) {
  std::string format;
  if (const json::value* config = member(body, "output_config")) {
    if (const json::value* given = member(config->as_object(), "format")) {
      format = json::serialize(*given);
    }
  }
  return "output " + format;
}

}  // namespace

int UsageOracle::content(std::string text) {
  return content_.try_emplace(std::move(text), static_cast<int>(content_.size())).first->second;
}

UsageOracle::Prompt UsageOracle::flatten(const json::object& body, const ModelFacts& model,
                                         bool only_counts) {
  Prompt prompt;
  prompt.model = &model;
  std::vector<Rendered> blocks;
  if (const json::value* tools = member(body, "tools")) {
    for (const json::value& value : tools->as_array()) {
      const json::value* defer = member(value.as_object(), "defer_loading");
      if (defer && defer->as_bool()) continue;  // C-73
      blocks.push_back(tool_block(value.as_object()));
    }
  }
  for (Rendered& block : system_blocks(body))
    blocks.push_back(std::move(block));
  for (Rendered& block : message_blocks(body, first_with_thoughts(body, model, only_counts)))
    blocks.push_back(std::move(block));
  // C-22, C-25: the last block; there a marker of the same class changes nothing.
  if (const int automatic = ttl_of(body)) blocks.back().ttl = automatic;

  const std::vector<std::int64_t> tokens = tokens_of(blocks);
  if (settings_first_) prompt.whole.push_back(content(effort_of(body, model)));
  bool before_system = true, before_messages = true;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Rendered& block = blocks[i];
    if (before_system && block.turn != "tools") {
      before_system = false;
      prompt.whole.push_back(content(settings_before_system(body)));
    }
    if (before_messages && block.turn != "tools" && block.turn != "system") {
      before_messages = false;
      prompt.whole.push_back(content(choice_of(body)));
      if (!settings_first_) prompt.whole.push_back(content(effort_of(body, model)));
    }
    prompt.whole.push_back(content(block.identity));
    prompt.lengths.push_back(prompt.whole.size());
    const Kind kind = block.is_call ? Kind::call : block.is_result ? Kind::result : Kind::other;
    prompt.positions.push_back({prompt.whole.back(), kind, block.ttl, tokens[i]});
  }
  return prompt;
}

UsageOracle::Entry* UsageOracle::live(const Workspace& workspace, const Prompt& prompt, int k,
                                      std::int64_t now) {
  const auto begin = prompt.whole.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(prompt.lengths[k - 1]);
  for (Entry& entry : entries_) {
    if (entry.expires > now && entry.workspace == workspace && entry.model == prompt.model->id
        && std::equal(begin, end, entry.prefix.begin(), entry.prefix.end())) {
      return &entry;
    }
  }
  return nullptr;
}

Verdict UsageOracle::ask(std::string_view text, const Workspace& workspace, std::int64_t now) {
  const json::value document = json::parse(text);
  const json::object& body = document.as_object();
  Verdict verdict;
  verdict.complaints = complaints_of(body);
  if (!verdict.complaints.empty()) return verdict;

  std::erase_if(entries_, [&](const Entry& entry) { return entry.expires <= now; });
  const Prompt prompt = flatten(body, *facts_of(text_member(body, "model")), false);
  const auto count = static_cast<int>(prompt.positions.size());
  const auto at = [&](int k) -> const Position& { return prompt.positions[k - 1]; };
  const auto tokens = [&](int k) { return k > 0 ? at(k).tokens : 0; };

  std::vector<int> breakpoints;  // C-42, C-55
  for (int k = 1; k <= count; ++k) {
    if (at(k).ttl > 0 && at(k).tokens >= prompt.model->minimum) breakpoints.push_back(k);
  }
  // C-32..C-36.
  int match = 0;
  for (auto b = breakpoints.rbegin(); b != breakpoints.rend() && match == 0; ++b) {
    int position = 1;
    for (int k = *b; k >= 1 && match == 0; --k) {
      const bool in_run = k < *b && at(k).kind != Kind::other && at(k).kind == at(k + 1).kind;
      if (k < *b && !in_run) ++position;
      if (position > 20) break;
      if (live(workspace, prompt, k, now)) match = k;
    }
  }
  // C-48.
  const std::int64_t a = tokens(match);
  std::int64_t b = a, c = a;
  Pending pending;
  for (const int k : breakpoints) {
    if (k <= match) continue;
    if (at(k).ttl == 60) b = std::max(b, tokens(k));
    c = std::max(c, tokens(k));
    const std::int64_t lifetime = at(k).ttl * minute;
    const auto end = prompt.whole.begin() + static_cast<std::ptrdiff_t>(prompt.lengths[k - 1]);
    pending.writes.push_back(
        {workspace, prompt.model->id, {prompt.whole.begin(), end}, lifetime, now + lifetime});
  }
  verdict.usage = {tokens(count) - c, c - b, b - a, a};
  // C-18, C-40.
  for (int k = 1; k <= match; ++k) {
    if (k != match && std::ranges::find(breakpoints, k) == breakpoints.end()) continue;
    if (Entry* entry = live(workspace, prompt, k, now)) entry->expires = now + entry->lifetime;
  }
  verdict.pending = ++asked_;
  pending_.emplace(verdict.pending, std::move(pending));
  return verdict;
}

void UsageOracle::respond(std::size_t pending) {
  for (Entry& entry : pending_.at(pending).writes) {
    std::erase_if(entries_, [&](const Entry& old) {
      return old.workspace == entry.workspace && old.model == entry.model
             && old.prefix == entry.prefix;
    });
    entries_.push_back(std::move(entry));
  }
  pending_.erase(pending);
}

std::int64_t UsageOracle::count(std::string_view text) {
  const json::value document = json::parse(text);
  const json::object& body = document.as_object();
  return flatten(body, *facts_of(text_member(body, "model")), true).positions.back().tokens;
}

}  // namespace incipit::oracle
