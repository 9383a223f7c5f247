// Pages of a list by limit, after_id and before_id. Source: anthropic-wire sections 14, 15, 19.5.
#pragma once

#include "gateway/api/exchange.h"
#include "incipit/json.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// A query parameter that may be there once; empty counts as not there. Throws ApiError 400.
[[nodiscard]] std::optional<std::string> one_value(const HttpRequest& request,
                                                   std::string_view name);

// `limit`: 1 to 1000, 20 without. Throws ApiError 400.
[[nodiscard]] std::size_t page_limit(const HttpRequest& request);

struct Page {
  std::size_t begin = 0, end = 0;  // places in the whole list
  bool has_more = false;           // in the direction of the cursor
};

// The page of `ids` that the query asks for. Throws ApiError 400, also for a cursor that is no id
// of the list; `kind` ("model") is what its text calls one.
[[nodiscard]] Page page_of(const HttpRequest& request, const std::vector<std::string_view>& ids,
                           std::string_view kind);

// The members has_more, first_id and last_id.
void write_page_ends(JsonWriter& json, const Page& page, const std::vector<std::string_view>& ids);

}  // namespace incipit::gateway
