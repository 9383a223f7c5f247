// One request between admission and its end, as the scheduler sees it.
#pragma once

#include "gateway/engine/block_pool.h"
#include "gateway/engine/generation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace incipit::gateway {

struct Sequence {
  std::uint64_t id = 0;              // by arrival: smaller is older
  GenerationRequest request;         // its tokens have moved into `tokens`
  std::vector<std::int32_t> tokens;  // the prompt, then what was generated
  int prompt_tokens = 0;
  bool started = false;  // its prefill has ended at least once

  BlockTable table;  // blocks referenced; empty while waiting
  int computed = 0;  // tokens whose KV is in them
  int planned = 0;   // rows in the step under way
  // The first prompt token that this request computed itself: what was reused before it counts,
  // what a preempted request finds again of its own does not.
  int first_computed = std::numeric_limits<int>::max();

  // While waiting for another request to compute what both need: that request, and how far.
  std::uint64_t leader = 0;
  int leader_until = 0;
  int passed_over = 0;  // younger requests admitted while this one lacked blocks

  [[nodiscard]] int length() const { return static_cast<int>(tokens.size()); }

  [[nodiscard]] int generated() const { return length() - prompt_tokens; }

  // Rows to compute before the next token can be sampled. A preempted request recomputes what it
  // no longer finds, generated tokens included.
  [[nodiscard]] int remaining() const { return length() - computed; }

  // The last prompt token is always computed, for its logits, and so does not count against reuse.
  [[nodiscard]] int reused_tokens() const {
    return first_computed >= prompt_tokens - 1 ? prompt_tokens
                                               : std::min(first_computed, prompt_tokens);
  }
};

}  // namespace incipit::gateway
