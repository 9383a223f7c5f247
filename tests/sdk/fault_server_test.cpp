// The tests' server, asked by a socket that knows nothing of HTTP.
#include "tests/support/fault_server.h"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace incipit::testing {
namespace {

class Peer {
 public:
  explicit Peer(const FaultServer& server) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

  ~Peer() { close(socket_); }

  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void send(std::string_view bytes) const {
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
            == static_cast<ssize_t>(bytes.size()));
  }

  // What comes until there are `size` bytes or the connection ends.
  std::string receive(std::size_t size) const {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      const ssize_t more = recv(socket_, bytes.data() + have, size - have, 0);
      if (more <= 0) break;
      have += static_cast<std::size_t>(more);
    }
    return bytes.substr(0, have);
  }

  [[nodiscard]] std::string ask(std::string_view request) const {
    send(request);
    return receive(100'000);
  }

  [[nodiscard]] bool is_silent() const {
    pollfd wait{socket_, POLLIN, 0};
    return poll(&wait, 1, 30) == 0;
  }

 private:
  int socket_;
};

constexpr std::string_view get = "GET / HTTP/1.1\r\n\r\n";

TEST_CASE("replies come in the order of the script, and requests are kept") {
  FaultServer server(
      {{.status = 503, .headers = {{"Retry-After", "1"}}, .body = "busy", .close = true},
       {.body = "abcdefg", .chunk = 3, .close = true}});
  CHECK(Peer(server).ask("POST /a?b=c HTTP/1.1\r\nX-One: 1\r\ncontent-length: 4\r\n\r\nbody")
        == "HTTP/1.1 503 Scripted\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy");
  CHECK(Peer(server).ask(get)
        == "HTTP/1.1 200 Scripted\r\nTransfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\n3\r\ndef\r\n1\r\ng\r\n0\r\n\r\n");
  const Peer late(server);
  late.send(get);
  CHECK(late.receive(12) == "HTTP/1.1 418");

  const auto first = server.request(0);
  CHECK(first.method == "POST");
  CHECK(first.target == "/a?b=c");
  CHECK(first.header("x-one") == "1");
  CHECK(first.has_header("Content-Length"));
  CHECK_FALSE(first.has_header("accept"));
  CHECK(first.body == "body");
  CHECK(first.connection == 0);
  CHECK(server.request(1).connection == 1);
}

TEST_CASE("a connection carries one request after another, also when they are sent together") {
  FaultServer server([](const FaultServer::Request& request) {
    return Reply{.body = request.target, .close = request.target == "/3"};
  });
  const std::string answers =
      Peer(server).ask("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
  CHECK(answers.find("/1") < answers.find("/2"));
  CHECK(answers.ends_with("/3"));
  CHECK(server.request(2).connection == 0);
}

TEST_CASE("faults cut the reply where they say") {
  FaultServer server({{.fault = Fault::no_reply},
                      {.fault = Fault::cut_headers},
                      {.body = "abcdef", .fault = Fault::cut, .at = 2},
                      {.body = "abcdef", .chunk = 4, .fault = Fault::cut, .at = 5},
                      {.raw = "nonsense"}});
  CHECK(Peer(server).ask(get) == "");
  CHECK(Peer(server).ask(get) == "HTTP/1.1 200 Scripted\r\nContent-Length: 0");
  CHECK(Peer(server).ask(get) == "HTTP/1.1 200 Scripted\r\nContent-Length: 6\r\n\r\nab");
  CHECK(Peer(server).ask(get)
        == "HTTP/1.1 200 Scripted\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2\r\ne");
  CHECK(Peer(server).ask(get) == "nonsense");
}

TEST_CASE("a reset is one") {
  FaultServer server({{.body = "abcdef", .fault = Fault::cut, .at = 2, .reset = true}});
  const Peer peer(server);
  peer.send(get);
  CHECK(server.wait_for_requests(1));
  (void)peer.receive(1000);
  CHECK(errno == ECONNRESET);
}

TEST_CASE("a stalled reply goes on when it is released") {
  FaultServer server(
      {{.body = "abcdef", .fault = Fault::stall, .at = 2}, {.fault = Fault::silence}});
  const Peer peer(server);
  peer.send(get);
  CHECK(peer.receive(46).ends_with("\r\n\r\nab"));
  CHECK(peer.is_silent());
  server.release();
  CHECK(peer.receive(4) == "cdef");

  peer.send(get);
  CHECK(server.wait_for_requests(2));
  CHECK(peer.is_silent());
  server.release();
  CHECK(peer.receive(8) == "HTTP/1.1");
}

TEST_CASE("the server sees that its client has closed, stalled or idle") {
  FaultServer server({{.body = "abcdef", .fault = Fault::stall, .at = 2}});
  {
    const Peer peer(server);
    peer.send(get);
    CHECK(server.wait_for_requests(1));
  }
  CHECK(server.wait_until_client_closed());
  { const Peer peer(server); }
  CHECK(server.wait_until_client_closed(1));
}

}  // namespace
}  // namespace incipit::testing
