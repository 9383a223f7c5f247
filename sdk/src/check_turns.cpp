// How messages follow each other, and how results answer calls.
// Source: anthropic-wire sections 4.1 and 4.2.
#include "checks.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace incipit {
namespace {

using Messages = std::vector<MessageParam>;

// Messages [begin, end) of the same role, which the API merges.
struct Turn {
  MessageRole role;
  std::size_t begin, end;
};

struct Place {
  std::size_t message, block;
};

std::vector<Turn> turns_of(const Messages& messages, std::size_t first) {
  std::vector<Turn> turns;
  for (std::size_t i = first; i < messages.size(); ++i) {
    if (turns.empty() || messages[i].role != turns.back().role) {
      turns.push_back({messages[i].role, i, i + 1});
    } else {
      turns.back().end = i + 1;
    }
  }
  return turns;
}

[[noreturn]] void refuse_message(std::string_view rule, std::size_t message,
                                 const std::string& why) {
  const Path messages("messages");
  refuse(rule, Path(messages, message), why);
}

[[noreturn]] void refuse_block(std::string_view rule, Place place, const std::string& why) {
  const Path messages("messages");
  const Path message(messages, place.message);
  const Path content(message, "content");
  refuse(rule, Path(content, place.block), why);
}

bool begins_with_compaction(const MessageParam& message) {
  if (message.content.empty()) return false;
  const auto* block = message.content.front().get_if<UnknownBlock>();
  return block != nullptr && block->type == "compaction";
}

bool ends_in_server_result(const MessageParam& message) {
  return !message.content.empty() && message.content.back().is<ServerToolResultBlock>();
}

void check_system_message(const Messages& messages, const std::vector<Turn>& turns, std::size_t t) {
  const std::size_t at = turns[t].begin;
  if (t == 0) {
    refuse_message("W-4.1", at,
                   "a \"system\" message cannot be the first message; use the top-level `system`");
  }
  if (turns[t - 1].role == MessageRole::assistant && !ends_in_server_result(messages[at - 1])) {
    refuse_message("W-4.1", at,
                   "a \"system\" message must follow a \"user\" message, or an assistant message "
                   "that ends in a server tool result");
  }
  if (t + 1 < turns.size() && turns[t + 1].role != MessageRole::assistant) {
    refuse_message("W-4.1", at,
                   "a \"system\" message must be the last message or be followed by an "
                   "\"assistant\" message; put it behind the user's");
  }
}

void check_roles(const Messages& messages, const std::vector<Turn>& turns, bool from_start) {
  for (std::size_t t = from_start ? 0 : 1; t < turns.size(); ++t) {
    if (turns[t].role == MessageRole::system) check_system_message(messages, turns, t);
  }
  if (from_start && turns.front().role != MessageRole::user
      && !begins_with_compaction(messages.front())) {
    refuse_message("W-4.1", 0, "first message must use the \"user\" role");
  }
}

void check_contents(const Messages& messages, const TurnRules& rules) {
  for (std::size_t i = rules.first; i < messages.size(); ++i) {
    const bool prefill = i + 1 == messages.size() && messages[i].role == MessageRole::assistant;
    if (messages[i].content.empty() && (!prefill || rules.open)) {
      refuse_message("W-4.1", i,
                     "all messages must have non-empty content except for the optional final "
                     "assistant message");
    }
  }
}

void check_prefill(const Messages& messages) {
  const MessageParam& last = messages.back();
  if (last.role != MessageRole::assistant || last.content.empty()) return;
  const auto* text = last.content.back().get_if<TextBlock>();
  if (text == nullptr || text->text.empty()) return;
  if (is_blank(std::string_view(text->text).substr(text->text.size() - 1))) {
    refuse_block("W-4.1", {messages.size() - 1, last.content.size() - 1},
                 "final assistant content cannot end with trailing whitespace; cut it off");
  }
}

struct Call {
  std::string_view id;
  Place place;
};

// Follows the calls of one turn to their results in the next.
class Pairing {
 public:
  explicit Pairing(const Messages& messages) : messages_(messages) {}

  void check(const std::vector<Turn>& turns, const TurnRules& rules, bool from_start) {
    for (std::size_t t = 0; t < turns.size(); ++t) {
      if (t > 0 || from_start) {
        check_results(turns[t], rules.open && t + 1 == turns.size());
      }
      collect_calls(turns[t]);
    }
    if (!rules.open) refuse_unanswered();
  }

 private:
  void collect_calls(const Turn& turn) {
    pending_.clear();
    for (std::size_t i = turn.begin; i < turn.end; ++i) {
      for (std::size_t j = 0; j < messages_[i].content.size(); ++j) {
        const auto* call = messages_[i].content[j].get_if<ToolUseBlock>();
        if (call == nullptr) continue;
        if (!ids_.insert(call->id).second) {
          refuse_block("W-4.2", {i, j},
                       "`tool_use` ids must be unique; '" + shown(call->id) + "' was there before");
        }
        pending_.push_back({call->id, {i, j}});
      }
    }
  }

  // `open`: more results may come, as long as nothing else has.
  void check_results(const Turn& turn, bool open) {
    const std::vector<Call> calls = pending_;
    bool only_results = true;
    for (std::size_t i = turn.begin; i < turn.end; ++i) {
      for (std::size_t j = 0; j < messages_[i].content.size(); ++j) {
        const auto* result = messages_[i].content[j].get_if<ToolResultBlock>();
        if (result == nullptr) {
          only_results = false;
          continue;
        }
        take_result(calls, result->tool_use_id, {i, j});
        if (!only_results) {
          refuse_block("W-4.2", {i, j},
                       "`tool_result` blocks must come before all other content of their turn");
        }
      }
    }
    if (!only_results || !open) refuse_unanswered();
  }

  void take_result(const std::vector<Call>& calls, std::string_view id, Place place) {
    if (std::ranges::find(calls, id, &Call::id) == calls.end()) {
      refuse_block("W-4.2", place,
                   "unexpected `tool_use_id` found in `tool_result` blocks: " + shown(id)
                       + ". Each `tool_result` block must have a corresponding `tool_use` block in "
                         "the previous message");
    }
    if (std::erase_if(pending_, [&](const Call& call) { return call.id == id; }) == 0) {
      refuse_block("W-4.2", place,
                   "each `tool_use` must have a single result. Found multiple `tool_result` blocks "
                   "with id: "
                       + shown(id));
    }
  }

  void refuse_unanswered() const {
    if (pending_.empty()) return;
    std::string ids;
    for (const Call& call : pending_)
      ids.append(ids.empty() ? "" : ", ").append(call.id);
    refuse_block("W-4.2", pending_.front().place,
                 "`tool_use` ids were found without `tool_result` blocks immediately after: "
                     + shown(ids)
                     + ". Each `tool_use` block must have a corresponding `tool_result` block in "
                       "the next message");
  }

  const Messages& messages_;
  std::unordered_set<std::string_view> ids_;
  std::vector<Call> pending_;  // of the turn before, without those that have their result
};

}  // namespace

void check_turns(const Messages& messages, const TurnRules& rules) {
  const std::vector<Turn> turns = turns_of(messages, rules.first);
  if (turns.empty()) return;
  const bool from_start = rules.first == 0 && !rules.continued;
  check_contents(messages, rules);
  check_roles(messages, turns, from_start);
  Pairing(messages).check(turns, rules, from_start);
  if (!rules.open) check_prefill(messages);
}

}  // namespace incipit
