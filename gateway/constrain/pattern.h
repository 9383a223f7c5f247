// Regular expressions over bytes, as far as the formats of strings need them.
#pragma once

#include "gateway/constrain/nfa.h"

#include <string_view>

namespace incipit::constrain {

// Adds `pattern` behind `from` and returns the node behind it. Known are `.` nowhere, classes
// `[a-z-]` and `\d`, `\xHH`, a backslash before any other character, groups, `|`, `?`, `*`, `+` and
// `{m,n}`. The patterns are the program's own: a wrong one throws std::logic_error.
Nfa::Node add_pattern(Nfa& nfa, Nfa::Node from, std::string_view pattern);

}  // namespace incipit::constrain
