#include "tests/support/fault_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace incipit::testing {
namespace {

const HttpHeader* find_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const HttpHeader& header) {
    return header.name.size() == name.size()
           && strncasecmp(header.name.data(), name.data(), name.size()) == 0;
  });
  return found == headers.end() ? nullptr : &*found;
}

// The body as it goes over the wire, and how much of that is out when `at` bytes of the body are.
std::pair<std::string, std::size_t> wire_body(const Reply& reply) {
  if (reply.chunk == 0) return {reply.body, std::min(reply.at, reply.body.size())};
  std::string wire;
  std::size_t stop = std::string::npos;
  for (std::size_t from = 0; from < reply.body.size(); from += reply.chunk) {
    const std::size_t size = std::min(reply.chunk, reply.body.size() - from);
    char head[20];
    wire.append(head, static_cast<std::size_t>(std::snprintf(head, sizeof head, "%zx\r\n", size)));
    if (stop == std::string::npos && reply.at <= from + size) stop = wire.size() + reply.at - from;
    wire.append(reply.body, from, size) += "\r\n";
  }
  stop = std::min(stop, wire.size());
  wire += "0\r\n\r\n";
  return {std::move(wire), stop};
}

std::string head_of(const Reply& reply) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " Scripted\r\n";
  for (const auto& [name, value] : reply.headers)
    head += name + ": " + value + "\r\n";
  if (reply.chunk != 0) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (reply.status != 204 && reply.status != 304) {
    head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  return head + "\r\n";
}

FaultServer::Script in_order(std::vector<Reply> replies) {
  return [replies = std::move(replies),
          next = std::make_shared<std::atomic<std::size_t>>(0)](const FaultServer::Request&) {
    const std::size_t index = (*next)++;
    return index < replies.size() ? replies[index]
                                  : Reply{.status = 418, .body = "the script is over"};
  };
}

}  // namespace

Reply json_reply(std::string body, int status) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

Reply sse_reply(std::string events) {
  return {.headers = {{"Content-Type", "text/event-stream; charset=utf-8"}},
          .body = std::move(events),
          .chunk = 64};
}

std::string FaultServer::Request::header(std::string_view name) const {
  const HttpHeader* found = find_header(headers, name);
  return found == nullptr ? "" : found->value;
}

bool FaultServer::Request::has_header(std::string_view name) const {
  return find_header(headers, name) != nullptr;
}

FaultServer::FaultServer(std::vector<Reply> replies) : FaultServer(in_order(std::move(replies))) {}

FaultServer::FaultServer(Script script)
    : script_(std::move(script)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      releases_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, size) != 0 || listen(listener_, 128) != 0
      || getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("no loopback socket to listen on");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { accept_connections(); });
}

FaultServer::~FaultServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const Connection& connection : connections_) {
      if (connection.socket >= 0) shutdown(connection.socket, SHUT_RDWR);
    }
  }
  acceptor_.join();
  connections_.clear();  // joins
  close(listener_);
  close(releases_);
}

std::string FaultServer::base_url() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

std::vector<FaultServer::Request> FaultServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool FaultServer::wait_for_requests(std::size_t count) const {
  return wait_for([&] { return requests_.size() >= count; });
}

bool FaultServer::wait_until_client_closed(int connection) const {
  return wait_for([&] {
    return std::any_of(connections_.begin(), connections_.end(), [&](const Connection& each) {
      return each.number == connection && each.closed_by_client;
    });
  });
}

bool FaultServer::wait_for(const std::function<bool()>& condition) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(5), condition);
}

void FaultServer::release() {
  const std::uint64_t one = 1;
  if (write(releases_, &one, sizeof one) < 0) throw std::runtime_error("too many releases");
}

void FaultServer::accept_connections() {
  for (int number = 0;; ++number) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (socket < 0 || stopping_) {
      if (socket >= 0) close(socket);
      return;
    }
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& connection = connections_.emplace_back();
    connection.socket = socket;
    connection.number = number;
    connection.thread = std::jthread([this, &connection] { serve(connection); });
  }
}

void FaultServer::serve(Connection& connection) {
  Request request;
  while (receive(connection, request)) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      changed_.notify_all();
    }
    if (!answer(connection, script_(request))) break;
    request = {};
  }
  const std::lock_guard lock(mutex_);
  close(connection.socket);
  connection.socket = -1;
}

