// Why a request could not read what an earlier one wrote, as far as the two requests tell.
// Source: anthropic-cache-semantics section 19 (C-93 to C-102).
#pragma once

#include "gateway/api/anthropic_request.h"
#include "gateway/cache/ledger.h"
#include "gateway/clock.h"
#include "incipit/fingerprint.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace incipit::gateway {

// Fingerprints of the requests that asked for diagnostics (C-98), by workspace and message id. Each
// is kept for a day; when they take more than `memory` bytes, those that were named least recently
// go first (C-102). Any thread.
class Diagnostics {
 public:
  static constexpr std::chrono::hours kept_for{24};

  explicit Diagnostics(const Clock& clock, std::size_t memory = std::size_t{256} << 20)
      : clock_(clock), memory_(memory) {}

  Diagnostics(const Diagnostics&) = delete;
  Diagnostics& operator=(const Diagnostics&) = delete;

  // JSON of the answer's `diagnostics`, and the request is kept under `message_id`. "null" where
  // the request asked for none, named no predecessor, or differs in nothing. Never fails a request
  // (C-99).
  [[nodiscard]] std::string diagnose(const Scope& scope, const MessagesRequest& request,
                                     const std::string& message_id, std::int64_t prompt_tokens);

 private:
  struct Kept {
    Scope scope;
    std::string message_id;
    Fingerprint fingerprint;
    std::vector<std::string> betas;  // sorted, each once
    std::int64_t prompt_tokens;
    TimePoint until;
    std::size_t bytes;
  };

  using Recent = std::list<Kept>;  // named last: in front
  using Key = std::pair<Scope, std::string>;

  [[nodiscard]] std::string compared(const Scope& scope, const std::string& previous,
                                     const Fingerprint& fingerprint,
                                     const std::vector<std::string>& betas, bool detail);
  void keep(Kept kept);
  void drop(Recent::iterator kept);

  const Clock& clock_;
  const std::size_t memory_;
  std::mutex mutex_;
  Recent recent_;
  std::map<Key, Recent::iterator> by_id_;
  std::size_t used_ = 0;
};

}  // namespace incipit::gateway
