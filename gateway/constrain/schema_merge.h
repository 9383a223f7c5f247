// What two schemas allow together.
#pragma once

#include "gateway/constrain/schema_reader.h"

#include <optional>

namespace incipit::constrain {

// Nothing when no value satisfies both as far as can be seen without looking into properties and
// items, or when two formats would have to hold at once.
[[nodiscard]] std::optional<Alternative> merge(const Alternative& left, const Alternative& right);

}  // namespace incipit::constrain
