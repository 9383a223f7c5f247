#include "incipit/prompt.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace incipit {
namespace {

TextBlock text(std::string words) {
  return {.text = std::move(words)};
}

ToolUseBlock call(int id) {
  return {.id = "toolu_" + std::to_string(id), .name = "look", .input = JsonText("{}")};
}

ToolResultBlock result(int id) {
  return {.tool_use_id = "toolu_" + std::to_string(id), .content = {text("found")}};
}

Tool tool(std::string name, bool deferred = false) {
  Tool made;
  made.name = std::move(name);
  made.input_schema = JsonText(R"({"type":"object"})");
  made.defer_loading = deferred;
  return made;
}

void add(MessageRequest& request, MessageRole role, ContentBlock block) {
  if (request.messages.empty() || request.messages.back().role != role) {
    request.messages.push_back({role, {}});
  }
  request.messages.back().content.push_back(std::move(block));
}

void add_texts(MessageRequest& request, MessageRole role, int count) {
  for (int i = 0; i < count; ++i)
    add(request, role, text("words"));
}

MessageRequest valid() {
  MessageRequest request;
  request.model = "claude-sonnet-5";
  request.max_tokens = 100;
  return request;
}

// What the lookup of section 25 needs of a request: written for this test from the specification.
struct Block {
  char kind;  // c: call, r: result, anything else: other
  std::optional<Ttl> marker;
};

std::vector<Block> flatten(const MessageRequest& request) {
  std::vector<Block> blocks;
  const auto put = [&](char kind, const std::optional<CacheControl>& marker) {
    blocks.push_back({kind, marker ? std::optional(marker->ttl) : std::nullopt});
  };
  for (const Tool& each : request.tools) {
    if (!each.defer_loading) put('t', each.cache_control);
  }
  for (const TextBlock& each : request.system)
    put('s', each.cache_control);
  for (const MessageParam& message : request.messages) {
    for (const ContentBlock& each : message.content) {
      const bool calls = each.type() == "tool_use";
      put(calls ? 'c' : each.type() == "tool_result" ? 'r' : 'm', each.cache_control());
    }
  }
  return blocks;
}

// Entries are ends of prefixes: the conversation only grows, so a number of blocks is a key.
class Cache {
 public:
  // Blocks read. Entries never expire.
  std::size_t serve(const std::vector<Block>& blocks) {
    std::size_t match = 0;
    for (std::size_t end = blocks.size(); end > 0 && match == 0; --end) {
      if (blocks[end - 1].marker) match = look_back(blocks, end);
    }
    for (std::size_t end = match + 1; end <= blocks.size(); ++end) {
      if (blocks[end - 1].marker) entries_.insert(end);
    }
    return match;
  }

 private:
  std::size_t look_back(const std::vector<Block>& blocks, std::size_t end) const {
    int tested = 0;
    while (end > 0 && tested < 20) {
      ++tested;
      const char kind = blocks[end - 1].kind;
      do {
        if (entries_.contains(end)) return end;
        --end;
      } while (end > 0 && (kind == 'c' || kind == 'r') && blocks[end - 1].kind == kind);
    }
    return 0;
  }

  std::set<std::size_t> entries_;
};

std::size_t last_marker(const std::vector<Block>& blocks) {
  for (std::size_t end = blocks.size(); end > 0; --end) {
    if (blocks[end - 1].marker) return end;
  }
  return 0;
}

std::vector<std::size_t> marked(const MessageRequest& request) {
  std::vector<std::size_t> found;
  const std::vector<Block> blocks = flatten(request);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].marker) found.push_back(i + 1);
  }
  return found;
}

using Ends = std::vector<std::size_t>;

TEST_CASE("the simulated cache answers the worked examples of section 6") {
  const auto request = [](std::size_t count, std::initializer_list<std::size_t> marks) {
    std::vector<Block> blocks(count, {'m', {}});
    for (const std::size_t end : marks)
      blocks[end - 1].marker = Ttl::five_minutes;
    return blocks;
  };
  Cache cache;
  CHECK(cache.serve(request(10, {10})) == 0);
  CHECK(cache.serve(request(15, {15})) == 10);
  Cache copy = cache;
  CHECK(cache.serve(request(35, {35})) == 0);
  CHECK(copy.serve(request(35, {15, 35})) == 15);
}

