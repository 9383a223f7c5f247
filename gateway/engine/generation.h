// What goes into the engine and what comes out: tokens only, no text and no wire words.
#pragma once

#include "gateway/cache/ledger.h"
#include "gateway/model/model.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace incipit::gateway {

struct Sampling {
  float temperature = 1.0F;  // 0 = greedy
  float top_p = 1.0F;
  int top_k = 0;  // 0 = all
  std::uint64_t seed = 0;
};

// Which tokens a reply may be made of. The engine's thread asks and tells it, in the order of the
// tokens; a preempted request goes on where it was.
class TokenGuide {
 public:
  virtual ~TokenGuide() = default;
  // One bit per id, token 0 lowest in word 0; end tokens are among them where the reply may end.
  // Empty: any token. `remaining` more tokens may come, the next one included. Valid until the next
  // call.
  [[nodiscard]] virtual std::span<const std::uint64_t> allowed(int remaining) = 0;
  // The token was taken; it was allowed and is no end token.
  virtual void advance(std::int32_t token) = 0;
  // Only the end can follow.
  [[nodiscard]] virtual bool done() const = 0;
  // All that was asked for is there: where the tokens run out now, nothing is missing.
  [[nodiscard]] virtual bool is_whole() const = 0;
};

struct GenerationRequest {
  std::vector<std::int32_t> tokens;  // the prompt; not empty, shorter than the context
  int max_tokens = 0;                // 0 = prefill only (pre-warming)
  Sampling sampling;
  std::vector<std::int32_t> stop_tokens;  // end of turn; not delivered
  Digest salt{};                          // isolates KV: equal salts may share blocks
  std::vector<Protection> protections;
  std::shared_ptr<TokenGuide> guide;  // null: any token
};

enum class FinishReason : std::uint8_t {
  stop_token,
  complete,  // the guide lets nothing follow, or misses nothing where the tokens ran out
  max_tokens,
  context_full,  // the model's context ended first
  cancelled,
  shutdown,
  failed,  // the backend failed, or the request can never run; see TokenEvent::message
};

// What a stream yields, in this order: one `started`, tokens, one `finished`. A request that ends
// before its prefill did yields only `finished`.
struct TokenEvent {
  enum class Kind : std::uint8_t { started, token, finished };
  Kind kind = Kind::finished;
  std::int32_t token = -1;
  int reused_tokens = 0;  // started: prompt tokens whose KV was reused
  FinishReason reason = FinishReason::cancelled;
  std::string message;
};

struct EngineStats {
  int running = 0, waiting = 0;
  int blocks_total = 0, blocks_in_use = 0, blocks_cached = 0;
  std::int64_t steps = 0, prompt_tokens = 0, reused_tokens = 0, output_tokens = 0;
  std::int64_t preemptions = 0, evictions = 0, protected_evictions = 0, cancelled = 0;
};

}  // namespace incipit::gateway
