#include "gateway/engine/engine.h"

#include "gateway/engine/block_pool.h"
#include "gateway/engine/event_channel.h"
#include "gateway/engine/sampler.h"
#include "gateway/engine/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace incipit::gateway {

namespace {

// How many KV blocks the options buy.
int block_count(const Model& model, const EngineOptions& options) {
  if (options.block_tokens < 1 || options.max_running < 1 || options.max_queue < 0) {
    throw std::runtime_error(
        "engine options: block_tokens and max_running must be at least 1, "
        "max_queue at least 0");
  }
  const int context_blocks =
      (model.info().context + options.block_tokens - 1) / options.block_tokens;
  if (options.kv_memory == 0) return 2 * context_blocks;
  const std::size_t block_bytes = model.kv_block_bytes(options.block_tokens);
  const std::size_t blocks = options.kv_memory / block_bytes;
  if (blocks < static_cast<std::size_t>(context_blocks)) {
    throw std::runtime_error(
        "KV memory of " + std::to_string(options.kv_memory) + " bytes cannot hold one context of "
        + std::to_string(model.info().context) + " tokens, which takes "
        + std::to_string(block_bytes * static_cast<std::size_t>(context_blocks))
        + " bytes; give more memory or a smaller context");
  }
  return static_cast<int>(std::min<std::size_t>(blocks, std::size_t{1} << 30));
}

}  // namespace

struct Engine::State {
  using Stream = std::shared_ptr<TokenStream::Shared>;

  struct Arrival {
    std::uint64_t id = 0;
    GenerationRequest request;
    Stream stream;
  };

  State(Model& the_model, const Clock& the_clock, const EngineOptions& options)
      : model(the_model),
        clock(the_clock),
        most_open(std::size_t(options.max_running) + std::size_t(options.max_queue)),
        pool(block_count(the_model, options), options.block_tokens, the_model.info().digest),
        scheduler(pool, {.context = the_model.info().context,
                         .vocab_size = the_model.info().vocab_size,
                         .token_budget = std::max(options.token_budget, options.max_running + 1),
                         .max_running = options.max_running}) {
    model.allocate_kv(pool.total(), options.block_tokens);
    published = scheduler.stats();
    thread = std::thread([this] { run(); });
  }

  void run();
  [[nodiscard]] bool take_arrivals();
  void end_abandoned();
  void step();
  void fail(const std::string& why);
  void deliver();

  Model& model;
  const Clock& clock;
  const std::size_t most_open;

  // Under `mutex`: what other threads see.
  mutable std::mutex mutex;
  std::condition_variable arrived;
  std::vector<Arrival> inbox;
  std::size_t open = 0;  // accepted and not yet ended
  std::uint64_t next_id = 1;
  bool accepting = true;
  bool cancelling = false;
  bool stopping = false;
  std::string failure;  // not empty: the backend is unusable
  EngineStats published;

  // The engine thread's own.
  BlockPool pool;
  Scheduler scheduler;
  Sampler sampler;
  std::unordered_map<std::uint64_t, Stream> streams;
  std::vector<Arrival> arrivals;
  std::vector<std::uint64_t> abandoned;
  std::vector<float> logits;
  std::vector<std::int32_t> sampled;

  std::thread thread;
};

void Engine::State::run() {
  while (take_arrivals()) {
    end_abandoned();
    if (scheduler.has_work()) {
      try {
        step();
      } catch (const std::exception& error) {
        fail(error.what());
      } catch (...) {
        fail("unknown exception");
      }
    }
    deliver();
  }
}

// Sleeps while there is nothing to do. False when the engine is being destroyed.
bool Engine::State::take_arrivals() {
  bool is_cancelling = false, is_stopping = false;
  std::string why;
  {
    std::unique_lock lock(mutex);
    arrived.wait(lock,
                 [&] { return stopping || cancelling || !inbox.empty() || scheduler.has_work(); });
    arrivals.swap(inbox);
    is_cancelling = std::exchange(cancelling, false);
    is_stopping = stopping;
    why = failure;
  }
  const TimePoint now = clock.now();
  for (Arrival& arrival : arrivals) {
    streams.emplace(arrival.id, std::move(arrival.stream));
    scheduler.submit(arrival.id, std::move(arrival.request));
  }
  arrivals.clear();
  if (!why.empty()) scheduler.end_all(FinishReason::failed, now, why);
  if (is_cancelling || is_stopping) scheduler.end_all(FinishReason::shutdown, now);
  if (is_stopping) deliver();
  return !is_stopping;
}

