#include "gateway/api/anthropic_caching.h"

#include "gateway/api/error.h"

#include <algorithm>
#include <string>

namespace incipit::gateway {
namespace {

std::string_view name_of(Ttl ttl) {
  return ttl == Ttl::one_hour ? "1h" : "5m";
}

// E-2. The one place that knows how the hosted API words it when the automatic marker offends,
// which no source settles.
[[noreturn]] void reject_order(const std::string& block_path) {
  const std::string place =
      block_path.empty() ? "cache_control" : block_path + ".cache_control.ttl";
  throw invalid_request(
      place
      + ": a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
        "that blocks are processed in the following order: `tools`, `system`, `messages`.");
}

void check_count(std::size_t count) {
  if (count <= 4) return;
  throw invalid_request("A maximum of 4 blocks with cache_control may be provided. Found "
                        + std::to_string(count) + ".");
}

// The last item that can carry a marker (C-26). Empty text is not among the items.
std::optional<std::size_t> automatic_target(const Flattened& prompt) {
  for (std::size_t i = prompt.items.size(); i-- > 0;) {
    if (prompt.items[i].kind != ItemKind::thinking && !prompt.origins[i].is_turn_scoped) return i;
  }
  return std::nullopt;
}

// The marker that acts at an item: of several there the longest lived one, as the formula of C-48
// has it.
std::optional<Ttl> marker_at(const Flattened& prompt, std::size_t item) {
  std::optional<Ttl> found;
  for (const Marker& marker : prompt.markers) {
    if (marker.item == item) found = std::max(found.value_or(marker.ttl), marker.ttl);
  }
  return found;
}

// Adds the automatic marker unless its target has one already (C-25).
void add_automatic(Flattened& prompt, Ttl ttl) {
  const auto target = automatic_target(prompt);
  if (!target) return;
  const auto present = marker_at(prompt, *target);
  if (!present) {
    prompt.markers.push_back({target, "", ttl});
  } else if (*present != ttl) {
    throw invalid_request("Top-level cache_control has ttl='" + std::string(name_of(ttl))
                          + "' but the target block already has cache_control with ttl='"
                          + std::string(name_of(*present)) + "'");
  }
}

}  // namespace

void place_markers(Flattened& prompt, const std::optional<CacheControl>& automatic) {
  if (automatic) add_automatic(prompt, automatic->ttl);
  check_count(prompt.markers.size());
  bool short_lived = false;
  for (const Marker& marker : prompt.markers) {
    if (marker.ttl == Ttl::one_hour && short_lived) reject_order(marker.path);
    short_lived = short_lived || marker.ttl == Ttl::five_minutes;
  }
  for (const Marker& marker : prompt.markers) {
    if (marker.item) prompt.items[*marker.item].marker = marker_at(prompt, *marker.item);
  }
}

}  // namespace incipit::gateway
