#include "gateway/engine/scheduler.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace incipit::gateway {

namespace {

// Requests that lack blocks which the admission loop looks past, and how often one of them may be
// overtaken.
constexpr int admission_window = 8;
constexpr int most_overtakings = 32;

bool is_older(const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
  return a->id < b->id;
}

void insert_by_age(std::vector<std::unique_ptr<Sequence>>& list, std::unique_ptr<Sequence> one) {
  list.insert(std::upper_bound(list.begin(), list.end(), one, is_older), std::move(one));
}

// Why a request can never run; empty if it can.
std::string objection(const GenerationRequest& request, const SchedulerLimits& limits) {
  if (request.tokens.empty()) return "the prompt has no tokens";
  if (request.tokens.size() >= static_cast<std::size_t>(limits.context)) {
    return "the prompt has " + std::to_string(request.tokens.size())
           + " tokens; the model's context holds " + std::to_string(limits.context)
           + ", and one is needed for the reply";
  }
  for (std::size_t i = 0; i < request.tokens.size(); ++i) {
    if (request.tokens[i] < 0 || request.tokens[i] >= limits.vocab_size) {
      return "prompt token " + std::to_string(i) + " has id " + std::to_string(request.tokens[i])
             + "; the model's vocabulary has " + std::to_string(limits.vocab_size) + " ids";
    }
  }
  return {};
}

TokenEvent finished(FinishReason reason, std::string message) {
  TokenEvent event;
  event.kind = TokenEvent::Kind::finished;
  event.reason = reason;
  event.message = std::move(message);
  return event;
}

}  // namespace

Scheduler::Scheduler(BlockPool& pool, const SchedulerLimits& limits)
    : pool_(pool), limits_(limits) {
  assert(pool.total() >= blocks_for(limits.context) && limits.token_budget > limits.max_running);
}

int Scheduler::blocks_for(int tokens) const {
  return (tokens + pool_.block_tokens() - 1) / pool_.block_tokens();
}

void Scheduler::submit(std::uint64_t id, GenerationRequest request) {
  if (std::string reason = objection(request, limits_); !reason.empty()) {
    events_.push_back({id, finished(FinishReason::failed, std::move(reason))});
    return;
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->tokens = std::move(request.tokens);
  sequence->prompt_tokens = sequence->length();
  sequence->request = std::move(request);
  insert_by_age(waiting_, std::move(sequence));
}

void Scheduler::end(std::uint64_t id, FinishReason reason, TimePoint now, std::string message) {
  for (Sequences* list : {&running_, &waiting_}) {
    const auto it = std::ranges::find_if(*list, [&](const auto& s) { return s->id == id; });
    if (it == list->end()) continue;
    finish(**it, reason, now, std::move(message));
    list->erase(it);
    return;
  }
}

void Scheduler::end_all(FinishReason reason, TimePoint now, const std::string& message) {
  for (Sequences* list : {&running_, &waiting_}) {
    for (const auto& sequence : *list)
      finish(*sequence, reason, now, message);
    list->clear();
  }
}

// --- a step --------------------------------------------------------------------------------------

const Step& Scheduler::schedule(TimePoint now) {
  step_.copies.clear();
  // By index: planning may preempt, which shortens the list at its end.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->remaining() == 1) plan(*running_[i], 1, now);
  }
  admit_waiting(now);
  plan_prefills(now);
  build_batch();
  if (!step_.batch.tokens.empty()) ++counters_.steps;
  return step_;
}

void Scheduler::plan_prefills(TimePoint now) {
  order_.clear();
  for (const auto& sequence : running_) {
    if (sequence->planned == 0) order_.push_back(sequence.get());
  }
  const auto left = [&] {
    int budget = limits_.token_budget;
    for (const auto& sequence : running_)
      budget -= sequence->planned;
    return budget;
  };
  if (order_.empty()) return;
  Sequence& oldest = *order_.front();
  plan(oldest, std::min(oldest.remaining(), (left() + 1) / 2), now);
  std::ranges::sort(
      order_, {}, [](const Sequence* s) { return std::pair(s->remaining() - s->planned, s->id); });
  for (Sequence* const sequence : order_) {
    // Preempted meanwhile: the newest go first, so all that are newer than the last are gone.
    if (sequence->id > running_.back()->id) continue;
    const int rows = std::min(left(), sequence->remaining() - sequence->planned);
    if (rows > 0) plan(*sequence, rows, now);
  }
}

