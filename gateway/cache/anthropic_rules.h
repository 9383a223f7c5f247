// The hosted prompt cache as pure functions: from the boundaries of a prompt and the question "is
// there a live entry here?" to what is read, written and refreshed, and to the usage numbers.
// No state, no clock, no lock. Source: anthropic-cache-semantics sections 4-8, 10 and 25.
#pragma once

#include "gateway/cache/ledger.h"

#include <functional>
#include <span>
#include <vector>

namespace incipit::gateway::anthropic {

// Indices into the boundaries of one prompt; each list ascends.
struct Decision {
  int matched = -1;            // the boundary whose entry is read, -1 = miss
  std::vector<int> refreshed;  // live entries whose lifetime starts anew, `matched` among them
  std::vector<int> written;    // where entries will be put
};

// Whether a live entry exists at a boundary, of either class: a live 5-minute entry serves a 1-hour
// breakpoint too (C-21).
using IsLive = std::function<bool(int boundary)>;

// Lookback and writes (C-31..C-42).
[[nodiscard]] Decision decide(std::span<const Boundary> boundaries, int minimum_tokens,
                              const IsLive& is_live);

// The boundaries that a breakpoint tests, in the order of testing: at most 20 positions, the
// breakpoint's own being the first (C-32). A run of tool_use or of tool_result is one position, in
// which every block end is tested, the latest first (C-36; the order inside a run is our choice).
[[nodiscard]] std::vector<int> lookback(std::span<const Boundary> boundaries, int breakpoint);

// Breakpoints that write when the prompt was read up to boundary `matched` (-1: not at all): those
// after it whose prefix reaches the minimum (C-39, C-42).
[[nodiscard]] std::vector<int> breakpoints_after(std::span<const Boundary> boundaries,
                                                 int minimum_tokens, int matched);

// The same when the read ended within the prompt, after `read_tokens`: a promise was not kept.
[[nodiscard]] std::vector<int> breakpoints_past(std::span<const Boundary> boundaries,
                                                int minimum_tokens, int read_tokens);

// C-48. `written` is one of the two lists above. Input + creation + read is the whole prompt.
[[nodiscard]] Usage usage_of(std::span<const Boundary> boundaries, std::span<const int> written,
                             int read_tokens);

// How long an entry lives. Lifetimes count from the start of the request that writes or reads.
struct Lifetime {
  Ttl ttl = Ttl::five_minutes;
  TimePoint expires;
};

// Of an entry that a request writes (C-17, C-41).
[[nodiscard]] Lifetime written_at(TimePoint start, Ttl ttl);

// Of an entry that a request reads: it starts anew (C-18). The entry keeps its own class whatever
// the class of the reading breakpoint (C-20, not settled by the sources).
[[nodiscard]] Lifetime after_read(const Lifetime& entry, TimePoint start);

// Of an entry that is written while another request's entry of the same prefix is live, as parallel
// cold requests do (C-57). The longer class wins, so that nobody's hour is cut to five minutes. Not
// settled by the sources.
[[nodiscard]] Lifetime after_double_write(const Lifetime& existing, const Lifetime& written);

// An entry ends exactly when its lifetime does (C-19; the hosted cache may keep it a little
// longer).
[[nodiscard]] bool is_live_at(TimePoint expires, TimePoint now);

// A prefix of exactly the minimum is cacheable (C-55, not settled by the sources).
[[nodiscard]] bool reaches_minimum(int tokens, int minimum_tokens);

}  // namespace incipit::gateway::anthropic
