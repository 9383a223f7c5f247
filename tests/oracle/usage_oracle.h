// A slow second opinion on POST /v1/messages: JSON text in, usage or error out.
//
// A direct transcription of the cache semantics (sections 1-12, reference algorithm of 25) and of
// the wire rules that decide whether a body is served at all. Shares nothing with the gateway: its
// own JSON parser, whole lists of blocks instead of hashed keys, and its own count of the tiny
// model's tokens (a token per byte and one for each marker that opens or closes a turn).
#pragma once

#include "model_facts.h"

#include <boost/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace incipit::oracle {

struct Workspace {
  std::string organization, name;
  friend bool operator==(const Workspace&, const Workspace&) = default;
};

// One rule that a body breaks. Where the specification gives no exact text, how it begins.
struct Complaint {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string text;
  bool is_whole = true;
};

struct Counters {
  std::int64_t input = 0, write_5m = 0, write_1h = 0, read = 0;
  friend bool operator==(const Counters&, const Counters&) = default;
};

// What must be answered. With complaints any of them will do: the order of checks is nowhere
// written down.
struct Verdict {
  std::vector<Complaint> complaints;
  Counters usage;
  std::size_t pending = 0;  // for `respond`
};

class UsageOracle {
 public:
  // Whether thinking and effort come before everything instead of before the messages (C-53).
  explicit UsageOracle(bool settings_first) : settings_first_(settings_first) {}

  // A request arrives. Milliseconds of the test's clock.
  Verdict ask(std::string_view body, const Workspace& workspace, std::int64_t now);
  // Its response begins: what it writes can be read from here on (C-56). May never come (C-44).
  void respond(std::size_t pending);
  // All prompt tokens of a body that is served (C-114).
  std::int64_t count(std::string_view body);

 private:
  // Content as a number: equal content, equal number. `content_` keeps the content itself.
  using Prefix = std::vector<int>;

  enum class Kind { other, call, result };

  struct Position {
    int content = 0;
    Kind kind = Kind::other;
    int ttl = 0;  // minutes; 0 = unmarked
    std::int64_t tokens = 0;
  };

  struct Entry {
    Workspace workspace;
    std::string model;
    Prefix prefix;
    std::int64_t lifetime = 0;
    std::int64_t expires = 0;
  };

  struct Prompt {
    const ModelFacts* model = nullptr;
    std::vector<Position> positions;
    Prefix whole;  // what identifies the first k positions is its first `lengths[k-1]` members
    std::vector<std::size_t> lengths;
  };

  struct Pending {
    std::vector<Entry> writes;
  };

  Prompt flatten(const boost::json::object& body, const ModelFacts& model, bool only_counts);
  Entry* live(const Workspace& workspace, const Prompt& prompt, int k, std::int64_t now);
  int content(std::string text);

  std::unordered_map<std::string, int> content_;
  std::vector<Entry> entries_;
  std::map<std::size_t, Pending> pending_;
  std::size_t asked_ = 0;
  bool settings_first_;
};

// The rules that a body breaks; none for a body that is served. `oracle_rules.cpp`.
std::vector<Complaint> complaints_of(const boost::json::object& body);

}  // namespace incipit::oracle
