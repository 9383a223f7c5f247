#include "gateway/engine/engine.h"

#include "tests/engine/schedule_bench.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;

asio::awaitable<Received> read_all(TokenStream stream) {
  Received got;
  for (;;) {
    TokenEvent event = co_await stream.next();
    if (event.kind == TokenEvent::Kind::started) {
      ++got.started;
      got.reused_tokens = event.reused_tokens;
    } else if (event.kind == TokenEvent::Kind::token) {
      got.tokens.push_back(event.token);
    } else {
      got.reason = event.reason;
      got.message = event.message;
      ++got.finished;
      // The end is repeated for as long as one asks.
      for (int i = 0; i < 2; ++i) {
        event = co_await stream.next();
        if (event.kind != TokenEvent::Kind::finished || event.reason != got.reason) ++got.finished;
      }
      co_return got;
    }
  }
}

// Reads `count` events, then drops the stream.
asio::awaitable<void> read_some(TokenStream stream, int count) {
  for (int i = 0; i < count; ++i)
    co_await stream.next();
}

// An engine, a model, and threads that read.
struct EngineBench {
  explicit EngineBench(const EngineOptions& options = {.block_tokens = 16}, int context = 256)
      : model(context, 64), engine(std::make_unique<Engine>(model, clock, options)) {}

  ~EngineBench() {
    engine.reset();
    stop_reading();
  }

  void stop_reading() {
    work.reset();
    for (std::thread& reader : readers) {
      if (reader.joinable()) reader.join();
    }
  }

  std::future<Received> start(GenerationRequest request) {
    auto stream = engine->submit(std::move(request), io->get_executor());
    REQUIRE(stream.has_value());
    return asio::co_spawn(*io, read_all(std::move(*stream)), asio::use_future);
  }

  Received run(GenerationRequest request) { return start(std::move(request)).get(); }

  // Waits for something that the engine thread is about to do.
  template <typename Condition>
  bool becomes(Condition condition) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition(engine->stats())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  bool becomes_idle() const {
    return becomes([](const EngineStats& s) {
      return s.running == 0 && s.waiting == 0 && s.blocks_in_use == 0;
    });
  }

  Clock clock;
  ScriptedModel model;
  std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(*io);
  std::unique_ptr<Engine> engine;
  std::vector<std::thread> readers;

  void read_on(int threads) {
    for (int i = 0; i < threads; ++i)
      readers.emplace_back([this] { io->run(); });
  }
};

void check_output(const Received& got, const GenerationRequest& request, int context = 256) {
  const Output wanted = scripted_output(request, context, 64);
  CHECK(got.started == 1);
  CHECK(got.finished == 1);
  CHECK(got.reason == wanted.reason);
  CHECK(got.tokens == wanted.tokens);
}

}  // namespace

TEST_CASE("a stream yields start, tokens and one end, which it repeats") {
  EngineBench bench;
  bench.read_on(1);
  const GenerationRequest request = greedy(prompt_of(1, 40), 20);
  const Received cold = bench.run(request), warm = bench.run(request);
  check_output(cold, request);
  check_output(warm, request);
  CHECK(cold.reused_tokens == 0);
  CHECK(warm.reused_tokens == 40);
  CHECK(bench.engine->stats().prompt_tokens == 80);
  CHECK(bench.engine->stats().reused_tokens == 40);
  CHECK(bench.engine->stats().output_tokens == 40);
  CHECK(bench.becomes_idle());
}

TEST_CASE("every way of ending yields exactly one terminal event") {
  EngineBench bench({.block_tokens = 16}, 64);
  bench.read_on(2);
  GenerationRequest request = greedy(prompt_of(2, 20), 8);
  const Received all = bench.run(request);
  CHECK(all.finished == 1);
  CHECK(all.reason == FinishReason::max_tokens);

  GenerationRequest stopped = request;
  stopped.stop_tokens = {all.tokens[3]};
  const Received at_stop = bench.run(stopped);
  CHECK(at_stop.finished == 1);
  CHECK(at_stop.reason == FinishReason::stop_token);

  const Received full = bench.run(greedy(prompt_of(2, 20), 1000));
  CHECK(full.finished == 1);
  CHECK(full.reason == FinishReason::context_full);
  CHECK(full.tokens.size() == 44);

  const Received prefill_only = bench.run(greedy(prompt_of(2, 20), 0));
  CHECK(prefill_only.started == 1);
  CHECK(prefill_only.finished == 1);
  CHECK(prefill_only.reason == FinishReason::max_tokens);

  const Received refused = bench.run(greedy(prompt_of(2, 64), 1));
  CHECK(refused.started == 0);
  CHECK(refused.finished == 1);
  CHECK(refused.reason == FinishReason::failed);
  CHECK(refused.message.find("64 tokens") != std::string::npos);
  CHECK(bench.becomes_idle());
}

