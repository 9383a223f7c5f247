// POST /v1/messages: the straight line from bytes to bytes.
#pragma once

#include "gateway/api/anthropic_request.h"
#include "gateway/api/routes.h"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace incipit::gateway {

// Parses, encodes, looks up, runs and answers. Throws ApiError before the answer has begun (and
// after it, when the engine fails or shuts down: `serve` then ends the stream with an error event).
boost::asio::awaitable<void> generate(const HttpRequest& request, Reply& reply, Services& services,
                                      const Scope& scope, RequestRecord& record);

// The same without a client that waits: runs a parsed request to its end and returns the body of
// its answer. `parsed.stream` has no meaning. Throws as `generate` does.
boost::asio::awaitable<std::string> complete(MessagesRequest parsed, TimePoint arrived,
                                             Services& services, const Scope& scope,
                                             RequestRecord& record, std::string_view service_tier);

// What of the head matters to a body (W-2..W-6, anthropic-beta).
[[nodiscard]] RequestContext request_context(const HttpRequest& request, const Services& services);

}  // namespace incipit::gateway