void Scheduler::plan(Sequence& sequence, int rows, TimePoint now) {
  const int end = sequence.computed + sequence.planned + rows;
  int room = static_cast<int>(sequence.table.size()) * pool_.block_tokens();
  while (room < end) {
    const int block = pool_.allocate(now);
    if (block != BlockPool::none) {
      sequence.table.push_back(block);
      room += pool_.block_tokens();
    } else if (!preempt_newer(sequence, now)) {
      break;  // older ones have everything: compute what there is room for, or stand still
    }
  }
  sequence.planned = std::min(end, room) - sequence.computed;
}

bool Scheduler::preempt_newer(const Sequence& than, TimePoint now) {
  if (running_.back()->id <= than.id) return false;
  std::unique_ptr<Sequence> victim = std::move(running_.back());
  running_.pop_back();
  pool_.release(victim->table, now);
  victim->table.clear();
  victim->computed = victim->planned = 0;
  insert_by_age(waiting_, std::move(victim));
  ++counters_.preemptions;
  return true;
}

void Scheduler::build_batch() {
  Batch& batch = step_.batch;
  batch.tokens.clear();
  batch.spans.clear();
  batch.logits_rows.clear();
  step_.sampled.clear();
  for (const auto& sequence : running_) {
    if (sequence->planned == 0) continue;
    const int end = sequence->computed + sequence->planned;
    batch.spans.push_back({.row_begin = static_cast<int>(batch.tokens.size()),
                           .rows = sequence->planned,
                           .context = sequence->computed,
                           .block_table = sequence->table.data()});
    batch.tokens.insert(batch.tokens.end(), sequence->tokens.begin() + sequence->computed,
                        sequence->tokens.begin() + end);
    if (end == sequence->length() && sequence->request.max_tokens > 0) {
      batch.logits_rows.push_back(static_cast<std::int32_t>(batch.tokens.size()) - 1);
      step_.sampled.push_back(sequence.get());
    }
  }
}

void Scheduler::commit(std::span<const std::int32_t> sampled, TimePoint now) {
  assert(sampled.size() == step_.sampled.size());
  std::size_t next = 0;
  for (auto& sequence : running_) {
    if (sequence->planned == 0) continue;
    const int from = sequence->computed, to = from + sequence->planned;
    if (from < sequence->prompt_tokens) {
      sequence->first_computed = std::min(sequence->first_computed, from);
    }
    pool_.record(sequence->table, sequence->request.salt, sequence->tokens, from, to);
    sequence->computed = to;
    sequence->planned = 0;
    if (to < sequence->length()) continue;
    if (!sequence->started) start(*sequence);
    bool has_ended = true;
    if (sequence->request.max_tokens > 0) {
      has_ended = accept(*sequence, sampled[next++], now);
    } else {
      finish(*sequence, FinishReason::max_tokens, now);
    }
    if (has_ended) sequence.reset();
  }
  std::erase(running_, nullptr);
}

void Scheduler::start(Sequence& sequence) {
  sequence.started = true;
  for (const Protection& protection : sequence.request.protections) {
    const int end = std::clamp(protection.token_end, 0, sequence.prompt_tokens);
    const std::span<const std::int32_t> table = sequence.table;
    pool_.protect(table.first(static_cast<std::size_t>(blocks_for(end))), protection.ttl,
                  protection.expires);
  }
  TokenEvent event;
  event.kind = TokenEvent::Kind::started;
  event.reused_tokens = sequence.reused_tokens();
  counters_.prompt_tokens += sequence.prompt_tokens;
  counters_.reused_tokens += event.reused_tokens;
  events_.push_back({sequence.id, std::move(event)});
}

