// Which rows the next step computes, for whom, and in which KV blocks. Pure bookkeeping: no thread,
// no model, no clock.
//
//   while (scheduler.has_work()) {
//     const Step& step = scheduler.schedule(now);
//     copy the blocks, run the batch, sample a token for each of step.sampled
//     scheduler.commit(tokens, now);
//     deliver scheduler.events(), then scheduler.clear_events()
//   }
//
// A step has one row for every sequence that is decoding; what is left of the token budget goes to
// prefill chunks. The oldest prefill is sure of half of that, and of the rest those nearest their
// end come first, so that a warm request does not wait out a cold one.
//
// Requests are admitted in order of arrival. One that lacks blocks may be overtaken, but only a
// bounded number of times. One whose next blocks a running request is computing right now waits
// for those instead of computing them again; it holds nothing meanwhile, and stops waiting when
// that request is cancelled or preempted. When blocks run out, the newest sequence is preempted:
// it gives up its blocks, which stay cached, and later resumes from what it still finds.
#pragma once

#include "gateway/engine/block_pool.h"
#include "gateway/engine/sequence.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace incipit::gateway {

struct BlockCopy {
  int from = 0, to = 0, tokens = 0;
};

struct Step {
  std::vector<BlockCopy> copies;  // in this order, before the batch
  Batch batch;
  std::vector<const Sequence*> sampled;  // by row of logits: whose next token it decides
};

struct SequenceEvent {
  std::uint64_t id = 0;
  TokenEvent event;
};

struct SchedulerLimits {
  int context = 0;  // tokens of a sequence, prompt and output
  int vocab_size = 0;
  int token_budget = 0;  // at least max_running + 1
  int max_running = 0;
};

class Scheduler {
 public:
  // What `commit` takes for logits that allow no token.
  static constexpr std::int32_t no_token = -1;

  // The pool holds at least one full context.
  Scheduler(BlockPool& pool, const SchedulerLimits& limits);

  // Queues a request; ids ascend. A request that can never run ends at once with `failed` and a
  // message that says why.
  void submit(std::uint64_t id, GenerationRequest request);
  // Ends a request, wherever it is; its blocks are released. Unknown ids are ignored: it has ended.
  // Not between `schedule` and `commit`.
  void end(std::uint64_t id, FinishReason reason, TimePoint now, std::string message = {});
  void end_all(FinishReason reason, TimePoint now, const std::string& message = {});

  // The next step. Its batch may be empty only if there is no work. Valid until the next call.
  [[nodiscard]] const Step& schedule(TimePoint now);
  // The step was computed. One token per member of `Step::sampled`.
  void commit(std::span<const std::int32_t> sampled, TimePoint now);

  // What happened since the last `clear_events`, in order.
  [[nodiscard]] const std::vector<SequenceEvent>& events() const { return events_; }

  void clear_events() { events_.clear(); }

  [[nodiscard]] bool has_work() const { return !running_.empty() || !waiting_.empty(); }

  [[nodiscard]] EngineStats stats() const;
  // Of scheduler and pool together. Throws std::logic_error. For tests.
  void check_integrity() const;

 private:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;  // oldest first

  void admit_waiting(TimePoint now);
  [[nodiscard]] bool is_led(const Sequence& sequence) const;
  [[nodiscard]] bool find_leader(Sequence& sequence, const BlockIndex::Match& match) const;
  [[nodiscard]] bool fits(const Sequence& sequence, const BlockIndex::Match& match) const;
  [[nodiscard]] int blocks_for(int tokens) const;
  void admit(Sequence& sequence, const BlockIndex::Match& match, TimePoint now);
  void plan_prefills(TimePoint now);
  // Plans up to `rows` rows more, as far as blocks can be had by preempting newer sequences.
  void plan(Sequence& sequence, int rows, TimePoint now);
  [[nodiscard]] bool preempt_newer(const Sequence& than, TimePoint now);
  void build_batch();
  // Takes a sampled token. Returns whether the sequence has ended.
  [[nodiscard]] bool accept(Sequence& sequence, std::int32_t token, TimePoint now);
  void start(Sequence& sequence);
  void finish(Sequence& sequence, FinishReason reason, TimePoint now, std::string message = {});

  BlockPool& pool_;
  SchedulerLimits limits_;
  Sequences running_, waiting_;
  Step step_;
  std::vector<Sequence*> order_;  // scratch of plan_prefills
  std::vector<SequenceEvent> events_;
  EngineStats counters_;
};

}  // namespace incipit::gateway
