#include "gateway/api/anthropic_thinking.h"

#include "gateway/api/error.h"
#include "gateway/api/signature.h"
#include "incipit/json.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

namespace incipit::gateway {
namespace {

std::string place(std::size_t message, std::size_t block) {
  return "messages." + std::to_string(message) + ".content." + std::to_string(block);
}

// How much of max_tokens a thought may take where no budget says it. The gateway's own choice.
std::int64_t share_of(Effort effort, std::int64_t max_tokens) {
  switch (effort) {
    case Effort::low:
      return max_tokens / 4;
    case Effort::medium:
      return max_tokens / 2;
    case Effort::high:
      return max_tokens - max_tokens / 4;
    case Effort::xhigh:
      return max_tokens - max_tokens / 8;
    case Effort::max:
      break;
  }
  return max_tokens - max_tokens / 16;
}

bool answers_results(const Flattened& prompt) {
  const Item& last = prompt.items.back();
  return last.section == Section::messages
         && std::ranges::any_of(prompt.items, [&](const Item& item) {
              return item.kind == ItemKind::tool_result && item.turn == last.turn;
            });
}

void check_thought(const ThinkingBlock& block, std::size_t message, std::size_t index,
                   bool in_latest) {
  const auto read = read_signature(block.signature);
  if (!read) {
    throw invalid_request(place(message, index) + ": Invalid `signature` in `thinking` block");
  }
  // A shown text may not be emptied either.
  if (in_latest && read->was_shown && block.thinking != read->thought) {
    throw invalid_request(place(message, index)
                          + ": `thinking` or `redacted_thinking` blocks in the latest assistant "
                            "message cannot be modified. These blocks must remain as they were in "
                            "the original response.");
  }
}

[[noreturn]] void reject_binding(const Origin& origin, const MessageRequest& request) {
  const ContentBlock& block = request.messages[origin.message].content[origin.block];
  const bool redacted = block.is<RedactedThinkingBlock>();
  throw invalid_request(place(origin.message, origin.block) + ": Invalid "
                        + (redacted ? "`data` in `redacted_thinking`" : "`signature` in `thinking`")
                        + " block. The block is bound to a different conversation. Remove the "
                          "block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                          "\"drop_block\".");
}

}  // namespace

Thinking::Type thinking_mode(const MessageRequest& request, const ModelTraits& traits) {
  if (request.thinking) return request.thinking->type;
  return traits.thinks_by_default ? Thinking::Type::adaptive : Thinking::Type::disabled;
}

ThinkingPlan plan_thinking(const MessageRequest& request, const ModelTraits& traits,
                           const Flattened& prompt) {
  const Thinking::Type mode = thinking_mode(request, traits);
  ThinkingPlan plan;
  plan.wanted = mode == Thinking::Type::between_tools ? answers_results(prompt)
                                                      : mode != Thinking::Type::disabled;
  if (!plan.wanted) return plan;
  const std::int64_t most =
      mode == Thinking::Type::enabled
          ? request.thinking->budget_tokens
          : share_of(request.effort.value_or(traits.default_effort), request.max_tokens);
  plan.most_tokens =
      static_cast<int>(std::clamp<std::int64_t>(most, 1, std::numeric_limits<int>::max()));
  const std::string_view display =
      request.thinking ? std::string_view(request.thinking->display) : std::string_view();
  plan.is_shown = display.empty() ? traits.shows_thinking : display != "omitted";
  return plan;
}

void check_thoughts(const MessageRequest& request) {
  std::size_t latest = request.messages.size();
  while (latest > 0 && request.messages[latest - 1].role != MessageRole::assistant)
    --latest;
  for (std::size_t i = 0; i < latest; ++i) {
    const auto& content = request.messages[i].content;
    for (std::size_t j = 0; j < content.size(); ++j) {
      if (const auto* thought = content[j].get_if<ThinkingBlock>()) {
        check_thought(*thought, i, j, i + 1 == latest);
      }
      const auto* redacted = content[j].get_if<RedactedThinkingBlock>();
      if (redacted != nullptr && !read_signature(redacted->data)) {
        throw invalid_request(place(i, j) + ": Invalid `data` in `redacted_thinking` block");
      }
    }
  }
  const MessageParam& last = request.messages.back();
  if (last.role == MessageRole::assistant && !last.content.empty()
      && (last.content.back().is<ThinkingBlock>()
          || last.content.back().is<RedactedThinkingBlock>())) {
    throw invalid_request("messages." + std::to_string(request.messages.size() - 1)
                          + ": The final block in an assistant message cannot be `"
                          + std::string(last.content.back().type()) + "`");
  }
}

std::string check_bindings(Flattened& prompt, const MessageRequest& request, bool drops) {
  std::vector<bool> is_gone(prompt.items.size(), false);
  std::string transformations;
  JsonWriter json(transformations);
  json.begin_array();
  bool dropping = false;
  for (std::size_t i = 0; i < prompt.items.size(); ++i) {
    const Origin& origin = prompt.origins[i];
    dropping =
        prompt.items[i].kind == ItemKind::thinking && (dropping || !origin.follows_its_content);
    if (!dropping) continue;
    if (!drops) reject_binding(origin, request);
    is_gone[i] = true;
    json.begin_object().key("type").string("thinking_dropped");
    json.key("path").string(place(origin.message, origin.block));
    json.key("reason").string("prefix_binding_mismatch").end_object();
  }
  json.end_array();
  remove_items(prompt, is_gone);
  return transformations;
}

std::vector<int> assistant_turns(const Flattened& prompt) {
  const auto& items = prompt.items;
  std::vector<int> turns(items.size());
  int turn = 0;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin;
    bool has_result = false;
    while (end < items.size() && items[end].section == items[begin].section
           && items[end].turn == items[begin].turn) {
      has_result = has_result || items[end].kind == ItemKind::tool_result;
      ++end;
    }
    // That results with other content beside them go on with the loop is C-64's wording; section
    // 9's can be read otherwise.
    const Item& first = items[begin];
    if (first.section == Section::messages && first.role == Role::user && !has_result) ++turn;
    std::fill(turns.begin() + static_cast<std::ptrdiff_t>(begin),
              turns.begin() + static_cast<std::ptrdiff_t>(end), turn);
    begin = end;
  }
  return turns;
}

void strip(Flattened& prompt, KeptThoughts kept) {
  const std::vector<int> turns = assistant_turns(prompt);
  std::vector<bool> is_gone(prompt.items.size(), false);
  bool user_follows = false;
  for (std::size_t i = prompt.items.size(); i-- > 0;) {
    const Item& item = prompt.items[i];
    user_follows = user_follows || item.role == Role::user;
    if (item.kind == ItemKind::thinking) {
      is_gone[i] = kept == KeptThoughts::none
                   || (kept == KeptThoughts::current_turn && turns[i] != turns.back());
    } else {
      is_gone[i] = prompt.origins[i].is_turn_scoped && user_follows;
    }
  }
  remove_items(prompt, is_gone);
}

}  // namespace incipit::gateway