bool Scheduler::accept(Sequence& sequence, std::int32_t token, TimePoint now) {
  if (token == no_token) {
    const int first = std::min(sequence.first_computed, sequence.computed) / pool_.block_tokens();
    const BlockTable table = sequence.table;
    finish(sequence, FinishReason::failed, now, "the model's output was not a number");
    pool_.forget(table, first);
    return true;
  }
  if (std::ranges::find(sequence.request.stop_tokens, token)
      != sequence.request.stop_tokens.end()) {
    finish(sequence, FinishReason::stop_token, now);
    return true;
  }
  sequence.tokens.push_back(token);
  ++counters_.output_tokens;
  TokenEvent event;
  event.kind = TokenEvent::Kind::token;
  event.token = token;
  events_.push_back({sequence.id, std::move(event)});
  TokenGuide* guide = sequence.request.guide.get();
  if (guide != nullptr) guide->advance(token);
  const bool has_run_out = sequence.generated() >= sequence.request.max_tokens;
  const bool is_full = sequence.length() >= limits_.context;
  if (guide != nullptr && (guide->done() || ((has_run_out || is_full) && guide->is_whole()))) {
    finish(sequence, FinishReason::complete, now);
  } else if (has_run_out) {
    finish(sequence, FinishReason::max_tokens, now);
  } else if (is_full) {
    finish(sequence, FinishReason::context_full, now);
  } else {
    return false;
  }
  return true;
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, TimePoint now,
                       std::string message) {
  pool_.release(sequence.table, now);
  sequence.table.clear();
  if (reason == FinishReason::cancelled) ++counters_.cancelled;
  events_.push_back({sequence.id, finished(reason, std::move(message))});
}

EngineStats Scheduler::stats() const {
  EngineStats stats = counters_;
  stats.running = static_cast<int>(running_.size());
  stats.waiting = static_cast<int>(waiting_.size());
  stats.blocks_total = pool_.total();
  stats.blocks_in_use = pool_.in_use();
  stats.blocks_cached = pool_.cached();
  stats.evictions = pool_.evictions();
  stats.protected_evictions = pool_.protected_evictions();
  return stats;
}

// --- admission -----------------------------------------------------------------------------------

