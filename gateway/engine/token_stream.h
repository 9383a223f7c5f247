// One request's events, from the engine thread to the coroutine that serves it.
#pragma once

#include "gateway/engine/generation.h"

#include <boost/asio/awaitable.hpp>

#include <memory>

namespace incipit::gateway {

// Move-only. Destroying it cancels the request: the engine sees that at its next step and frees the
// request's blocks. A slow reader never blocks the engine (the channel holds all that the request
// can yield).
//
// Lifetime. Like any I/O object, a stream must not outlive the execution context of its executor;
// a stream inside a coroutine of that context is destroyed with it, which is fine, also while the
// engine runs. It may outlive the engine: what was sent can still be read.
class TokenStream {
 public:
  struct Shared;
  explicit TokenStream(std::shared_ptr<Shared> shared);
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();

  // The next event. After `finished` it keeps returning `finished`. One caller at a time, on the
  // executor given to `Engine::submit`. Throws boost::system::system_error when the wait itself is
  // cancelled (asio cancellation); no event is lost by that, and `next` may be called again.
  boost::asio::awaitable<TokenEvent> next();

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace incipit::gateway
