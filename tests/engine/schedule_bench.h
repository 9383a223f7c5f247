// A scheduler with its pool and a scripted model, stepped by hand on a clock that is a number.
#pragma once

#include "gateway/engine/scheduler.h"
#include "tests/engine/scripted_model.h"

#include <chrono>
#include <map>
#include <vector>

namespace incipit::gateway {

inline TimePoint at_second(double seconds) {
  return TimePoint{} + std::chrono::hours(1000)
         + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

struct Received {
  int started = 0, finished = 0;
  int reused_tokens = -1;
  std::vector<std::int32_t> tokens;
  FinishReason reason = FinishReason::cancelled;
  std::string message;
};

class ScheduleBench {
 public:
  struct Shape {
    int context = 256, vocab_size = 64, blocks = 64, block_tokens = 16;
    int token_budget = 512, max_running = 16;
  };

  explicit ScheduleBench(const Shape& shape)
      : model(shape.context, shape.vocab_size),
        pool(shape.blocks, shape.block_tokens, model.info().digest),
        scheduler(pool, {.context = shape.context,
                         .vocab_size = shape.vocab_size,
                         .token_budget = shape.token_budget,
                         .max_running = shape.max_running}) {
    model.allocate_kv(shape.blocks, shape.block_tokens);
  }

  std::uint64_t submit(GenerationRequest request) {
    scheduler.submit(++last_id, std::move(request));
    receive();
    return last_id;
  }

  void end(std::uint64_t id, FinishReason reason = FinishReason::cancelled) {
    scheduler.end(id, reason, at_second(now));
    receive();
  }

  // Returns the rows computed.
  int step() {
    const Step& step = scheduler.schedule(at_second(now));
    scheduler.check_integrity();
    for (const BlockCopy& copy : step.copies)
      model.copy_block(copy.from, copy.to, copy.tokens);
    const auto vocab = static_cast<std::size_t>(model.info().vocab_size);
    std::vector<float> logits(step.sampled.size() * vocab);
    if (!step.batch.tokens.empty()) model.forward(step.batch, logits);
    std::vector<std::int32_t> sampled;
    for (std::size_t i = 0; i < step.sampled.size(); ++i) {
      const Sequence& sequence = *step.sampled[i];
      sampled.push_back(sampler
                            .sample(std::span(logits).subspan(i * vocab, vocab),
                                    sequence.request.sampling,
                                    static_cast<std::uint64_t>(sequence.length()))
                            .value_or(Scheduler::no_token));
    }
    const int rows = static_cast<int>(step.batch.tokens.size());
    scheduler.commit(sampled, at_second(now));
    scheduler.check_integrity();
    receive();
    return rows;
  }

  void drain() {
    for (int steps = 0; scheduler.has_work(); ++steps) {
      if (steps > 100000) throw std::logic_error("the scheduler does not come to an end");
      step();
    }
  }

  const Received& run(GenerationRequest request) {
    const std::uint64_t id = submit(std::move(request));
    drain();
    return received[id];
  }

  double now = 0;
  ScriptedModel model;
  BlockPool pool;
  Scheduler scheduler;
  Sampler sampler;
  std::map<std::uint64_t, Received> received;
  std::uint64_t last_id = 0;

 private:
  void receive() {
    for (const SequenceEvent& one : scheduler.events()) {
      Received& got = received[one.id];
      if (got.finished > 0) throw std::logic_error("an event after the end");
      switch (one.event.kind) {
        case TokenEvent::Kind::started:
          if (!got.tokens.empty()) throw std::logic_error("a token before the start");
          ++got.started;
          got.reused_tokens = one.event.reused_tokens;
          break;
        case TokenEvent::Kind::token:
          if (got.started != 1) throw std::logic_error("a token before the start");
          got.tokens.push_back(one.event.token);
          break;
        case TokenEvent::Kind::finished:
          ++got.finished;
          got.reason = one.event.reason;
          got.message = one.event.message;
          break;
      }
    }
    scheduler.clear_events();
  }
};

// A prompt of pseudo-random tokens; equal seeds agree as far as both go.
inline std::vector<std::int32_t> prompt_of(std::uint64_t seed, int length, int vocab_size = 64) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < length; ++i) {
    tokens.push_back(static_cast<std::int32_t>(mix(seed * 1000003 + static_cast<std::uint64_t>(i))
                                               % static_cast<std::uint64_t>(vocab_size)));
  }
  return tokens;
}

inline GenerationRequest greedy(std::vector<std::int32_t> tokens, int max_tokens) {
  GenerationRequest request;
  request.tokens = std::move(tokens);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

}  // namespace incipit::gateway
