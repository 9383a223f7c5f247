// Cache markers: their number, order and lifetimes, and the automatic one.
// Source: anthropic-cache-semantics sections 3 and 5.
#pragma once

#include "gateway/api/anthropic_flatten.h"
#include "incipit/anthropic.h"

#include <optional>

namespace incipit::gateway {

// Checks E-1, E-2, E-8 and E-9, then sets `Item::marker`. `automatic` is the top-level
// cache_control. Throws ApiError.
void place_markers(Flattened& prompt, const std::optional<CacheControl>& automatic);

}  // namespace incipit::gateway
