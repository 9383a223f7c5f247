// Lists of the API, fetched page by page. Private to the SDK.
// Source: anthropic-wire sections 14 to 16 and 19.5.
#pragma once

#include "incipit/client.h"
#include "json_place.h"
#include "sender.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace incipit {

template <class Value>
using ReadElement = Value (*)(const JsonPlace&);

// The page at `position` (after_id, before_id or page, with its value). Pages are named in two
// ways: by the id at the edge of this one, or, for files, by a token.
template <class Value>
Page<Value> fetch_page(const std::shared_ptr<const Sender>& sender, const std::string& path,
                       const Query& position, const RequestOptions& options,
                       ReadElement<Value> read) {
  RequestOptions at_position = options;
  for (const auto& parameter : position) {
    std::erase_if(at_position.query,
                  [&](const auto& other) { return other.first == parameter.first; });
    at_position.query.push_back(parameter);
  }
  const RawResponse response = sender->send_whole({.method = "GET", .path = path}, at_position);
  const JsonObject list(JsonPlace::check(response.body));
  Page<Value> page;
  for (const JsonPlace& element : list.at("data").items())
    page.data.push_back(read(element));
  page.has_more = list.boolean("has_more").value_or(false);

  Query next;
  const bool backwards = !position.empty() && position.front().first == "before_id";
  if (auto token = list.string("next_page"))
    next = {{"page", std::move(*token)}};
  else if (auto edge = list.string(backwards ? "first_id" : "last_id");
           edge && page.has_more && !page.data.empty())
    next = {{backwards ? "before_id" : "after_id", std::move(*edge)}};
  if (!next.empty()) {
    page.has_more = true;
    page.fetch_next = [=] { return fetch_page<Value>(sender, path, next, options, read); };
  }
  return page;
}

template <class Value>
Paged<Value> first_page(const std::shared_ptr<const Sender>& sender, const std::string& path,
                        const ListOptions& list, RequestOptions options, ReadElement<Value> read) {
  if (!list.after_id.empty() && !list.before_id.empty())
    throw PromptError("W-19.5", {},
                      "a list goes on after one id or before one: after_id and before_id "
                      "exclude each other");
  if (list.limit < 0) throw PromptError("W-19.5", {}, "the limit of a list is negative");
  if (list.limit > 0) options.query.emplace_back("limit", std::to_string(list.limit));
  Query position;
  if (!list.after_id.empty()) position = {{"after_id", list.after_id}};
  if (!list.before_id.empty()) position = {{"before_id", list.before_id}};
  return Paged<Value>(fetch_page<Value>(sender, path, position, options, read));
}

}  // namespace incipit