namespace {

// Only multiples of `step`, so many of them; an end token from the third on.
class EveryNth : public TokenGuide {
 public:
  EveryNth(int step, int most, std::int32_t end) : step_(step), most_(most), end_(end) {}

  std::span<const std::uint64_t> allowed(int remaining) override {
    asked.push_back(remaining);
    mask_ = 0;
    for (int token = 0; token < 64; token += step_)
      mask_ |= std::uint64_t{1} << token;
    if (told.size() < 2) mask_ &= ~(std::uint64_t{1} << end_);
    return {&mask_, 1};
  }

  void advance(std::int32_t token) override { told.push_back(token); }

  [[nodiscard]] bool done() const override { return static_cast<int>(told.size()) >= most_; }

  [[nodiscard]] bool is_whole() const override { return told.size() >= 4; }

  std::vector<int> asked;
  std::vector<std::int32_t> told;

 private:
  int step_, most_;
  std::int32_t end_;
  std::uint64_t mask_ = 0;
};

}  // namespace

TEST_CASE("a guided reply is made of allowed tokens and ends when the guide is done") {
  EngineBench bench;
  bench.read_on(1);
  GenerationRequest request = greedy(prompt_of(1, 40), 20);
  auto guide = std::make_shared<EveryNth>(7, 5, 0);
  request.guide = guide;
  const Received got = bench.run(request);
  CHECK(got.reason == FinishReason::complete);
  REQUIRE(got.tokens.size() == 5);
  for (const std::int32_t token : got.tokens)
    CHECK(token % 7 == 0);
  CHECK(guide->told == got.tokens);
  CHECK(guide->asked == std::vector<int>{20, 19, 18, 17, 16});

  // Of the allowed tokens the likeliest, which is what the same mask gives outside of an engine.
  std::uint64_t prefix = 0;
  for (const std::int32_t token : prompt_of(1, 40))
    prefix = extend_prefix(prefix, token);
  for (const std::int32_t token : got.tokens) {
    std::vector<float> logits(64);
    scripted_logits(prefix, logits);
    std::int32_t best = 7;
    for (std::int32_t candidate = 0; candidate < 64; candidate += 7) {
      const bool may = candidate != 0 || &token - got.tokens.data() >= 2;
      if (may
          && logits[static_cast<std::size_t>(candidate)] > logits[static_cast<std::size_t>(best)]) {
        best = candidate;
      }
    }
    CHECK(token == best);
    prefix = extend_prefix(prefix, token);
  }
  CHECK(bench.becomes_idle());
}

TEST_CASE("a guide knows of the context's end, and max_tokens ends a guided reply too") {
  EngineBench bench({.block_tokens = 16}, 48);
  bench.read_on(1);
  GenerationRequest request = greedy(prompt_of(1, 40), 20);
  auto guide = std::make_shared<EveryNth>(7, 100, 0);
  request.guide = guide;
  CHECK(bench.run(request).reason == FinishReason::complete);  // whole where the context ends
  CHECK(guide->asked.front() == 8);
  request = greedy(prompt_of(1, 40), 3);
  request.guide = std::make_shared<EveryNth>(7, 100, 0);
  CHECK(bench.run(request).reason == FinishReason::max_tokens);
  request = greedy(prompt_of(1, 40), 4);
  request.guide = std::make_shared<EveryNth>(7, 100, 0);
  CHECK(bench.run(request).reason == FinishReason::complete);
}

TEST_CASE("32 concurrent streams on two threads are each right") {
  // Room for all: under eviction, how much is reused would depend on who arrives when.
  EngineBench bench(
      {.kv_memory = 256 * 1600, .block_tokens = 16, .token_budget = 64, .max_running = 8});
  bench.read_on(2);
  std::vector<GenerationRequest> requests;
  std::vector<std::future<Received>> results;
  for (std::uint64_t i = 0; i < 32; ++i) {
    requests.push_back(greedy(prompt_of(i % 4, 60), 30));
    requests.back().tokens.push_back(std::int32_t(i));
    requests.back().sampling = {.temperature = 1.0F, .seed = i};
    results.push_back(bench.start(requests.back()));
  }
  for (std::size_t i = 0; i < 32; ++i)
    check_output(results[i].get(), requests[i]);
  CHECK(bench.becomes_idle());
  CHECK(bench.engine->stats().evictions == 0);
  // Four prefixes are computed, 28 requests share them. One that arrives when less than a block of
  // its prefix is still to come does not wait for that.
  CHECK(bench.engine->stats().reused_tokens <= 28 * 61);
  CHECK(bench.engine->stats().reused_tokens > 28 * (61 - 16));
}

