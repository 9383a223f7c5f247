#include "gateway/engine/token_stream.h"

#include "gateway/engine/event_channel.h"

#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;

// Closes the gate when its context is destroyed. Services shut down newest first, and this one is
// made after the service behind the channels: the gate is closed before they are touched.
class GateService : public asio::execution_context::service {
 public:
  inline static asio::execution_context::id id;

  explicit GateService(asio::execution_context& context)
      : service(context), gate(std::make_shared<ContextGate>()) {}

  const std::shared_ptr<ContextGate> gate;

 private:
  void shutdown() override {
    const std::lock_guard lock(gate->mutex);
    gate->is_open = false;
  }
};

}  // namespace

TokenStream::Shared::Shared(const asio::any_io_executor& executor, std::size_t capacity)
    : channel_(std::make_unique<Channel>(executor, capacity)) {
  auto& context = asio::query(executor, asio::execution::context);
  gate_ = asio::use_service<GateService>(context).gate;
}

void TokenStream::Shared::send(TokenEvent event) {
  const std::lock_guard lock(gate_->mutex);
  if (gate_->is_open && channel_) channel_->try_send(boost::system::error_code{}, std::move(event));
}

void TokenStream::Shared::abandon() {
  std::unique_ptr<Channel> channel;
  {
    const std::lock_guard lock(gate_->mutex);
    channel = std::move(channel_);
  }
  abandoned_.store(true, std::memory_order_release);
}

TokenStream::TokenStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

TokenStream::TokenStream(TokenStream&&) noexcept = default;

TokenStream& TokenStream::operator=(TokenStream&& other) noexcept {
  if (this == &other) return *this;
  if (shared_) shared_->abandon();
  shared_ = std::move(other.shared_);
  return *this;
}

TokenStream::~TokenStream() {
  if (shared_) shared_->abandon();
}

asio::awaitable<TokenEvent> TokenStream::next() {
  Shared& shared = *shared_;
  if (shared.last) co_return *shared.last;
  TokenEvent event = co_await shared.channel().async_receive(asio::use_awaitable);
  if (event.kind == TokenEvent::Kind::finished) shared.last = std::make_unique<TokenEvent>(event);
  co_return event;
}

}  // namespace incipit::gateway
