#include "gateway/api/batch_runner.h"

#include "gateway/api/anthropic_reply.h"
#include "gateway/api/generate.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <utility>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds first_wait{20};  // for room in the engine; doubled each time
constexpr std::chrono::milliseconds longest_wait{2000};

}  // namespace

struct BatchRunner::State {
  State(Services& the_services, int the_concurrency)
      : services(the_services), concurrency(static_cast<std::size_t>(the_concurrency)) {}

  struct Active {
    BatchJob job;
    asio::cancellation_signal stop;
  };

  // How one attempt ended.
  struct Outcome {
    enum class Kind : std::uint8_t { succeeded, failed, overloaded, stopped };
    Kind kind = Kind::stopped;
    std::string json;
  };

  void start_more();
  void stop_unwanted();
  asio::awaitable<void> run(const BatchJob& job);
  asio::awaitable<Outcome> attempt(const BatchJob& job, RequestRecord& record);

  Services& services;
  const std::size_t concurrency;
  std::list<Active> active;     // touched by the one thread only
  asio::io_context context{1};  // destroyed, with its coroutines, before what they refer to
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread;
};

void BatchRunner::State::start_more() {
  while (active.size() < concurrency) {
    std::optional<BatchJob> job = services.batches.begin();
    if (!job) return;
    active.emplace_back();
    const auto place = std::prev(active.end());
    place->job = *std::move(job);
    const auto ended = [this, place](const std::exception_ptr& failure) {
      // What `run` does not expect, such as no memory: the request must end all the same.
      if (failure) {
        services.batches.fail(place->job,
                              error_body({500, "api_error", "Internal server error"}, {}));
      }
      active.erase(place);
      start_more();
    };
    asio::co_spawn(context, run(place->job),
                   asio::bind_cancellation_slot(place->stop.slot(), ended));
  }
}

void BatchRunner::State::stop_unwanted() {
  for (Active& running : active) {
    if (!services.batches.is_wanted(running.job)) {
      running.stop.emit(asio::cancellation_type::terminal);
    }
  }
}

asio::awaitable<void> BatchRunner::State::run(const BatchJob& job) {
  RequestRecord record;
  record.request_id = make_id("req_01");
  record.method = "BATCH";
  record.path = fmt::format("/v1/messages/batches/{}/{}", job.batch_id, job.custom_id);
  record.key_scope = fmt::format("{}/{}", job.scope.organization, job.scope.workspace);
  Outcome outcome{Outcome::Kind::overloaded, {}};
  for (std::chrono::milliseconds wait = first_wait; outcome.kind == Outcome::Kind::overloaded;
       wait = std::min(wait * 2, longest_wait)) {
    if (!services.batches.is_wanted(job)) {
      outcome.kind = Outcome::Kind::stopped;
    } else if (services.engine.stats().waiting == 0) {
      outcome = co_await attempt(job, record);
    }
    if (outcome.kind != Outcome::Kind::overloaded) break;
    try {
      asio::steady_timer timer(context, wait);
      co_await timer.async_wait(asio::use_awaitable);
    } catch (const boost::system::system_error&) {
      outcome.kind = Outcome::Kind::stopped;
    }
  }
  switch (outcome.kind) {
    case Outcome::Kind::succeeded:
      record.status = 200;
      services.batches.succeed(job, outcome.json);
      break;
    case Outcome::Kind::failed:
      services.batches.fail(job, outcome.json);
      break;
    case Outcome::Kind::overloaded:
    case Outcome::Kind::stopped:
      record.status = 499;
      services.batches.abandon(job);
      break;
  }
  services.metrics.count(record);
  services.log.write(record);
}

// Never throws, so that what is thrown can be told apart here alone.
asio::awaitable<BatchRunner::State::Outcome> BatchRunner::State::attempt(const BatchJob& job,
                                                                         RequestRecord& record) {
  std::optional<ApiError> error;
  try {
    MessagesRequest parsed = parse_messages(job.params, *job.context);
    std::string body =
        co_await run_in_batch(std::move(parsed), services.clock.now(), services, job.scope, record);
    co_return Outcome{Outcome::Kind::succeeded, std::move(body)};
  } catch (const ApiError& refused) {
    error = refused;
  } catch (const PeerGone&) {
  } catch (const boost::system::system_error&) {  // the signal
  } catch (const std::exception& failure) {
    error = ApiError(500, "api_error", "Internal server error");
    record.error = failure.what();
  }
  if (!error) co_return Outcome{Outcome::Kind::stopped, {}};
  if (error->status == 529) co_return Outcome{Outcome::Kind::overloaded, {}};
  record.status = error->status;
  if (record.error.empty()) record.error = error->what();
  co_return Outcome{Outcome::Kind::failed, error_body(*error, {})};
}

BatchRunner::BatchRunner(Services& services, int concurrency)
    : state_(std::make_unique<State>(services, concurrency)) {
  State& s = *state_;
  s.thread = std::thread([&s] { s.context.run(); });
  services.batches.on_change([&s] {
    asio::post(s.context, [&s] {
      s.stop_unwanted();
      s.start_more();
    });
  });
}

BatchRunner::~BatchRunner() {
  state_->services.batches.on_change({});
  state_->context.stop();
  state_->thread.join();
}

}  // namespace incipit::gateway
