// Addresses: base URL, path and query put together. Private to the SDK.
#pragma once

#include "incipit/client.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace incipit {

// Everything but letters, digits and `-._~` as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);

// An id as one segment of a path. Throws PromptError when it is empty, `.` or `..`, any of which
// would address something else; `what` names it ("batch id").
[[nodiscard]] std::string path_segment(std::string_view id, std::string_view what);

// Without the slash at its end. Throws PromptError ("W-1") unless it is http or https, names a
// host, and has no user name, query or fragment.
[[nodiscard]] std::string checked_base_url(std::string_view url);

// `path` below `base` (its path is kept as a prefix), with the queries merged: a name in a later
// one replaces that name in those before it (section 19.2). A path that is an absolute URL must
// have the origin of `base`, or credentials would go to another host: PromptError.
[[nodiscard]] std::string joined_url(std::string_view base, std::string_view path,
                                     std::initializer_list<const Query*> queries);

}  // namespace incipit
