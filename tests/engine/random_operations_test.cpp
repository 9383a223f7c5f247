#include "tests/engine/schedule_bench.h"

#include <doctest/doctest.h>

#include <random>

namespace incipit::gateway {

namespace {

struct Life {
  GenerationRequest request;
  bool was_cancelled = false;
};

// Submit, cancel, finish, pressure, time and protections in random order, on a pool that barely
// holds one context and a half. The model checks every cell it reads, `step` checks integrity, and
// here every output is compared with what its tokens alone say it must be.
void run_random_operations(std::uint64_t seed, const ScheduleBench::Shape& shape, int steps) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % std::uint64_t(n)); };
  ScheduleBench bench(shape);
  std::map<std::uint64_t, Life> lives;
  std::vector<std::uint64_t> open;
  for (int step = 0; step < steps; ++step) {
    if (below(100) < 30 && open.size() < 40) {
      // A few families of prompts that share beginnings of any length, and grow by turns.
      std::vector<std::int32_t> tokens;
      const int kind = below(10);
      if (kind < 2 && !lives.empty()) {
        const auto& earlier = std::next(lives.begin(), below(int(lives.size())))->second.request;
        tokens = earlier.tokens;
        const Output reply = scripted_output(earlier, shape.context, shape.vocab_size);
        tokens.insert(tokens.end(), reply.tokens.begin(), reply.tokens.end());
      } else {
        tokens =
            prompt_of(std::uint64_t(below(6)), 1 + below(shape.context * 2 / 3), shape.vocab_size);
      }
      for (int extra = below(12); extra > 0; --extra)
        tokens.push_back(below(2));
      if (int(tokens.size()) >= shape.context) tokens.resize(std::size_t(shape.context) - 1);
      GenerationRequest request = greedy(std::move(tokens), below(8) == 0 ? 0 : below(40));
      if (below(3) == 0) request.sampling = {1.0F, 0.9F, 20, random()};
      if (below(3) == 0) request.stop_tokens = {below(shape.vocab_size)};
      request.salt[0] = static_cast<std::uint8_t>(below(5) == 0);
      for (int n = below(3); n > 0; --n) {
        const bool is_long = below(3) == 0;
        request.protections.push_back({1 + below(int(request.tokens.size())),
                                       is_long ? Ttl::one_hour : Ttl::five_minutes,
                                       at_second(bench.now + (is_long ? 3600 : 300))});
      }
      const std::uint64_t id = bench.submit(request);
      lives[id].request = std::move(request);
      open.push_back(id);
    }
    if (below(100) < 5 && !open.empty()) {
      const std::uint64_t id = open[std::size_t(below(int(open.size())))];
      lives[id].was_cancelled = bench.received[id].finished == 0;
      bench.end(id);
    }
    if (below(100) < 10) bench.now += below(below(20) == 0 ? 4000 : 60);
    bench.step();
    std::erase_if(open, [&](std::uint64_t id) { return bench.received[id].finished > 0; });
  }
  bench.drain();

  int cancelled = 0;
  for (const auto& [id, life] : lives) {
    CAPTURE(seed);
    CAPTURE(id);
    const Received& got = bench.received[id];
    const Output wanted = scripted_output(life.request, shape.context, shape.vocab_size);
    REQUIRE(got.finished == 1);
    if (life.was_cancelled) {
      ++cancelled;
      REQUIRE(got.reason == FinishReason::cancelled);
      REQUIRE(got.tokens.size() <= wanted.tokens.size());
      REQUIRE(std::equal(got.tokens.begin(), got.tokens.end(), wanted.tokens.begin()));
    } else {
      REQUIRE(got.started == 1);
      REQUIRE(got.reused_tokens >= 0);
      REQUIRE(got.reused_tokens <= int(life.request.tokens.size()));
      REQUIRE(got.reason == wanted.reason);
      REQUIRE(got.tokens == wanted.tokens);
    }
  }
  const EngineStats stats = bench.scheduler.stats();
  CHECK(stats.blocks_in_use == 0);
  CHECK(stats.cancelled == cancelled);
  // Without these the test would not have tested much.
  CHECK(cancelled > 50);
  CHECK(stats.preemptions > 20);
  CHECK(stats.evictions > 1000);
  CHECK(stats.protected_evictions > 50);
  CHECK(stats.reused_tokens > 2000);
  CHECK(bench.model.copies > 100);
  MESSAGE("seed " << seed << ": " << lives.size() << " requests, " << stats.preemptions
                  << " preemptions, " << stats.evictions << " evictions, "
                  << stats.protected_evictions << " of protected blocks, " << bench.model.copies
                  << " copies, " << stats.reused_tokens << " of " << stats.prompt_tokens
                  << " prompt tokens reused");
}

}  // namespace

TEST_CASE("10 000 random operations keep pool and scheduler consistent and every output right") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    run_random_operations(seed,
                          {.context = 96,
                           .vocab_size = 32,
                           .blocks = 20,
                           .block_tokens = 8,
                           .token_budget = 40,
                           .max_running = 12},
                          10000);
  }
}

TEST_CASE("random operations on a pool of exactly one context of small blocks") {
  run_random_operations(4,
                        {.context = 64,
                         .vocab_size = 32,
                         .blocks = 16,
                         .block_tokens = 4,
                         .token_budget = 24,
                         .max_running = 8},
                        10000);
}

}  // namespace incipit::gateway
