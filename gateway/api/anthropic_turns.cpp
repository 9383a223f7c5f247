// Rules on the order of messages and the pairing of tool calls with their results.
// Source: anthropic-wire sections 4.1 and 4.2.
#include "gateway/api/anthropic_fields.h"
#include "gateway/api/anthropic_rules.h"
#include "gateway/api/error.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace incipit::gateway {
namespace {

using Messages = std::vector<MessageParam>;

// Messages [begin, end) of the same role: one turn.
struct Turn {
  std::size_t begin = 0, end = 0;
};

std::vector<Turn> turns_of(const Messages& messages) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (i > 0 && messages[i].role == messages[i - 1].role) {
      turns.back().end = i + 1;
    } else {
      turns.push_back({i, i + 1});
    }
  }
  return turns;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos;
}

[[noreturn]] void reject(std::size_t message, const std::string& why) {
  throw invalid_request("messages." + std::to_string(message) + ": " + why);
}

bool ends_in_server_result(const MessageParam& message) {
  return message.role == MessageRole::assistant && !message.content.empty()
         && message.content.back().type().ends_with("_tool_result");
}

void check_roles(const Messages& messages, const std::vector<Turn>& turns,
                 const ModelTraits& traits) {
  for (std::size_t t = 0; t < turns.size(); ++t) {
    const std::size_t at = turns[t].begin;
    if (messages[at].role != MessageRole::system) continue;
    if (!traits.system_messages) {
      throw invalid_request("messages." + std::to_string(at)
                            + ".role: Input should be 'user' or 'assistant'. This model takes "
                              "instructions from the top-level `system` parameter only.");
    }
    if (t == 0) reject(at, "a \"system\" message cannot be the first message");
    const MessageParam& before = messages[at - 1];
    if (before.role != MessageRole::user && !ends_in_server_result(before)) {
      reject(at, "a \"system\" message must follow a \"user\" message");
    }
    if (t + 1 < turns.size() && messages[turns[t + 1].begin].role != MessageRole::assistant) {
      reject(at,
             "a \"system\" message must be the last message or be followed by an "
             "\"assistant\" message");
    }
  }
  const bool is_summary =
      !messages.front().content.empty() && messages.front().content.front().type() == "compaction";
  if (messages.front().role != MessageRole::user && !is_summary) {
    throw invalid_request("messages: first message must use the \"user\" role");
  }
}

void check_text(const Messages& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const MessageParam& message = messages[i];
    const bool may_be_empty = i + 1 == messages.size() && message.role == MessageRole::assistant;
    if (message.content.empty() && !may_be_empty) {
      reject(i,
             "all messages must have non-empty content except for the optional final assistant "
             "message");
    }
    for (const ContentBlock& block : message.content) {
      const auto* text = block.get_if<TextBlock>();
      if (text == nullptr) continue;
      if (text->text.empty()) {
        throw invalid_request("messages: text content blocks must be non-empty");
      }
      if (is_blank(text->text)) {
        throw invalid_request("messages: text content blocks must contain non-whitespace text");
      }
    }
  }
}

void check_system(const std::vector<TextBlock>& system) {
  for (const TextBlock& block : system) {
    if (block.text.empty()) {
      throw invalid_request("system: text content blocks must be non-empty");
    }
    if (is_blank(block.text)) {
      throw invalid_request("system: text content blocks must contain non-whitespace text");
    }
  }
}

void check_end(const Messages& messages, const ModelTraits& traits) {
  const MessageParam& last = messages.back();
  if (last.role != MessageRole::assistant) return;
  if (!traits.prefill) {
    throw invalid_request(
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message.");
  }
  if (last.content.empty()) return;
  const auto* text = last.content.back().get_if<TextBlock>();
  if (text != nullptr && is_blank(std::string_view(text->text).substr(text->text.size() - 1))) {
    throw invalid_request("messages: final assistant content cannot end with trailing whitespace");
  }
}

// Calls of one turn that wait for their results.
struct Calls {
  std::vector<std::string_view> ids;  // in order
  std::size_t message = 0;            // of the last of them
};

class Pairing {
 public:
  explicit Pairing(const Messages& messages) : messages_(messages) {}

  void check(const std::vector<Turn>& turns) {
    Calls pending;
    for (const Turn& turn : turns) {
      check_results(turn, pending);
      pending = collect_calls(turn);
    }
    if (!pending.ids.empty()) reject_unanswered(pending, {});
  }

 private:
  using Ids = std::unordered_set<std::string_view>;

  Calls collect_calls(const Turn& turn) {
    Calls calls;
    for (std::size_t i = turn.begin; i < turn.end; ++i) {
      for (const ContentBlock& block : messages_[i].content) {
        const auto* call = block.get_if<ToolUseBlock>();
        if (call == nullptr) continue;
        if (!seen_.insert(call->id).second) {
          throw invalid_request("messages: `tool_use` ids must be unique");
        }
        calls.ids.push_back(call->id);
        calls.message = i;
      }
    }
    return calls;
  }

  // Results come first in their turn; only those count as answers.
  void check_results(const Turn& turn, const Calls& pending) const {
    const Ids expected(pending.ids.begin(), pending.ids.end());
    Ids answered;
    bool leading = true;
    for (std::size_t i = turn.begin; i < turn.end; ++i) {
      const auto& content = messages_[i].content;
      for (std::size_t j = 0; j < content.size(); ++j) {
        const auto* result = content[j].get_if<ToolResultBlock>();
        if (result == nullptr) {
          leading = false;
          continue;
        }
        const std::string place = "messages." + std::to_string(i) + ".content." + std::to_string(j);
        if (!expected.contains(result->tool_use_id)) {
          throw invalid_request(
              place + ": unexpected `tool_use_id` found in `tool_result` blocks: "
              + shown(result->tool_use_id)
              + ". Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message.");
        }
        // Behind other content a result is no answer, but it may repeat one.
        const bool repeats = leading ? !answered.insert(result->tool_use_id).second
                                     : answered.contains(result->tool_use_id);
        if (repeats) {
          throw invalid_request(place
                                + ": each `tool_use` must have a single result. Found multiple "
                                  "`tool_result` blocks with id: "
                                + shown(result->tool_use_id));
        }
      }
    }
    if (answered.size() < pending.ids.size()) reject_unanswered(pending, answered);
  }

  [[noreturn]] static void reject_unanswered(const Calls& pending, const Ids& answered) {
    std::string ids;
    for (const std::string_view id : pending.ids) {
      if (!answered.contains(id)) ids.append(ids.empty() ? "" : ", ").append(id);
    }
    reject(pending.message,
           "`tool_use` ids were found without `tool_result` blocks immediately after: " + shown(ids)
               + ". Each `tool_use` block must have a corresponding `tool_result` block in the "
                 "next message.");
  }

  const Messages& messages_;
  Ids seen_;
};

}  // namespace

void check_messages(const MessageRequest& request, const ModelTraits& traits) {
  const std::vector<Turn> turns = turns_of(request.messages);
  check_roles(request.messages, turns, traits);
  check_system(request.system);
  check_text(request.messages);
  Pairing(request.messages).check(turns);
  check_end(request.messages, traits);
}

}  // namespace incipit::gateway
