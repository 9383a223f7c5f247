// The parts of tests/support/loopback_gateway.h.
#include "gateway/api/batch_runner.h"
#include "gateway/model/checkpoint.h"
#include "tests/support/loopback_gateway.h"

#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace incipit::gateway::testing {

namespace {

std::filesystem::path fresh_file(std::string_view name) {
  static std::atomic<int> count{0};
  return std::filesystem::temp_directory_path()
         / ("incipit-" + std::to_string(getpid()) + "-" + std::to_string(++count) + "-"
            + std::string(name));
}

std::filesystem::path written_keys(const std::string& text) {
  const std::filesystem::path file = fresh_file("keys");
  std::ofstream(file) << text;
  return file;
}

Keys keys_of(const std::string& text) {
  if (text.empty()) return Keys();
  const std::filesystem::path file = written_keys(text);
  Keys keys(file);
  std::filesystem::remove(file);
  return keys;
}

}  // namespace

GatewaySetup::GatewaySetup() {
  server.port = 0;
  engine.block_tokens = 16;
  engine.kv_memory = std::size_t{64} << 20;
}

struct LoopbackGateway::Parts {
  explicit Parts(const GatewaySetup& setup)
      : checkpoint(make_tiny_checkpoint()),
        backend(kernels::make_backend("cpu", {.threads = 1, .max_isa = {}})),
        model(load_model(*checkpoint, *backend, setup.context)),
        tokenizer(checkpoint->tokenizer()),
        chat_template(checkpoint->config(), checkpoint->tokenizer()),
        keys(keys_of(setup.keys)),
        log_file(fresh_file("log")),
        log(log_file),
        limits(setup.limits),
        diagnostics(clock),
        files(clock, setup.files_memory),
        batches(clock, setup.batches_memory),
        engine(*model, clock, setup.engine),
        services{engine,        ledger, tokenizer,   chat_template, guides,
                 model->info(), "tiny", clock,       keys,          log,
                 metrics,       limits, diagnostics, files,         batches},
        runner(services, 2),
        server(setup.server) {
    services.virtual_clock = setup.virtual_clock;
    services.public_url = setup.public_url;
    services.strict_betas = setup.strict_betas;
    services.request_timeout = setup.request_timeout;
    server.start(services);
  }

  ~Parts() { std::filesystem::remove(log_file); }

  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<Model> model;
  Tokenizer tokenizer;
  ChatTemplate chat_template;
  ReplyGuides guides{chat_template, tokenizer};
  Keys keys;
  std::filesystem::path log_file;
  RequestLog log;
  Clock clock;
  Ledger ledger;
  Metrics metrics;
  RateLimits limits;
  Diagnostics diagnostics;
  Files files;
  Batches batches;
  Engine engine;
  Services services;
  BatchRunner runner;
  Server server;
};

LoopbackGateway::LoopbackGateway(const GatewaySetup& setup)
    : parts_(std::make_unique<Parts>(setup)) {}

LoopbackGateway::~LoopbackGateway() = default;

Server& LoopbackGateway::server() {
  return parts_->server;
}

Engine& LoopbackGateway::engine() {
  return parts_->engine;
}

std::uint16_t LoopbackGateway::port() const {
  return parts_->server.port();
}

std::vector<std::string> LoopbackGateway::log_lines() const {
  std::ifstream in(parts_->log_file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::string Answer::header(std::string_view name) const {
  const std::size_t begin = head.find("\r\n" + std::string(name) + ": ");
  if (begin == std::string::npos) return {};
  const std::size_t value = begin + name.size() + 4;
  return head.substr(value, head.find("\r\n", value) - value);
}

Client::Client(const LoopbackGateway& gateway, Kind kind)
    : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  if (kind == Kind::narrow) {
    // The sender's buffer grows with the segment size that the receiver announces.
    const int receive_buffer = 4096;
    const int segment = 536;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    ::setsockopt(socket_, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
  }
  const timeval limit{20, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(gateway.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket_);
    throw std::runtime_error("cannot connect to the gateway under test");
  }
}

Client::Client(Client&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), buffer_(std::move(other.buffer_)) {}

Client::~Client() {
  close();
}

void Client::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string Client::receive() {
  if (!buffer_.empty()) return std::exchange(buffer_, {});
  std::string bytes(65536, '\0');
  const ssize_t received = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    throw std::runtime_error("nothing came from the gateway under test for twenty seconds");
  }
  bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
  return bytes;
}

bool Client::wait_for(std::string_view what) {
  std::string seen;
  while (seen.find(what) == std::string::npos) {
    const std::string more = receive();
    if (more.empty()) break;
    seen += more;
  }
  buffer_ = seen;
  return seen.find(what) != std::string::npos;
}

Answer Client::answer() {
  Answer answer;
  std::string data;
  const auto more = [&] {
    const std::string piece = receive();
    data += piece;
    return !piece.empty();
  };
  std::size_t end = 0;
  while ((end = data.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return answer;
  }
  answer.head = data.substr(0, end + 2);
  data.erase(0, end + 4);
  std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status);
  if (answer.header("transfer-encoding") == "chunked") {
    while (true) {
      std::size_t line = 0;
      while ((line = data.find("\r\n")) == std::string::npos) {
        if (!more()) return answer;
      }
      std::size_t size = 0;
      std::from_chars(data.data(), data.data() + line, size, 16);
      while (data.size() < line + 4 + size) {
        if (!more()) return answer;
      }
      answer.body += data.substr(line + 2, size);
      data.erase(0, line + 4 + size);
      if (size == 0) break;
    }
  } else if (const std::string length = answer.header("content-length"); !length.empty()) {
    const std::size_t size = std::stoul(length);
    while (data.size() < size) {
      if (!more()) return answer;
    }
    answer.body = data.substr(0, size);
    data.erase(0, size);
  } else if (answer.status != 204 && answer.status != 100) {
    while (more()) {
    }
    answer.body = std::exchange(data, {});
  }
  answer.complete = true;
  buffer_ = data;
  return answer;
}

bool Client::is_closed() {
  return receive().empty();
}

std::string post(std::string_view path, std::string_view body, std::string_view headers) {
  std::ostringstream out;
  out << "POST " << path << " HTTP/1.1\r\nhost: gateway\r\nanthropic-version: 2023-06-01\r\n"
      << headers << "content-length: " << body.size() << "\r\n\r\n"
      << body;
  return out.str();
}

std::string get(std::string_view path, std::string_view headers) {
  std::ostringstream out;
  out << "GET " << path << " HTTP/1.1\r\nhost: gateway\r\nanthropic-version: 2023-06-01\r\n"
      << headers << "\r\n";
  return out.str();
}

std::string message(std::string_view text, int max_tokens, bool stream) {
  std::ostringstream out;
  out << R"({"model":"claude-sonnet-4-6","max_tokens":)" << max_tokens << R"(,"stream":)"
      << (stream ? "true" : "false") << R"(,"messages":[{"role":"user","content":")" << text
      << R"("}]})";
  return out.str();
}

Answer ask(const LoopbackGateway& gateway, std::string_view request) {
  Client client(gateway);
  client.send(request);
  return client.answer();
}

long number_in(std::string_view json, std::string_view name) {
  const std::string key = '"' + std::string(name) + "\":";
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) return -1;
  long value = -1;
  std::from_chars(json.data() + at + key.size(), json.data() + json.size(), value);
  return value;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace incipit::gateway::testing
