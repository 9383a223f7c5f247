// POST /v1/messages: the straight line from bytes to bytes.
#pragma once

#include "gateway/api/anthropic_request.h"
#include "gateway/api/routes.h"

#include <boost/asio/awaitable.hpp>

namespace incipit::gateway {

// Parses, encodes, looks up, runs and answers. Throws ApiError before the answer has begun (and
// after it, when the engine fails or shuts down: `serve` then ends the stream with an error event).
boost::asio::awaitable<void> generate(const HttpRequest& request, Reply& reply, Services& services,
                                      const Scope& scope, RequestRecord& record);

// What of the head matters to a body (W-2..W-6, anthropic-beta).
[[nodiscard]] RequestContext request_context(const HttpRequest& request, const Services& services);

}  // namespace incipit::gateway