TEST_CASE("dropping a stream frees its blocks within two steps") {
  // A budget of 16 rows: a prompt of 200 tokens takes 13 steps.
  for (const int drop_at : {1, 5, 30}) {
    CAPTURE(drop_at);
    EngineBench bench({.block_tokens = 16, .token_budget = 16, .max_running = 4});
    std::optional<TokenStream> stream;
    std::promise<void> submitted;
    std::atomic<int> steps = 0, steps_after = 0;
    bench.model.before_forward = [&, ready = submitted.get_future().share()](const Batch&) {
      ready.wait();
      if (stream) {
        if (++steps == drop_at) stream.reset();  // on the engine thread, in the middle of a step
      } else {
        ++steps_after;
      }
    };
    stream = bench.engine->submit(greedy(prompt_of(3, 200), 50), bench.io->get_executor());
    submitted.set_value();
    CHECK(bench.becomes([](const EngineStats& s) { return s.cancelled == 1; }));
    CHECK(bench.becomes_idle());
    CHECK(steps_after == 0);
    CHECK(bench.engine->stats().steps == drop_at);
  }
}

TEST_CASE("a request whose stream is dropped while it waits never runs") {
  EngineBench bench({.block_tokens = 16, .max_running = 1});
  bench.read_on(1);
  std::promise<void> go;
  bench.model.before_forward = [ready = go.get_future().share()](const Batch&) { ready.wait(); };
  std::future<Received> running = bench.start(greedy(prompt_of(4, 20), 5));
  (void)bench.engine->submit(greedy(prompt_of(5, 20), 5), bench.io->get_executor());
  go.set_value();
  CHECK(running.get().finished == 1);
  CHECK(bench.becomes_idle());
  CHECK(bench.engine->stats().cancelled == 1);
  CHECK(bench.engine->stats().prompt_tokens == 20);
}

TEST_CASE("a reader that drops its stream in the middle disturbs nobody") {
  EngineBench bench;
  bench.read_on(2);
  const GenerationRequest request = greedy(prompt_of(6, 50), 150);
  auto dropped = bench.engine->submit(request, bench.io->get_executor());
  std::future<Received> kept = bench.start(request);
  asio::co_spawn(*bench.io, read_some(std::move(*dropped), 10), asio::detached);
  check_output(kept.get(), request);
  CHECK(bench.becomes_idle());
}

TEST_CASE("a slow reader slows nobody and loses nothing") {
  EngineBench bench;
  const GenerationRequest request = greedy(prompt_of(7, 50), 200);
  auto slow = bench.engine->submit(request, bench.io->get_executor());
  auto fast = bench.engine->submit(request, bench.io->get_executor());
  REQUIRE((slow && fast));
  // Nobody reads at all, and still both come to their end.
  CHECK(bench.becomes([](const EngineStats& s) { return s.output_tokens == 400; }));
  CHECK(bench.becomes_idle());
  std::future<Received> one =
      asio::co_spawn(*bench.io, read_all(std::move(*slow)), asio::use_future);
  std::future<Received> two =
      asio::co_spawn(*bench.io, read_all(std::move(*fast)), asio::use_future);
  bench.read_on(1);
  check_output(one.get(), request);
  check_output(two.get(), request);
}

TEST_CASE("a full queue refuses, and has room again when a request has ended") {
  EngineBench bench({.block_tokens = 16, .max_running = 2, .max_queue = 3});
  bench.read_on(1);
  std::promise<void> go;
  bench.model.before_forward = [ready = go.get_future().share()](const Batch&) { ready.wait(); };
  std::vector<std::future<Received>> accepted;
  for (std::uint64_t i = 0; i < 5; ++i)
    accepted.push_back(bench.start(greedy(prompt_of(i, 9), 3)));
  CHECK_FALSE(bench.engine->submit(greedy(prompt_of(9, 9), 3), bench.io->get_executor()));
  go.set_value();
  CHECK(accepted[0].get().finished == 1);
  CHECK(bench.run(greedy(prompt_of(9, 9), 3)).finished == 1);
  for (std::size_t i = 1; i < 5; ++i)
    CHECK(accepted[i].get().finished == 1);
}

