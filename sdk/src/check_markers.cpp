// Where markers may stand, how many, and in which order.
// Source: anthropic-cache-semantics sections 2, 3 and 5.
#include "checks.h"

#include <algorithm>
#include <variant>

namespace incipit {
namespace {

constexpr int most_markers = 4;

std::string name_of(Ttl ttl) {
  return ttl == Ttl::one_hour ? "1h" : "5m";
}

// Calls `visit(path, marker)` for the markers of a block's parts, and then for its own: a marker
// inside counts, and takes effect at the end of the whole block (C-12).
template <class Visit>
void each_marker(const Path& path, const ContentBlock& block, const Visit& visit) {
  const Path source(path, "source");
  const Path content(path, "content");
  const auto each_of = [&](const Path& parts, const auto& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if constexpr (requires { blocks[i].cache_control(); }) {
        each_marker(Path(parts, i), blocks[i], visit);
      } else if (blocks[i].cache_control) {
        visit(Path(parts, i), *blocks[i].cache_control);
      }
    }
  };
  if (const auto* result = block.get_if<ToolResultBlock>()) each_of(content, result->content);
  if (const auto* found = block.get_if<SearchResultBlock>()) each_of(content, found->content);
  if (const auto* document = block.get_if<DocumentBlock>()) {
    const auto* parts = std::get_if<ContentSource>(&document->source);
    if (parts != nullptr) each_of(Path(source, "content"), parts->content);
  }
  if (const auto marker = block.cache_control()) visit(path, *marker);
}

// All of a request, in the order in which it is rendered.
template <class Visit>
void each_marker(const MessageRequest& request, const Visit& visit) {
  const Path tools("tools");
  for (std::size_t i = 0; i < request.tools.size(); ++i) {
    if (request.tools[i].cache_control) visit(Path(tools, i), *request.tools[i].cache_control);
  }
  const Path system("system");
  for (std::size_t i = 0; i < request.system.size(); ++i) {
    if (request.system[i].cache_control) visit(Path(system, i), *request.system[i].cache_control);
  }
  const Path messages("messages");
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const Path message(messages, i);
    const Path content(message, "content");
    for (std::size_t j = 0; j < request.messages[i].content.size(); ++j) {
      each_marker(Path(content, j), request.messages[i].content[j], visit);
    }
  }
}

// What the automatic marker finds (C-22, C-26).
struct Target {
  bool exists = false;
  std::optional<Ttl> marker;
};

Target target_with(const std::optional<CacheControl>& marker) {
  return {true, marker ? std::optional(marker->ttl) : std::nullopt};
}

Target automatic_target(const MessageRequest& request) {
  for (auto message = request.messages.rbegin(); message != request.messages.rend(); ++message) {
    if (const auto* block = last_markable(message->content)) return {true, marker_of(*block)};
  }
  if (const auto* block = last_markable(request.system)) return target_with(block->cache_control);
  if (const auto* tool = last_markable(request.tools)) return target_with(tool->cache_control);
  return {};
}

[[noreturn]] void refuse_order(const Path& path) {
  refuse(
      "E-2", path,
      "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block, in the "
      "order tools, system, messages; give the earlier ones an hour too, or this one five "
      "minutes");
}

// Adds the automatic marker to `explicit_ones`, unless its target has one already (C-25).
int with_automatic(const MessageRequest& request, int explicit_ones, bool five_minutes_before) {
  const Path path("cache_control");
  const Ttl ttl = request.cache_control->ttl;
  const Target target = automatic_target(request);
  if (!target.exists) return explicit_ones;
  if (target.marker && *target.marker != ttl) {
    refuse("E-9", path,
           "top-level cache_control has ttl='" + name_of(ttl)
               + "' but the target block already has cache_control with ttl='"
               + name_of(*target.marker) + "'; give both the same");
  }
  if (target.marker) return explicit_ones;
  if (explicit_ones == most_markers) {
    refuse("E-8", path,
           "a maximum of 4 blocks with cache_control may be provided. Found 5 with the automatic "
           "one; take one of the others away");
  }
  if (ttl == Ttl::one_hour && five_minutes_before) refuse_order(path);
  return explicit_ones + 1;
}

// A received block goes back as it came, so it is made anew only where there is a marker inside.
void clear(ContentBlock& block) {
  block.mark(std::nullopt);
  if (!marker_of(block)) return;
  if (const auto* result = block.get_if<ToolResultBlock>()) {
    ToolResultBlock copy = *result;
    std::ranges::for_each(copy.content, clear);
    block = std::move(copy);
  } else if (const auto* found = block.get_if<SearchResultBlock>()) {
    SearchResultBlock copy = *found;
    for (TextBlock& text : copy.content)
      text.cache_control.reset();
    block = std::move(copy);
  } else if (const auto* document = block.get_if<DocumentBlock>()) {
    DocumentBlock copy = *document;
    std::ranges::for_each(std::get<ContentSource>(copy.source).content, clear);
    block = std::move(copy);
  }
}

}  // namespace

bool can_be_marked(const ContentBlock& block) {
  if (block.is<ThinkingBlock>() || block.is<RedactedThinkingBlock>()) return false;
  if (const auto* text = block.get_if<TextBlock>()) return can_be_marked(*text);
  if (const auto* unknown = block.get_if<UnknownBlock>()) {
    return unknown->type == "compaction" || unknown->type == "tool_addition"
           || unknown->type == "tool_removal";
  }
  return true;
}

bool can_be_marked(const TextBlock& block) {
  return !block.text.empty();
}

bool can_be_marked(const Tool& tool) {
  return !tool.defer_loading;
}

std::optional<Ttl> marker_of(const ContentBlock& block) {
  std::optional<Ttl> found;
  each_marker(Path(""), block, [&](const Path&, const CacheControl& marker) {
    found = std::max(found.value_or(marker.ttl), marker.ttl);
  });
  return found;
}

int check_markers(const MessageRequest& request) {
  int count = 0;
  each_marker(request, [&](const Path&, const CacheControl&) { ++count; });
  int seen = 0;
  bool five_minutes = false;
  each_marker(request, [&](const Path& path, const CacheControl& marker) {
    if (++seen > most_markers) {
      refuse("E-1", path,
             "a maximum of 4 blocks with cache_control may be provided. Found "
                 + std::to_string(count + (request.cache_control ? 1 : 0))
                 + "; take some away, or let auto_breakpoints place them");
    }
    if (marker.ttl == Ttl::one_hour && five_minutes) refuse_order(Path(path, "cache_control.ttl"));
    five_minutes = five_minutes || marker.ttl == Ttl::five_minutes;
  });
  return request.cache_control ? with_automatic(request, count, five_minutes) : count;
}

void clear_markers(MessageRequest& request) {
  request.cache_control.reset();
  for (Tool& tool : request.tools)
    tool.cache_control.reset();
  for (TextBlock& block : request.system)
    block.cache_control.reset();
  for (MessageParam& message : request.messages)
    std::ranges::for_each(message.content, clear);
}

}  // namespace incipit
