// The engine: one thread that owns the scheduler, the block pool and the model, and runs steps.
// Everything reaches it through `submit`; everything leaves it through the returned stream.
#pragma once

#include "gateway/clock.h"
#include "gateway/engine/generation.h"
#include "gateway/engine/token_stream.h"
#include "gateway/model/model.h"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <optional>

namespace incipit::gateway {

struct EngineOptions {
  std::size_t kv_memory = 0;  // bytes for KV blocks; 0 = enough for two full contexts
  int block_tokens = 64;
  // Rows per step: decodes first, the rest prefill chunks. Raised to max_running + 1 if less, so
  // that a prefill always moves.
  int token_budget = 512;
  int max_running = 64;  // sequences admitted at once
  int max_queue = 256;   // requests waiting beyond them
};

class Engine {
 public:
  // Allocates KV and starts the thread. `model` and `clock` outlive the engine. Throws
  // std::runtime_error with both numbers when kv_memory cannot hold one full context.
  Engine(Model& model, const Clock& clock, const EngineOptions& options);
  ~Engine();  // drains nothing: running requests end with FinishReason::shutdown

  // Empty when the queue is full (the caller answers 529), or after `stop_accepting`. Otherwise the
  // stream yields exactly one `finished`, whatever happens: a request that can never run, and any
  // request once the backend has failed, yields it at once with FinishReason::failed and a message.
  // Events are delivered on `executor`. Any thread.
  [[nodiscard]] std::optional<TokenStream> submit(GenerationRequest request,
                                                  boost::asio::any_io_executor executor);
  // Refuse new requests; running ones continue.
  void stop_accepting();
  // End every request with FinishReason::shutdown.
  void cancel_all();

  [[nodiscard]] EngineStats stats() const;  // any thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