TEST_CASE(
    "positions count runs of calls and of results once (C-36), and deferred tools not at all") {
  MessageRequest request = valid();
  request.tools = {tool("a"), tool("b", true), tool("c")};
  request.system = {text("s")};
  add(request, MessageRole::user, text("go"));
  for (int i = 0; i < 12; ++i)
    add(request, MessageRole::assistant, call(i));
  for (int i = 0; i < 12; ++i)
    add(request, MessageRole::user, result(i));
  add(request, MessageRole::user, text("and"));
  std::vector<std::size_t> expected = {1, 2, 3, 4};
  expected.insert(expected.end(), 12, 5);
  expected.insert(expected.end(), 12, 6);
  expected.push_back(7);
  CHECK(lookback_positions(request) == expected);
  request = valid();
  add(request, MessageRole::assistant, call(1));
  add(request, MessageRole::assistant, text("then"));
  add(request, MessageRole::assistant, call(2));
  CHECK(lookback_positions(request) == Ends{1, 2, 3});
  CHECK(lookback_positions(valid()).empty());
}

TEST_CASE("the prefix, the last tool and the end are marked, and old markers are gone") {
  MessageRequest request = valid();
  request.tools = {tool("a"), tool("b"), tool("c", true)};
  request.system = {text("s"), text("t")};
  request.system[0].cache_control = CacheControl{};
  request.cache_control = CacheControl{};
  add_texts(request, MessageRole::user, 2);
  request.messages[0].content[0].mark(CacheControl{Ttl::one_hour});
  ToolResultBlock nested = result(1);
  nested.content = {TextBlock{.text = "x", .cache_control = CacheControl{}}};
  request.messages[0].content.insert(request.messages[0].content.begin(), nested);
  auto_breakpoints(request, Ttl::one_hour);
  CHECK(marked(request) == Ends{2, 4, 7});
  CHECK(request.tools[1].cache_control->ttl == Ttl::one_hour);
  CHECK(request.system[1].cache_control->ttl == Ttl::one_hour);
  CHECK(request.messages[0].content[2].cache_control()->ttl == Ttl::five_minutes);
  CHECK(!request.cache_control);
  const auto* inside = request.messages[0].content[0].get_if<ToolResultBlock>();
  CHECK(!inside->content[0].cache_control());

  auto_breakpoints(request, std::nullopt);
  CHECK(marked(request) == Ends{7});
  auto_breakpoints(request, Ttl::five_minutes, std::nullopt);
  CHECK(marked(request) == Ends{2, 4});
  request.system.clear();
  auto_breakpoints(request);
  CHECK(marked(request) == Ends{2, 5});
  auto_breakpoints(request, std::nullopt, std::nullopt);
  CHECK(marked(request).empty());
}

TEST_CASE("five minutes before an hour is refused with E-2, and nothing is changed") {
  MessageRequest request = valid();
  request.cache_control = CacheControl{};
  try {
    auto_breakpoints(request, Ttl::five_minutes, Ttl::one_hour);
    FAIL("not refused");
  } catch (const PromptError& error) {
    CHECK(error.rule == "E-2");
  }
  CHECK(request.cache_control);
}

TEST_CASE("what cannot carry a marker gets none") {
  MessageRequest request = valid();
  request.tools = {tool("a", true)};
  request.system = {text("s")};
  add_texts(request, MessageRole::user, 1);
  auto_breakpoints(request);
  CHECK(marked(request) == Ends{1, 2});
  add(request, MessageRole::assistant, text("so"));
  add(request, MessageRole::assistant, ThinkingBlock{.thinking = "hm", .signature = "c2ln"});
  add(request, MessageRole::assistant, RedactedThinkingBlock{.data = "eA=="});
  add(request, MessageRole::assistant,
      UnknownBlock{.type = "fallback", .json = JsonText(R"({"type":"fallback"})")});
  auto_breakpoints(request);
  CHECK(marked(request) == Ends{1, 3});
  request.messages[1].content.push_back(UnknownBlock{
      .type = "compaction", .json = JsonText(R"({"type":"compaction","content":"so far"})")});
  auto_breakpoints(request);
  CHECK(marked(request) == Ends{1, 7});
}

TEST_CASE("the given beginning of a reply is not marked") {
  MessageRequest request = valid();
  add_texts(request, MessageRole::user, 3);
  add_texts(request, MessageRole::assistant, 1);
  auto_breakpoints(request);
  CHECK(marked(request) == Ends{3});
}

