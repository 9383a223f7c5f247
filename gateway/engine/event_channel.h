// What a TokenStream and the engine share: a channel that only the reader's side owns, and a flag.
#pragma once

#include "gateway/engine/token_stream.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace incipit::gateway {

// The engine may outlive the reader's io_context, and posting to a context that is being destroyed
// is undefined. Each context that reads streams has one gate: its destruction closes it, before
// any channel of that context dies, and nothing passes a closed gate.
struct ContextGate {
  std::mutex mutex;
  bool is_open = true;
};

struct TokenStream::Shared {
  // `capacity`: the most events that will ever be sent.
  Shared(const boost::asio::any_io_executor& executor, std::size_t capacity);

  // Engine thread. Never blocks; dropped when the reader or its context is gone.
  void send(TokenEvent event);

  // The reader is gone. Any thread.
  [[nodiscard]] bool is_abandoned() const { return abandoned_.load(std::memory_order_acquire); }

  // Reader's side.
  using Channel =
      boost::asio::experimental::concurrent_channel<void(boost::system::error_code, TokenEvent)>;
  void abandon();

  [[nodiscard]] Channel& channel() { return *channel_; }

  std::unique_ptr<TokenEvent> last;  // the end, once it was read

 private:
  std::shared_ptr<ContextGate> gate_;
  std::unique_ptr<Channel> channel_;  // under the gate's mutex, once shared
  std::atomic<bool> abandoned_{false};
};

}  // namespace incipit::gateway
