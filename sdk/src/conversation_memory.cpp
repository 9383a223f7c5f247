#include "conversation_memory.h"

#include "checks.h"
#include "incipit/prompt.h"

#include <algorithm>
#include <vector>

namespace incipit {
namespace {

using Seconds = std::chrono::duration<double>;

struct Mark {
  std::size_t block;  // as `lookback_positions` counts them
  Ttl ttl;
};

// Where a request reads and writes, in rendering order.
std::vector<Mark> marks_of(const MessageRequest& request) {
  std::vector<Mark> marks;
  std::optional<std::size_t> last;  // the target of the automatic marker (C-26)
  std::size_t block = 0;
  const auto look_at = [&](std::optional<Ttl> marker, bool markable) {
    if (marker) marks.push_back({block, *marker});
    if (markable) last = block;
    ++block;
  };
  const auto ttl_of = [](const std::optional<CacheControl>& marker) {
    return marker ? std::optional(marker->ttl) : std::nullopt;
  };
  for (const Tool& tool : request.tools) {
    if (!tool.defer_loading) look_at(ttl_of(tool.cache_control), true);
  }
  for (const TextBlock& text : request.system)
    look_at(ttl_of(text.cache_control), can_be_marked(text));
  for (const MessageParam& message : request.messages) {
    for (const ContentBlock& content : message.content)
      look_at(marker_of(content), can_be_marked(content));
  }
  const bool automatic = request.cache_control && last;
  if (automatic && (marks.empty() || marks.back().block != *last)) {
    marks.push_back({*last, request.cache_control->ttl});
  }
  return marks;
}

// Server tools add up what several calls read (C-51): what they left cannot be told from the sum.
std::int64_t left_by(const Usage& usage) {
  if (usage.web_search_requests > 0 || usage.web_fetch_requests > 0) return 0;
  return usage.cache_read_input_tokens + usage.cache_creation_input_tokens();
}

std::string spoken(Seconds duration) {
  const auto seconds = static_cast<std::int64_t>(duration.count());
  if (seconds < 120) return std::to_string(seconds) + " s";
  return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
}

// What keeps the marks of a request from reading the entry at the end of block `end`; empty:
// nothing.
std::string out_of_reach(const MessageRequest& request, const std::vector<Mark>& marks,
                         std::size_t end) {
  constexpr std::size_t lookback = 20;
  const std::vector<std::size_t> positions = lookback_positions(request);
  if (end >= positions.size()) {
    return "this request ends before the last breakpoint of the request before";
  }
  const auto next =
      std::ranges::find_if(marks, [&](const Mark& mark) { return mark.block >= end; });
  const std::string written = std::to_string(positions[end]);
  if (next == marks.end()) {
    return "the request before wrote up to position " + written
           + ", and the last breakpoint of this one is before it, at position "
           + std::to_string(positions[marks.back().block]);
  }
  if (positions[next->block] - positions[end] < lookback) return {};
  return "the request before wrote up to position " + written
         + ", and the next breakpoint of this one, at position "
         + std::to_string(positions[next->block])
         + ", looks back over 20 positions only; mark a block in between, or let auto_breakpoints do "
           "it";
}

std::string why_not_read(const MessageRequest& request, const std::vector<Mark>& marks,
                         std::size_t end, Ttl ttl, Seconds elapsed) {
  const Seconds lifetime = ttl == Ttl::one_hour ? Seconds(3600) : Seconds(300);
  if (marks.empty()) {
    return "this request has no breakpoint, and only breakpoints read the cache (C-31)";
  }
  if (elapsed >= lifetime) {
    return std::string("the entry of the request before was gone: it lives for ")
           + (ttl == Ttl::one_hour ? "1 hour" : "5 minutes")
           + " from the start of the request that used it last, which was " + spoken(elapsed)
           + " ago";
  }
  std::string reach = out_of_reach(request, marks, end);
  if (!reach.empty()) return reach;
  return "the prompt is the same, its entry is " + spoken(elapsed)
         + " old and in reach: it was evicted, belongs to another workspace, or the reply that writes "
           "it had not begun";
}

}  // namespace

std::optional<ConversationMemory::Seen> ConversationMemory::exchange(
    const std::string& conversation, Seen seen) {
  const std::lock_guard lock(mutex_);
  if (const auto place = places_.find(conversation); place != places_.end()) {
    newest_.splice(newest_.begin(), newest_, place->second);
    return std::exchange(newest_.front().second, std::move(seen));
  }
  newest_.emplace_front(conversation, std::move(seen));
  places_.emplace(conversation, newest_.begin());
  if (newest_.size() > capacity_) {
    places_.erase(newest_.back().first);
    newest_.pop_back();
  }
  return std::nullopt;
}

std::shared_ptr<const CacheMiss> ConversationMemory::note(
    const std::string& conversation, const MessageRequest& request, const Usage& usage,
    std::chrono::steady_clock::time_point started) {
  if (continues_thread(request)) return nullptr;  // not the whole prompt
  const std::vector<Mark> marks = marks_of(request);
  Seen seen{Fingerprint::of(request), started, usage.prompt_tokens(), left_by(usage)};
  if (!marks.empty()) {
    seen.end = marks.back().block;
    seen.ttl = marks.back().ttl;
  }
  const Fingerprint fingerprint = seen.fingerprint;
  const std::optional<Seen> last = exchange(conversation, std::move(seen));
  if (!last || usage.cache_read_input_tokens >= last->left) return nullptr;

  CacheMiss miss = compare(last->fingerprint, fingerprint, last->prompt_tokens);
  if (miss.reason == MissReason::none) {
    miss.tokens_lost = last->left - usage.cache_read_input_tokens;
    miss.explanation =
        why_not_read(request, marks, last->end.value_or(0), last->ttl, started - last->started);
  }
  return std::make_shared<const CacheMiss>(std::move(miss));
}

}  // namespace incipit
