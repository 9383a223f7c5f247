// Path and verb to the function that answers; key and version checks before it; the one catch.
#pragma once

#include "gateway/api/batches.h"
#include "gateway/api/diagnostics.h"
#include "gateway/api/error.h"
#include "gateway/api/exchange.h"
#include "gateway/api/files.h"
#include "gateway/api/keys.h"
#include "gateway/api/log.h"
#include "gateway/api/metrics.h"
#include "gateway/api/rate_limits.h"
#include "gateway/cache/ledger.h"
#include "gateway/engine/engine.h"
#include "gateway/prompt/chat_template.h"
#include "gateway/prompt/reply_guide.h"
#include "gateway/prompt/tokenizer.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace incipit::gateway {

// What answering needs. `main` owns it all; everything outlives the server.
struct Services {
  Engine& engine;
  Ledger& ledger;
  const Tokenizer& tokenizer;
  const ChatTemplate& chat_template;
  const ReplyGuides& guides;
  const ModelInfo& model;
  std::string local_model;  // the loaded model's own id, beside the claude-* names
  Clock& clock;
  const Keys& keys;
  RequestLog& log;
  Metrics& metrics;
  RateLimits& limits;
  Diagnostics& diagnostics;
  Files& files;
  Batches& batches;
  std::string public_url = {};  // how clients reach the gateway; empty: as their Host header says
  bool virtual_clock = false;   // POST /incipit/clock exists
  bool keep_billing_line = false;
  bool settings_before_tools = false;
  bool strict_betas = false;  // an unknown anthropic-beta value is an error
  std::chrono::milliseconds request_timeout{3'600'000};  // arrival to the end of the answer
};

// Answers one request, whatever happens, and logs it. Returns early when the peer is gone.
boost::asio::awaitable<void> serve(const HttpRequest& request, Reply& reply, Services& services);

// The error answer with the headers that clients act on (retry-after, x-should-retry).
[[nodiscard]] Response error_response(const ApiError& error, std::string_view request_id);

// The most bytes that a body may have, by what it is. Source: anthropic-wire section 2.
struct BodyLimits {
  std::size_t message = std::size_t{32} << 20;
  std::size_t batch = std::size_t{256} << 20;
  std::size_t file = std::size_t{500} << 20;
};

[[nodiscard]] std::size_t body_limit(const HttpRequest& head, const BodyLimits& limits);

// Adds what every 2xx answer below /v1 carries: organization, workspace and the twelve rate-limit
// headers of that model's line. Source: anthropic-wire sections 3.2 and 12.
void add_account_headers(Response& response, Services& services, const Scope& scope,
                         std::string_view model);

}  // namespace incipit::gateway
