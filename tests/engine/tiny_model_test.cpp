// The engine on real arithmetic: whatever was reused, chunked, batched or preempted, logits have
// the same bits as in a cold run.
#include "gateway/engine/engine.h"
#include "gateway/model/checkpoint.h"
#include "tests/engine/schedule_bench.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <doctest/doctest.h>

#include <cstring>
#include <map>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;

constexpr int context = 512;
constexpr int vocab_size = 261;

// Remembers all logits in the order of computing: of use with one request at a time.
class Recorder : public Model {
 public:
  explicit Recorder(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  [[nodiscard]] const ModelInfo& info() const override { return model_->info(); }

  [[nodiscard]] std::size_t kv_block_bytes(int block_tokens) const override {
    return model_->kv_block_bytes(block_tokens);
  }

  void allocate_kv(int blocks, int block_tokens) override {
    model_->allocate_kv(blocks, block_tokens);
  }

  void forward(const Batch& batch, std::span<float> logits) override {
    model_->forward(batch, logits);
    all.insert(all.end(), logits.begin(), logits.end());
    rows += static_cast<int>(batch.tokens.size());
  }

  void copy_block(int from, int to, int tokens) override { model_->copy_block(from, to, tokens); }

  std::vector<float> all;
  int rows = 0;

 private:
  std::unique_ptr<Model> model_;
};

struct TinyBench {
  explicit TinyBench(const EngineOptions& options)
      : model(load_model(*checkpoint, *backend, context)), engine(model, clock, options) {}

  std::vector<std::vector<std::int32_t>> run(std::vector<GenerationRequest> requests) {
    asio::io_context io;
    std::vector<std::future<std::vector<std::int32_t>>> results;
    for (GenerationRequest& request : requests) {
      auto stream = engine.submit(std::move(request), io.get_executor());
      REQUIRE(stream.has_value());
      results.push_back(asio::co_spawn(io, read(std::move(*stream)), asio::use_future));
    }
    io.run();
    std::vector<std::vector<std::int32_t>> tokens;
    for (auto& result : results)
      tokens.push_back(result.get());
    return tokens;
  }

  static asio::awaitable<std::vector<std::int32_t>> read(TokenStream stream) {
    std::vector<std::int32_t> tokens;
    for (;;) {
      const TokenEvent event = co_await stream.next();
      if (event.kind == TokenEvent::Kind::token) tokens.push_back(event.token);
      if (event.kind != TokenEvent::Kind::finished) continue;
      if (event.reason != FinishReason::max_tokens) throw std::runtime_error(event.message);
      co_return tokens;
    }
  }

  Clock clock;
  std::unique_ptr<Checkpoint> checkpoint = make_tiny_checkpoint();
  std::unique_ptr<kernels::Backend> backend = kernels::make_backend("cpu", {});
  Recorder model;
  Engine engine;
};

GenerationRequest request_of(std::vector<std::int32_t> tokens, std::uint64_t seed) {
  GenerationRequest request = greedy(std::move(tokens), 12);
  request.sampling = {.temperature = 1.0F, .seed = seed};
  return request;
}

}  // namespace

TEST_CASE("the tiny model gives the same logits, bit for bit, cached and cold") {
  const std::vector<std::int32_t> base = prompt_of(1, 300, 256);
  TinyBench warm({.block_tokens = 16, .token_budget = 100});
  warm.run({request_of(base, 0)});
  for (const int split : {1, 15, 16, 17, 100, 255, 256, 299, 300}) {
    CAPTURE(split);
    std::vector<std::int32_t> tokens(base.begin(), base.begin() + split);
    const std::vector<std::int32_t> rest = prompt_of(std::uint64_t(split) + 50, 9, 256);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    TinyBench cold({.block_tokens = 64, .token_budget = 512});
    warm.model.all.clear();
    warm.model.rows = 0;
    const auto from_warm = warm.run({request_of(tokens, 7)});
    const auto from_cold = cold.run({request_of(tokens, 7)});
    CHECK(warm.model.rows <= 9 + 11);
    CHECK(cold.model.rows == split + 9 + 11);
    CHECK(from_warm == from_cold);
    REQUIRE(warm.model.all.size() == std::size_t(12 * vocab_size));
    REQUIRE(cold.model.all.size() == warm.model.all.size());
    CHECK(std::memcmp(warm.model.all.data(), cold.model.all.data(),
                      warm.model.all.size() * sizeof(float))
          == 0);
  }
}

TEST_CASE("requests that share, crowd out and preempt each other give the tokens of cold runs") {
  std::vector<GenerationRequest> requests;
  for (std::uint64_t i = 0; i < 12; ++i) {
    std::vector<std::int32_t> tokens = prompt_of(i % 3, 60 + int(i) * 13, 256);
    tokens.push_back(std::int32_t(i));
    requests.push_back(request_of(std::move(tokens), i));
    requests.back().max_tokens = 40;
  }
  std::vector<std::vector<std::int32_t>> cold;
  for (const GenerationRequest& request : requests) {
    TinyBench bench({.block_tokens = 64});
    cold.push_back(bench.run({request}).front());
  }
  // Room for one context and a little: 33 blocks of 16 tokens.
  TinyBench bench({.block_tokens = 16, .token_budget = 48, .max_running = 8});
  const std::size_t block_bytes = bench.model.kv_block_bytes(16);
  TinyBench crowded(
      {.kv_memory = 33 * block_bytes, .block_tokens = 16, .token_budget = 48, .max_running = 8});
  CHECK(bench.run(requests) == cold);
  CHECK(crowded.run(requests) == cold);
  CHECK(crowded.engine.stats().evictions > 0);
  CHECK(crowded.engine.stats().reused_tokens > 0);
}

}  // namespace incipit::gateway