TEST_CASE("a lagging marker comes with the twenty-first position, not before") {
  for (const int reply : {1, 18, 19, 40}) {
    MessageRequest request = valid();
    add_texts(request, MessageRole::user, 2);
    add_texts(request, MessageRole::assistant, reply);
    add_texts(request, MessageRole::user, 1);
    auto_breakpoints(request);
    // The end of the request before, block 2, is position reply + 2 of the walk: 20 are tested.
    const auto end = static_cast<std::size_t>(reply) + 3;
    CAPTURE(reply);
    if (reply == 40) {
      CHECK(marked(request) == Ends{2, 3, 23, 43});
    } else {
      CHECK(marked(request) == (reply + 2 <= 20 ? Ends{end} : Ends{2, end}));
    }
  }
}

// A conversation that grows by a reply and an answer to it, of up to `most` blocks each.
class Growth {
 public:
  Growth(std::uint32_t seed, int most) : random_(seed), most_(most) {
    request = valid();
    for (int i = number(0, 3); i > 0; --i)
      request.tools.push_back(tool("t" + std::to_string(i), number(0, 3) == 0));
    for (int i = number(0, 3); i > 0; --i)
      request.system.push_back(text("s"));
    user_turn({});
  }

  void grow() { user_turn(reply()); }

  MessageRequest request;

 private:
  int number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  std::vector<int> reply() {
    std::vector<int> calls;
    for (int blocks = number(1, most_); blocks > 0;) {
      const int kind = number(0, 4);
      if (kind == 0) add(request, MessageRole::assistant, ThinkingBlock{.signature = "c2ln"});
      if (kind == 1) add_texts(request, MessageRole::assistant, 1);
      if (kind == 2) {
        add(request, MessageRole::assistant,
            ServerToolResultBlock{.type = "web_search_tool_result", .content = JsonText("[]")});
      }
      --blocks;
      for (int run = kind > 2 ? number(1, 9) : 0; run > 0 && blocks >= 0; --run, --blocks) {
        calls.push_back(next_id_);
        add(request, MessageRole::assistant, call(next_id_++));
      }
    }
    return calls;
  }

  void user_turn(const std::vector<int>& calls) {
    for (const int id : calls)
      add(request, MessageRole::user, result(id));
    if (calls.empty() || number(0, 1) == 0) {
      add_texts(request, MessageRole::user, number(1, most_));
    }
    if (number(0, 9) == 0) add_texts(request, MessageRole::system, 1);
  }

  std::mt19937 random_;
  int most_;
  int next_id_ = 0;
};

TEST_CASE("each request reads up to the last breakpoint of the one before, however turns grow") {
  const std::vector<std::pair<std::optional<Ttl>, Ttl>> ttls = {
      {Ttl::five_minutes, Ttl::five_minutes},
      {Ttl::one_hour, Ttl::five_minutes},
      {Ttl::one_hour, Ttl::one_hour},
      {std::nullopt, Ttl::five_minutes}};
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const auto [prefix, conversation] = ttls[seed % ttls.size()];
    Growth growth(seed, seed % 3 == 0 ? 6 : 60);
    Cache cache;
    std::size_t written = 0;
    for (int turn = 0; turn < 12; ++turn) {
      auto_breakpoints(growth.request, prefix, conversation);
      const std::vector<Block> blocks = flatten(growth.request);
      REQUIRE(marked(growth.request).size() <= 4);
      REQUIRE(cache.serve(blocks) == written);
      written = last_marker(blocks);
      REQUIRE(written == blocks.size());  // a user turn ends in a block that can be marked
      MessageRequest checked = growth.request;
      checked.tools.clear();          // all deferred ones are refused, which is not the matter here
      CHECK_NOTHROW(check(checked));  // order of TTLs, count, E-5 to E-7
      growth.grow();
    }
  }
}

TEST_CASE("a paused server tool loop is read up to 40 positions before the end") {
  for (int paused = 1; paused <= 60; ++paused) {
    MessageRequest request = valid();
    request.system = {text("s")};
    add_texts(request, MessageRole::user, 1);
    Cache cache;
    auto_breakpoints(request);
    CHECK(cache.serve(flatten(request)) == 0);
    const auto search = [&](int count) {
      for (int i = 0; i < count; ++i) {
        add(request, MessageRole::assistant,
            ServerToolResultBlock{.type = "web_search_tool_result", .content = JsonText("[]")});
      }
    };
    search(30);
    auto_breakpoints(request);
    CHECK(cache.serve(flatten(request)) == 2);
    search(paused);
    auto_breakpoints(request);
    CAPTURE(paused);
    CHECK(cache.serve(flatten(request)) == (paused < 40 ? 32 : 2));
  }
}

}  // namespace
}  // namespace incipit