TEST_CASE("when the backend fails, every open and every later request ends with its message") {
  EngineBench bench({.block_tokens = 16, .token_budget = 32, .max_running = 2});
  bench.read_on(2);
  std::promise<void> go;
  int step = 0;
  bench.model.before_forward = [&, ready = go.get_future().share()](const Batch&) {
    ready.wait();
    if (++step == 3) throw std::runtime_error("device lost");
  };
  std::vector<std::future<Received>> results;
  for (std::uint64_t i = 0; i < 5; ++i) {
    results.push_back(bench.start(greedy(prompt_of(20 + i, 50), 30)));
  }
  go.set_value();
  for (auto& result : results) {
    const Received got = result.get();
    CHECK(got.finished == 1);
    CHECK(got.reason == FinishReason::failed);
    CHECK(got.message == "the backend failed: device lost");
  }
  const Received later = bench.run(greedy(prompt_of(1, 5), 3));
  CHECK(later.started == 0);
  CHECK(later.reason == FinishReason::failed);
  CHECK(later.message == "the backend failed: device lost");
  CHECK(step == 3);
  CHECK(bench.becomes_idle());
}

TEST_CASE("after stop_accepting running requests end in their own time, new ones are refused") {
  EngineBench bench;
  bench.read_on(1);
  const GenerationRequest request = greedy(prompt_of(8, 50), 100);
  std::future<Received> running = bench.start(request);
  bench.engine->stop_accepting();
  CHECK_FALSE(bench.engine->submit(request, bench.io->get_executor()));
  check_output(running.get(), request);
}

TEST_CASE("cancel_all ends running and waiting requests with shutdown") {
  EngineBench bench({.block_tokens = 16, .max_running = 2});
  bench.read_on(1);
  std::promise<void> go;
  bench.model.before_forward = [ready = go.get_future().share()](const Batch&) { ready.wait(); };
  std::vector<std::future<Received>> results;
  for (std::uint64_t i = 0; i < 4; ++i)
    results.push_back(bench.start(greedy(prompt_of(i, 50), 99)));
  bench.engine->cancel_all();
  go.set_value();
  for (auto& result : results) {
    const Received got = result.get();
    CHECK(got.finished == 1);
    CHECK(got.reason == FinishReason::shutdown);
  }
  CHECK(bench.becomes_idle());
  CHECK(bench.run(greedy(prompt_of(9, 20), 2)).reason == FinishReason::max_tokens);
}

TEST_CASE("destroying the engine ends every stream with shutdown, readable afterwards") {
  EngineBench bench({.block_tokens = 16, .max_running = 2});
  std::atomic<int> steps = 0;
  bench.model.before_forward = [&](const Batch&) { ++steps; };
  std::vector<std::future<Received>> results;
  for (std::uint64_t i = 0; i < 5; ++i) {
    results.push_back(bench.start(greedy(prompt_of(i, 50), 200)));
  }
  bench.engine.reset();
  bench.read_on(1);
  int shut_down = 0;
  for (auto& result : results) {
    const Received got = result.get();
    CHECK(got.finished == 1);
    shut_down += got.reason == FinishReason::shutdown ? 1 : 0;
  }
  CHECK(shut_down >= 3);
}

TEST_CASE("a reader's context may be destroyed while the engine runs") {
  EngineBench bench;
  for (std::uint64_t round = 0; round < 20; ++round) {
    asio::io_context io;
    for (std::uint64_t i = 0; i < 3; ++i) {
      auto stream =
          bench.engine->submit(greedy(prompt_of(round * 3 + i, 50), 200), io.get_executor());
      REQUIRE(stream.has_value());
      asio::co_spawn(io, read_all(std::move(*stream)), asio::detached);
    }
    io.run_for(std::chrono::microseconds(300));
  }  // suspended readers die with their context: that cancels their requests
  CHECK(bench.becomes_idle());
  CHECK(bench.engine->stats().cancelled > 0);
}

TEST_CASE("KV memory that cannot hold one context is refused with both numbers") {
  ScriptedModel model(256, 64);
  const Clock clock;
  // 16 blocks of 1,600 bytes hold a context of 256.
  const auto make = [&](std::size_t bytes) {
    Engine engine(model, clock, {.kv_memory = bytes, .block_tokens = 16});
    return engine.stats().blocks_total;
  };
  CHECK(make(25600) == 16);
  CHECK(make(0) == 32);
  CHECK_THROWS_WITH_AS(make(25599),
                       "KV memory of 25599 bytes cannot hold one context of 256 tokens, which "
                       "takes 25600 bytes; give more memory or a smaller context",
                       std::runtime_error);
  CHECK_THROWS_AS(Engine(model, clock, {.block_tokens = 0}), std::runtime_error);
}

}  // namespace incipit::gateway
