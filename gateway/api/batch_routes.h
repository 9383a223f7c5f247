// The endpoints below /v1/messages/batches. Source: anthropic-wire section 15, C-105.
#pragma once

#include "gateway/api/routes.h"

namespace incipit::gateway {

// All throw ApiError. Any thread.
Response create_batch(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response list_batches(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response show_batch(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response cancel_batch(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response delete_batch(const HttpRequest&, Services&, const Scope&, RequestRecord&);

// JSON lines, sent in pieces.
boost::asio::awaitable<void> send_batch_results(const HttpRequest&, Reply&, Services&, const Scope&,
                                                RequestRecord&);

}  // namespace incipit::gateway