void Scheduler::admit_waiting(TimePoint now) {
  int lacking = 0;
  for (std::size_t i = 0; i < waiting_.size();) {
    Sequence& sequence = *waiting_[i];
    if (static_cast<int>(running_.size()) >= limits_.max_running) return;
    if (is_led(sequence)) {
      ++i;
      continue;
    }
    const std::span<const std::int32_t> tokens = sequence.tokens;
    const BlockIndex::Match match =
        pool_.match(sequence.request.salt, tokens.first(tokens.size() - 1));
    if (find_leader(sequence, match)) {
      ++i;
      continue;
    }
    if (!fits(sequence, match)) {
      if (++lacking >= admission_window || sequence.passed_over >= most_overtakings) return;
      ++i;
      continue;
    }
    admit(sequence, match, now);
    for (std::size_t older = 0; older < i; ++older) {
      if (waiting_[older]->leader_until == 0) ++waiting_[older]->passed_over;
    }
    insert_by_age(running_, std::move(waiting_[i]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Whether what this request waits for is still coming.
bool Scheduler::is_led(const Sequence& sequence) const {
  if (sequence.leader_until == 0) return false;
  return std::ranges::any_of(running_, [&](const auto& other) {
    return other->id == sequence.leader && other->computed < sequence.leader_until;
  });
}

// A running request that is about to compute at least a block more of this prompt than is resident.
// What follows, to the token, is waited for too: once waiting, it is one step at most.
bool Scheduler::find_leader(Sequence& sequence, const BlockIndex::Match& match) const {
  sequence.leader_until = 0;
  const std::size_t depth = match.full.size();
  const int resident = static_cast<int>(depth) * pool_.block_tokens() + match.tail_tokens;
  int best = resident + pool_.block_tokens() - 1;
  for (const auto& other : running_) {
    if (other->remaining() <= 1 || other->request.salt != sequence.request.salt) continue;
    // Equal blocks are one block, so the last one tells whether the prefixes are the same.
    if (depth > 0
        && (other->table.size() < depth || other->table[depth - 1] != match.full.back())) {
      continue;
    }
    const auto begin = static_cast<std::ptrdiff_t>(depth) * pool_.block_tokens();
    if (other->length() <= begin) continue;
    const auto last = sequence.tokens.end() - 1;
    const auto run = std::mismatch(sequence.tokens.begin() + begin, last,
                                   other->tokens.begin() + begin, other->tokens.end());
    const int common = static_cast<int>(run.first - sequence.tokens.begin());
    if (common <= best || common <= other->computed) continue;
    best = common;
    sequence.leader = other->id;
    sequence.leader_until = common;
  }
  return sequence.leader_until > 0;
}

// Whether the whole prompt finds room beside what the running ones still need for theirs, with a
// block to spare for each. Alone it always does.
bool Scheduler::fits(const Sequence& sequence, const BlockIndex::Match& match) const {
  if (running_.empty()) return true;
  int available = pool_.available();
  for (const int block : match.full)
    available -= pool_.references(block) == 0 ? 1 : 0;
  int needed = blocks_for(sequence.length() + 1) - static_cast<int>(match.full.size());
  for (const auto& other : running_) {
    needed += std::max(0, blocks_for(other->length()) - static_cast<int>(other->table.size())) + 1;
  }
  return needed <= available;
}

void Scheduler::admit(Sequence& sequence, const BlockIndex::Match& match, TimePoint now) {
  pool_.hold(match.full);
  sequence.table.assign(match.full.begin(), match.full.end());
  sequence.computed = static_cast<int>(match.full.size()) * pool_.block_tokens();
  sequence.passed_over = 0;
  if (match.tail_tokens == 0) return;
  const int end = sequence.computed + match.tail_tokens;
  if (pool_.can_adopt(match.tail, match.tail_tokens)) {
    pool_.hold(std::span(&match.tail, 1));
    sequence.table.push_back(match.tail);
  } else {
    const int block = pool_.allocate(now);
    if (block == BlockPool::none) return;
    // The source itself may have been the victim; then it has what we want already. If it becomes
    // another's block in this step, the copy comes before that is written.
    if (block != match.tail) step_.copies.push_back({match.tail, block, match.tail_tokens});
    sequence.table.push_back(block);
    pool_.record(sequence.table, sequence.request.salt, sequence.tokens, sequence.computed, end);
  }
  sequence.computed = end;
}

// --- checks --------------------------------------------------------------------------------------

void Scheduler::check_integrity() const {
  pool_.check_integrity();
  const auto require = [](bool condition, const char* what, std::uint64_t id) {
    if (!condition)
      throw std::logic_error("scheduler: " + std::string(what) + ", request " + std::to_string(id));
  };
  std::vector<int> references(static_cast<std::size_t>(pool_.total()));
  for (const auto& sequence : running_) {
    for (const int block : sequence->table)
      ++references[static_cast<std::size_t>(block)];
    const int room = static_cast<int>(sequence->table.size()) * pool_.block_tokens();
    require(room >= sequence->computed + sequence->planned, "no room for its rows", sequence->id);
    require(sequence->remaining() >= 1, "nothing left to compute", sequence->id);
  }
  for (const auto& sequence : waiting_) {
    require(sequence->table.empty() && sequence->computed == 0, "holds blocks while waiting",
            sequence->id);
  }
  for (int block = 0; block < pool_.total(); ++block) {
    require(pool_.references(block) == references[static_cast<std::size_t>(block)],
            "references are miscounted", static_cast<std::uint64_t>(block));
  }
  for (const Sequences* list : {&running_, &waiting_}) {
    require(std::ranges::is_sorted(*list, is_older), "out of order", 0);
  }
}

}  // namespace incipit::gateway