bool FaultServer::receive(Connection& connection, Request& request) {
  std::string& bytes = connection.received;
  std::size_t end = 0;
  while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_more(connection)) return false;
    if (bytes[0] < 'A' || bytes[0] > 'Z') return false;  // TLS, say
  }
  std::string_view head = std::string_view(bytes).substr(0, end + 2);
  const auto take_line = [&head] {
    const std::size_t size = head.find("\r\n");
    const std::string_view line = head.substr(0, size);
    head.remove_prefix(size + 2);
    return line;
  };
  const std::string_view first = take_line();
  const std::size_t blank = first.find(' ');
  request.method = first.substr(0, blank);
  request.target = first.substr(blank + 1, first.rfind(' ') - blank - 1);
  request.connection = connection.number;
  while (!head.empty()) {
    const std::string_view line = take_line();
    const std::size_t colon = line.find(':');
    const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    request.headers.push_back(
        {std::string(line.substr(0, colon)), std::string(line.substr(value))});
  }
  const std::string length = request.header("content-length");
  std::size_t size = 0;
  std::from_chars(length.data(), length.data() + length.size(), size);
  bytes.erase(0, end + 4);
  while (bytes.size() < size) {
    if (!receive_more(connection)) return false;
  }
  request.body = bytes.substr(0, size);
  bytes.erase(0, size);
  return true;
}

bool FaultServer::receive_more(Connection& connection) {
  char bytes[64 * 1024];
  const ssize_t size = recv(connection.socket, bytes, sizeof bytes, 0);
  if (size <= 0) {
    see_client_close(connection);
    return false;
  }
  connection.received.append(bytes, static_cast<std::size_t>(size));
  return true;
}

// Returns whether the connection goes on.
bool FaultServer::answer(Connection& connection, const Reply& reply) {
  const Fault fault = reply.fault;
  const auto cut = [&] {
    const linger at_once{1, 0};
    if (reply.reset) setsockopt(connection.socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return false;
  };
  if (fault == Fault::no_reply) return cut();
  if (fault == Fault::silence && !pause(connection, -1)) return false;
  if (reply.delay.count() > 0 && !pause(connection, static_cast<int>(reply.delay.count())))
    return false;
  if (!reply.raw.empty()) {
    send(connection, reply.raw);
    return false;
  }

  const std::string head = head_of(reply);
  if (fault == Fault::cut_headers) {
    send(connection, std::string_view(head).substr(0, head.size() - 4));
    return cut();
  }
  const auto [body, stop] = wire_body(reply);
  if (!send(connection, head)) return false;
  if (fault == Fault::cut || fault == Fault::stall) {
    if (!send(connection, std::string_view(body).substr(0, stop), true)) return false;
    if (fault == Fault::cut) return cut();
    if (!pause(connection, -1)) return false;
    if (!send(connection, std::string_view(body).substr(stop), true)) return false;
  } else if (!send(connection, body, true)) {
    return false;
  }
  return !reply.close;
}

bool FaultServer::send(Connection& connection, std::string_view bytes, bool of_body) {
  while (!bytes.empty()) {
    const std::size_t most = std::min<std::size_t>(bytes.size(), 64 * 1024);
    const ssize_t sent = ::send(connection.socket, bytes.data(), most, MSG_NOSIGNAL);
    if (sent < 0) {
      see_client_close(connection);
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (of_body) body_bytes_sent_ += static_cast<std::size_t>(sent);
  }
  return true;
}

// Waits for so long, or (-1) for a release. Returns false when the client has closed meanwhile.
bool FaultServer::pause(Connection& connection, int milliseconds) {
  for (;;) {
    pollfd waits[] = {{connection.socket, POLLRDHUP, 0}, {releases_, POLLIN, 0}};
    const int ready = poll(waits, milliseconds < 0 ? 2 : 1, milliseconds);
    if (ready == 0) return true;
    if (waits[0].revents != 0) {
      see_client_close(connection);
      return false;
    }
    std::uint64_t one = 0;
    if (ready > 0 && read(releases_, &one, sizeof one) > 0) return true;  // else another took it
  }
}

void FaultServer::see_client_close(Connection& connection) {
  const std::lock_guard lock(mutex_);
  connection.closed_by_client = true;
  changed_.notify_all();
}

}  // namespace incipit::testing
