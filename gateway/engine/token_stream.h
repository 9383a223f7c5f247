// One request's events, from the engine thread to the coroutine that serves it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "gateway/engine/generation.h"

namespace incipit::gateway {

// Move-only. Destroying it cancels the request: the engine sees that at its next step and frees the
// request's blocks. A slow reader never blocks the engine (the channel holds all that the request
// can yield).
class TokenStream {
 public:
  struct Shared;
  explicit TokenStream(std::shared_ptr<Shared> shared);
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();

  // The next event. After `finished` it keeps returning `finished`. One caller at a time, on the
  // executor given to `Engine::submit`.
  boost::asio::awaitable<TokenEvent> next();

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace incipit::gateway
