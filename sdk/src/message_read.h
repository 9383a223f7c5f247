// Replies and their parts from any place of a document. Private to the SDK.
#pragma once

#include "incipit/anthropic.h"
#include "json_place.h"

#include <optional>

namespace incipit {

[[nodiscard]] Message read_message(const JsonPlace& place);
[[nodiscard]] UsageDelta read_usage_delta(const JsonObject& usage);
// Of the member `stop_reason`, absent or null: nothing.
[[nodiscard]] std::optional<Word<StopReason>> read_stop_reason(const JsonObject& object);

}  // namespace incipit
