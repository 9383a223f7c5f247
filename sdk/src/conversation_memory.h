// What a client remembers of its conversations to explain cache misses. Private to the SDK.
#pragma once

#include "incipit/fingerprint.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace incipit {

// Safe for several threads at once. Keeps the newest `capacity` conversations.
class ConversationMemory {
 public:
  explicit ConversationMemory(std::size_t capacity = 64) : capacity_(capacity) {}

  // Takes note of a request and of what its reply reported, and says why the reply read less than
  // the conversation's last request had left in the cache (read + written); null when it read that
  // much, or there was no such request, or it had left nothing. Where the prompts do not differ the
  // explanation names what else can be the cause: TTL over, no marker, more than 20 positions,
  // eviction.
  std::shared_ptr<const CacheMiss> note(const std::string& conversation,
                                        const MessageRequest& request, const Usage& usage,
                                        std::chrono::steady_clock::time_point started);

 private:
  // A request and what its reply left in the cache.
  struct Seen {
    Fingerprint fingerprint;
    std::chrono::steady_clock::time_point started;
    std::int64_t prompt_tokens = 0;
    std::int64_t left = 0;  // tokens read or written
    std::optional<std::size_t> end =
        {};                       // the last marked block, as `lookback_positions` counts them
    Ttl ttl = Ttl::five_minutes;  // of that marker
  };

  using Newest = std::list<std::pair<std::string, Seen>>;

  // Puts `seen` in the place of the conversation's last request, and returns that.
  std::optional<Seen> exchange(const std::string& conversation, Seen seen);

  std::size_t capacity_;
  std::mutex mutex_;
  Newest newest_;
  std::unordered_map<std::string, Newest::iterator> places_;
};

}  // namespace incipit
