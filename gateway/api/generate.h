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

// The same for a request of a batch: without a client that waits, runs it to its end and returns
// the body of its answer. `parsed.stream` has no meaning, and rate limits do not count it (section
// 12). Throws as `generate` does.
boost::asio::awaitable<std::string> run_in_batch(MessagesRequest parsed, TimePoint arrived,
                                                 Services& services, const Scope& scope,
                                                 RequestRecord& record);

// What of the head and the caller matters to a body (W-2..W-6, anthropic-beta, their files).
[[nodiscard]] RequestContext request_context(const HttpRequest& request, Services& services,
                                             const Scope& scope);

}  // namespace incipit::gateway
