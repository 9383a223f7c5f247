// The anthropic-beta header. Source: anthropic-wire sections 3.1, 8 and 17.
#pragma once

#include "gateway/api/exchange.h"

#include <string>
#include <vector>

namespace incipit::gateway {

// Its values: separated by commas, in one header line or several.
[[nodiscard]] std::vector<std::string> betas_of(const HttpRequest& request);

// Throws ApiError (400) that names the values which neither the official clients nor Claude Code
// send. Only for those who asked for it: a client may know a beta sooner than this table.
void check_betas(const std::vector<std::string>& betas);

}  // namespace incipit::gateway
