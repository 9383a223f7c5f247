// One client's socket with its buffer and its one deadline. Private to `gateway/http`; the only
// header that includes Beast.
#pragma once

#include "gateway/api/exchange.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <chrono>
#include <memory>
#include <string_view>

namespace incipit::gateway {

namespace asio = boost::asio;

// Everything here runs on the socket's strand.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(asio::ip::tcp::socket peer)
      : socket(std::move(peer)), timer_(socket.get_executor()) {}

  // From now on, the socket's operations end when `limit` has passed, with `expired()` true.
  void arm(std::chrono::milliseconds limit);
  void disarm();

  [[nodiscard]] bool expired() const { return expired_; }

  // Writes all of `bytes`; each piece of progress grants another `limit`. Throws PeerGone, and the
  // connection is then useless: part of the bytes may be on their way.
  asio::awaitable<void> write(std::string_view bytes, std::chrono::milliseconds limit);

  // Reads what the peer sends while its request is answered, which belongs to its next request.
  // Returns when the peer has gone. Holds at most `limit` bytes; then it only waits to be
  // cancelled.
  asio::awaitable<void> watch(std::size_t limit);

  // Says that no more will be sent and reads off what still comes, so that the kernel does not
  // reset the connection before the peer has read the answer.
  asio::awaitable<void> linger(std::chrono::milliseconds limit);

  void close();

  asio::ip::tcp::socket socket;
  boost::beast::flat_buffer buffer;  // what was read and not yet parsed
  bool idle = true;                  // between requests: may be closed without harm

 private:
  asio::steady_timer timer_;
  std::uint64_t armed_ = 0;  // which `arm` is in force; a late timer of an older one does nothing
  bool expired_ = false;
  bool broken_ = false;
};

}  // namespace incipit::gateway