void Engine::State::end_abandoned() {
  abandoned.clear();
  for (const auto& [id, stream] : streams) {
    if (stream->is_abandoned()) abandoned.push_back(id);
  }
  std::ranges::sort(abandoned);
  const TimePoint now = clock.now();
  for (const std::uint64_t id : abandoned)
    scheduler.end(id, FinishReason::cancelled, now);
}

void Engine::State::step() {
  const Step& step = scheduler.schedule(clock.now());
  for (const BlockCopy& copy : step.copies)
    model.copy_block(copy.from, copy.to, copy.tokens);
  if (step.batch.tokens.empty()) return;
  const auto vocab = static_cast<std::size_t>(model.info().vocab_size);
  if (logits.size() < step.sampled.size() * vocab) logits.resize(step.sampled.size() * vocab);
  const std::span<float> all = std::span(logits).first(step.sampled.size() * vocab);
  model.forward(step.batch, all);
  sampled.clear();
  for (std::size_t row = 0; row < step.sampled.size(); ++row) {
    const Sequence& sequence = *step.sampled[row];
    const std::span<float> own = all.subspan(row * vocab, vocab);
    if (sequence.request.guide) {
      const auto allowed = sequence.request.guide->allowed(
          std::min(sequence.request.max_tokens - sequence.generated(),
                   model.info().context - sequence.length()));
      if (!allowed.empty()) mask_logits(own, allowed);
    }
    sampled.push_back(
        sampler
            .sample(own, sequence.request.sampling, static_cast<std::uint64_t>(sequence.length()))
            .value_or(Scheduler::no_token));
  }
  scheduler.commit(sampled, clock.now());
}

// The one place where a backend's exception ends: every request fails, now and from here on.
void Engine::State::fail(const std::string& why) {
  {
    const std::lock_guard lock(mutex);
    failure = "the backend failed: " + why;
  }
  scheduler.end_all(FinishReason::failed, clock.now(), "the backend failed: " + why);
}

// Counters first: who has read an event finds it counted, and who has read the end may submit.
void Engine::State::deliver() {
  std::size_t ended = 0;
  for (const SequenceEvent& one : scheduler.events()) {
    if (one.event.kind == TokenEvent::Kind::finished) ++ended;
  }
  {
    const std::lock_guard lock(mutex);
    published = scheduler.stats();
    open -= ended;
  }
  for (const SequenceEvent& one : scheduler.events()) {
    const auto it = streams.find(one.id);
    it->second->send(one.event);
    if (one.event.kind == TokenEvent::Kind::finished) streams.erase(it);
  }
  scheduler.clear_events();
}

Engine::Engine(Model& model, const Clock& clock, const EngineOptions& options)
    : state_(std::make_unique<State>(model, clock, options)) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->accepting = false;
  }
  state_->arrived.notify_one();
  state_->thread.join();
}

std::optional<TokenStream> Engine::submit(GenerationRequest request,
                                          boost::asio::any_io_executor executor) {
  // Start, tokens and end; tokens end with the context at the latest.
  const int most_tokens = std::clamp(request.max_tokens, 0, state_->model.info().context);
  auto stream =
      std::make_shared<TokenStream::Shared>(executor, static_cast<std::size_t>(most_tokens) + 2);
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->accepting || state_->open >= state_->most_open) return std::nullopt;
    ++state_->open;
    state_->inbox.push_back({state_->next_id++, std::move(request), stream});
  }
  state_->arrived.notify_one();
  return TokenStream(std::move(stream));
}

void Engine::stop_accepting() {
  const std::lock_guard lock(state_->mutex);
  state_->accepting = false;
}

void Engine::cancel_all() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->cancelling = true;
  }
  state_->arrived.notify_one();
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(state_->mutex);
  EngineStats stats = state_->published;
  stats.waiting += static_cast<int>(state_->inbox.size());
  return stats;
}

}  // namespace incipit::gateway
