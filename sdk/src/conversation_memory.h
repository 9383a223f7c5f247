// What a client remembers of its conversations to explain cache misses. Private to the SDK.
#pragma once

#include "incipit/fingerprint.h"

#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace incipit {

// Safe for several threads at once. Keeps the newest `capacity` conversations.
class ConversationMemory {
 public:
  explicit ConversationMemory(std::size_t capacity = 64) : capacity_(capacity) {}

  // Takes note of a request and of what its reply reported, and says why the reply read less than the
  // conversation's last request had left in the cache (read + written); null when it read that much, or
  // there was no such request, or it had left nothing. Where the prompts do not differ the explanation
  // names what else can be the cause: TTL over, no marker, more than 20 positions, eviction.
  std::shared_ptr<const CacheMiss> note(const std::string& conversation,
                                        const MessageRequest& request, const Usage& usage,
                                        std::chrono::steady_clock::time_point started);

 private:
  std::size_t capacity_;
  std::mutex mutex_;
};

}  // namespace incipit
