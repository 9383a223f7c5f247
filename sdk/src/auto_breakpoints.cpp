// Places the markers of a conversation so that each request finds what the one before it wrote.
// Source: anthropic-cache-semantics sections 2, 6 and 7.
#include "checks.h"
#include "incipit/prompt.h"

#include <algorithm>
#include <utility>

namespace incipit {
namespace {

constexpr std::size_t lookback = 20;  // positions that a breakpoint tests, its own included (C-32)

enum class Run { none, calls, results };

Run run_of(const ContentBlock& block) {
  if (block.is<ToolUseBlock>()) return Run::calls;
  if (block.is<ToolResultBlock>()) return Run::results;
  return Run::none;
}

// Messages [begin, end) are the last turn of the assistant; both the number of messages without
// one.
std::pair<std::size_t, std::size_t> last_reply(const std::vector<MessageParam>& messages) {
  const auto is_reply = [&](std::size_t i) { return messages[i].role == MessageRole::assistant; };
  std::size_t end = messages.size();
  while (end > 0 && !is_reply(end - 1))
    --end;
  if (end == 0) return {messages.size(), messages.size()};
  std::size_t begin = end;
  while (begin > 0 && is_reply(begin - 1))
    --begin;
  return {begin, end};
}

// A given beginning of the reply: it becomes another block once the reply is added to it. What a
// server tool loop had when it paused, in contrast, stays as it is.
bool is_prefill(const std::vector<MessageParam>& messages, std::size_t begin, std::size_t end) {
  if (begin == end || end != messages.size()) return false;
  return std::all_of(messages.begin() + static_cast<std::ptrdiff_t>(begin), messages.end(),
                     [](const MessageParam& message) {
                       return std::ranges::all_of(message.content, &ContentBlock::is<TextBlock>);
                     });
}

struct Candidate {
  ContentBlock* block;
  std::size_t message;
  std::size_t position;
};

std::vector<Candidate> candidates(MessageRequest& request) {
  const std::vector<std::size_t> positions = lookback_positions(request);
  std::size_t at = request.system.size()
                   + static_cast<std::size_t>(std::ranges::count_if(
                       request.tools, [](const Tool& tool) { return !tool.defer_loading; }));
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    for (ContentBlock& block : request.messages[i].content) {
      if (can_be_marked(block)) found.push_back({&block, i, positions[at]});
      ++at;
    }
  }
  return found;
}

// Marks the end; and, out of its reach, the end of the request before; and what lies between.
// Returns how many of the `slots` are left.
int mark_conversation(MessageRequest& request, CacheControl marker, int slots) {
  const auto [begin, end] = last_reply(request.messages);
  std::vector<Candidate> places = candidates(request);
  const auto before = [](std::size_t message) {
    return [message](const Candidate& place) { return place.message < message; };
  };
  if (is_prefill(request.messages, begin, end)) {
    places.erase(std::ranges::partition_point(places, before(begin)), places.end());
  }
  if (places.empty()) return slots;
  const auto mark = [&](const Candidate& place) {
    place.block->mark(marker);
    --slots;
    // The first position that it does not reach any more.
    return place.position > lookback ? place.position - lookback : 0;
  };
  std::size_t beyond = mark(places.back());
  const auto earlier = std::ranges::partition_point(places, before(begin));
  if (earlier == places.begin()) return slots;
  const Candidate previous = *std::prev(earlier);
  if (previous.position > beyond) return slots;
  mark(previous);
  while (slots > 0 && beyond > previous.position) {
    const auto next = std::ranges::partition_point(
        places, [&](const Candidate& place) { return place.position <= beyond; });
    if (std::prev(next)->position <= previous.position) break;
    beyond = mark(*std::prev(next));
  }
  return slots;
}

}  // namespace

std::vector<std::size_t> lookback_positions(const MessageRequest& request) {
  std::vector<std::size_t> positions;
  for (const Tool& tool : request.tools) {
    if (!tool.defer_loading) positions.push_back(positions.size() + 1);
  }
  for (std::size_t i = 0; i < request.system.size(); ++i)
    positions.push_back(positions.size() + 1);
  std::size_t position = positions.size();
  Run run = Run::none;
  for (const MessageParam& message : request.messages) {
    for (const ContentBlock& block : message.content) {
      const Run next = run_of(block);
      if (next == Run::none || next != run) ++position;
      run = next;
      positions.push_back(position);
    }
  }
  return positions;
}

void auto_breakpoints(MessageRequest& request, std::optional<Ttl> prefix,
                      std::optional<Ttl> conversation) {
  if (prefix == Ttl::five_minutes && conversation == Ttl::one_hour) {
    refuse("E-2", Path(""),
           "the prefix cannot have ttl='5m' and the conversation, which comes after it, ttl='1h'; "
           "give "
           "the prefix an hour too");
  }
  clear_markers(request);
  int slots = 4;
  TextBlock* const system = last_markable(request.system);
  Tool* const tool = last_markable(request.tools);
  if (prefix && system != nullptr) {
    system->cache_control = CacheControl{*prefix};
    --slots;
  } else if (prefix && tool != nullptr) {
    tool->cache_control = CacheControl{*prefix};
    --slots;
  }
  if (conversation) slots = mark_conversation(request, CacheControl{*conversation}, slots);
  if (prefix && tool != nullptr && slots > 0) tool->cache_control = CacheControl{*prefix};
}

}  // namespace incipit
