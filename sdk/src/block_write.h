// Pieces of a request that more than one kind of value writes. Private to the SDK.
#pragma once

#include "incipit/anthropic.h"
#include "incipit/json.h"

#include <optional>

namespace incipit {

// The member `cache_control`, if there is a marker.
void write_marker(JsonWriter& writer, const std::optional<CacheControl>& marker);

void write_block(JsonWriter& writer, const TextBlock& block);

// The members of an object, inside of another one. Throws PromptError, with `path`, unless `object`
// is one or empty.
void write_members(JsonWriter& writer, const JsonText& object, const char* path);

}  // namespace incipit
