#include "gateway/http/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>

namespace incipit::gateway {

namespace {

constexpr auto as_result = asio::experimental::as_tuple(asio::use_awaitable);

}  // namespace

void Connection::arm(std::chrono::milliseconds limit) {
  expired_ = false;
  const std::uint64_t mine = ++armed_;
  timer_.expires_after(limit);
  timer_.async_wait([weak = weak_from_this(), mine](boost::system::error_code error) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (error || !self || self->armed_ != mine) return;
    self->expired_ = true;
    boost::system::error_code ignored;
    self->socket.cancel(ignored);
  });
}

void Connection::disarm() {
  ++armed_;
  timer_.cancel();
}

asio::awaitable<void> Connection::write(std::string_view bytes, std::chrono::milliseconds limit) {
  while (!bytes.empty()) {
    if (broken_) throw PeerGone{};
    broken_ = true;  // until this piece is out: a cancelled coroutine does not come back here
    arm(limit);
    const auto [error, written] =
        co_await socket.async_write_some(asio::buffer(bytes.data(), bytes.size()), as_result);
    disarm();
    if (error) throw PeerGone{};
    broken_ = false;
    bytes.remove_prefix(written);
  }
}

asio::awaitable<void> Connection::watch(std::size_t limit) {
  constexpr std::size_t piece = 4096;
  while (buffer.size() + piece <= limit) {
    const auto [error, received] =
        co_await socket.async_read_some(buffer.prepare(piece), as_result);
    buffer.commit(received);
    if (error) co_return;
  }
  asio::steady_timer forever(socket.get_executor(), asio::steady_timer::time_point::max());
  const auto [cancelled] = co_await forever.async_wait(as_result);
  static_cast<void>(cancelled);
}

asio::awaitable<void> Connection::linger(std::chrono::milliseconds limit) {
  boost::system::error_code ignored;
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  arm(limit);
  std::array<char, 16384> sink{};
  while (!expired()) {
    const auto [error, received] = co_await socket.async_read_some(asio::buffer(sink), as_result);
    static_cast<void>(received);
    if (error) break;
  }
  disarm();
}

void Connection::close() {
  boost::system::error_code ignored;
  socket.close(ignored);
}

}  // namespace incipit::gateway
