// Regular expressions over bytes, as far as the formats of strings need them.
#pragma once

#include "gateway/constrain/nfa.h"

#include <string_view>

namespace incipit::constrain {

// Adds `pattern` behind `from` and returns the node behind it. It may have classes (`[a-z-]`,
// `\d`),
// `\xHH`, a backslash before any other character, groups, `|`, `?`, `*`, `+`, `{n}` and `{m,n}`; a
// dot is a dot. The patterns are the program's own: a wrong one throws std::logic_error.
Nfa::Node add_pattern(Nfa& nfa, Nfa::Node from, std::string_view pattern);

}  // namespace incipit::constrain
