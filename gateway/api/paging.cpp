#include "gateway/api/paging.h"

#include "gateway/api/anthropic_fields.h"
#include "gateway/api/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace incipit::gateway {

namespace {

std::size_t place_of(const std::vector<std::string_view>& ids, std::string_view parameter,
                     const std::string& id, std::string_view kind) {
  const auto found = std::ranges::find(ids, std::string_view(id));
  if (found == ids.end()) {
    throw invalid_request(fmt::format("{}: no {} '{}' in this list", parameter, kind, shown(id)));
  }
  return static_cast<std::size_t>(found - ids.begin());
}

}  // namespace

std::optional<std::string> one_value(const HttpRequest& request, std::string_view name) {
  const std::vector<std::string> values = request.query_values(name);
  if (values.size() > 1) throw invalid_request(fmt::format("{}: given more than once", name));
  if (values.empty() || values.front().empty()) return std::nullopt;
  return values.front();
}

std::size_t page_limit(const HttpRequest& request) {
  const std::optional<std::string> text = one_value(request, "limit");
  if (!text) return 20;
  int limit = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (code != std::errc{} || end != text->data() + text->size()) {
    throw invalid_request("limit: Input should be a valid integer");
  }
  if (limit < 1) throw invalid_request("limit: Input should be greater than or equal to 1");
  if (limit > 1000) throw invalid_request("limit: Input should be less than or equal to 1000");
  return static_cast<std::size_t>(limit);
}

Page page_of(const HttpRequest& request, const std::vector<std::string_view>& ids,
             std::string_view kind) {
  const std::size_t limit = page_limit(request);
  const std::optional<std::string> after = one_value(request, "after_id");
  const std::optional<std::string> before = one_value(request, "before_id");
  if (after && before) throw invalid_request("after_id: cannot be combined with before_id");
  Page page;
  if (before) {
    page.end = place_of(ids, "before_id", *before, kind);
    page.begin = page.end > limit ? page.end - limit : 0;
    page.has_more = page.begin > 0;
  } else {
    if (after) page.begin = place_of(ids, "after_id", *after, kind) + 1;
    page.end = std::min(ids.size(), page.begin + limit);
    page.has_more = page.end < ids.size();
  }
  return page;
}

void write_page_ends(JsonWriter& json, const Page& page, const std::vector<std::string_view>& ids) {
  const auto id = [&](std::string_view name, std::size_t place) {
    json.key(name);
    if (page.begin == page.end) {
      json.null();
    } else {
      json.string(ids[place]);
    }
  };
  json.key("has_more").boolean(page.has_more);
  id("first_id", page.begin);
  id("last_id", page.end - 1);
}

}  // namespace incipit::gateway
