#include "sdk/src/conversation_memory.h"

#include "incipit/prompt.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace incipit {
namespace {

using std::chrono::seconds;

// A point in time that no clock is asked for.
std::chrono::steady_clock::time_point at(int second) {
  return std::chrono::steady_clock::time_point(seconds(second));
}

Usage usage(std::int64_t read, std::int64_t written, std::int64_t input = 10) {
  Usage counters;
  counters.input_tokens = input;
  counters.cache_read_input_tokens = read;
  counters.cache_creation_5m = written;
  return counters;
}

Prompt chat() {
  Prompt prompt("claude-sonnet-5");
  prompt.system("Rules.").user("First?").auto_breakpoints();
  return prompt;
}

Prompt answered(Prompt prompt, int blocks = 1) {
  for (int i = 0; i < blocks; ++i)
    prompt.assistant("So.");
  prompt.user("Next?");
  return prompt;
}

std::string explanation(const std::shared_ptr<const CacheMiss>& miss) {
  return miss ? miss->explanation : "";
}

bool says(const std::shared_ptr<const CacheMiss>& miss, const std::string& words) {
  CAPTURE(explanation(miss));
  const bool found = explanation(miss).find(words) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("nothing is said while each request reads what the last one left") {
  ConversationMemory memory;
  Prompt prompt = chat();
  CHECK(!memory.note("a", prompt.request(), usage(0, 1000), at(0)));
  prompt = answered(prompt).auto_breakpoints();
  CHECK(!memory.note("a", prompt.request(), usage(1000, 100), at(10)));
  prompt = answered(prompt).auto_breakpoints();
  CHECK(!memory.note("a", prompt.request(), usage(1100, 50), at(20)));
  // A conversation of its own, and one that left nothing.
  CHECK(!memory.note("b", prompt.request(), usage(0, 0), at(30)));
  CHECK(!memory.note("b", prompt.request(), usage(0, 1150), at(40)));
}

TEST_CASE("a prompt that changed is explained by the comparison") {
  ConversationMemory memory;
  (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
  Prompt changed("claude-sonnet-5");
  changed.system("Rulez.").user("First?").auto_breakpoints();
  const auto miss = memory.note("a", changed.request(), usage(0, 1000), at(5));
  REQUIRE(miss);
  CHECK(miss->reason == MissReason::system_changed);
  CHECK(miss->path == "system.0.text");
  CHECK(miss->tokens_lost > 500);
  CHECK(miss->tokens_lost < 1010);
  // The changed one is what the next is compared with.
  CHECK(!memory.note("a", changed.request(), usage(1000, 0), at(6)));
}

TEST_CASE("an entry whose time is over is named with its TTL and the time that went by") {
  ConversationMemory memory;
  (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
  auto miss = memory.note("a", chat().request(), usage(0, 1000), at(301));
  REQUIRE(miss);
  CHECK(miss->reason == MissReason::none);
  CHECK(miss->tokens_lost == 1000);
  CHECK(miss->path.empty());
  says(miss, "5 minutes");
  says(miss, "5 min 1 s ago");
  const Prompt hour = chat().auto_breakpoints(Ttl::one_hour, Ttl::one_hour);
  (void)memory.note("b", hour.request(), usage(0, 1000), at(0));
  says(memory.note("b", hour.request(), usage(0, 1000), at(3599)), "evicted");
  says(memory.note("b", hour.request(), usage(0, 1000), at(3599 + 3600)), "1 hour");
  // An hour for the prefix alone: the conversation's five minutes are what ran out.
  const Prompt both = chat().auto_breakpoints(Ttl::one_hour);
  (void)memory.note("c", both.request(), usage(0, 1000), at(0));
  miss = memory.note("c", both.request(), usage(800, 200), at(400));
  says(miss, "5 minutes");
  CHECK(miss->tokens_lost == 200);
}

TEST_CASE("a request without a marker is told so") {
  ConversationMemory memory;
  (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
  says(memory.note("a", answered(chat()).clear_breakpoints().request(), usage(0, 0, 1100), at(5)),
       "no breakpoint");
}

TEST_CASE("more than 20 positions are named (C-32)") {
  // Positions: system 1, first user text 2, reply of n, next user text n + 3.
  for (const int blocks : {18, 19}) {
    CAPTURE(blocks);
    ConversationMemory memory;
    (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
    Prompt far = answered(chat(), blocks).clear_breakpoints().automatic_caching();
    const auto miss = memory.note("a", far.request(), usage(0, 1200), at(5));
    if (blocks == 18) {
      says(miss, "evicted");
    } else {
      says(miss, "position 2,");
      says(miss, "position 22,");
      says(miss, "20 positions");
    }
  }
  ConversationMemory memory;
  (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
  Prompt early("claude-sonnet-5");
  early.system("Rules.").breakpoint().user("First?");
  says(memory.note("a", early.request(), usage(0, 900), at(5)), "at position 1");
  (void)memory.note("b", answered(chat()).auto_breakpoints().request(), usage(0, 1000), at(0));
  says(memory.note("b", chat().request(), usage(900, 0), at(5)), "ends before");
}

TEST_CASE("what else can be the cause is named when nothing is wrong here") {
  ConversationMemory memory;
  (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
  says(memory.note("a", chat().request(), usage(0, 1000), at(100)), "another workspace");
}

TEST_CASE("sums over several calls of a server tool, and parts of a thread, say nothing") {
  ConversationMemory memory;
  Usage searching = usage(5000, 1000);
  searching.web_search_requests = 2;
  (void)memory.note("a", chat().request(), searching, at(0));
  CHECK(!memory.note("a", chat().request(), usage(1000, 0), at(5)));
  MessageRequest part = chat().request();
  part.extra = JsonText(R"({"thread":{"type":"continue","previous_message_id":"msg_1"}})");
  part.messages = {{MessageRole::user, {TextBlock{.text = "Other?"}}}};
  CHECK(!memory.note("a", part, usage(0, 0), at(6)));
}

TEST_CASE("the newest conversations are kept") {
  ConversationMemory memory(2);
  (void)memory.note("a", chat().request(), usage(0, 1000), at(0));
  (void)memory.note("b", chat().request(), usage(0, 1000), at(1));
  (void)memory.note("a", chat().request(), usage(1000, 0), at(2));
  (void)memory.note("c", chat().request(), usage(0, 1000), at(3));    // b goes
  CHECK(!memory.note("b", chat().request(), usage(0, 1000), at(4)));  // and now a
  CHECK(memory.note("c", chat().request(), usage(0, 1000), at(5)));
  CHECK(!memory.note("a", chat().request(), usage(0, 1000), at(6)));
}

TEST_CASE("several threads note at once") {
  ConversationMemory memory(4);
  std::vector<std::thread> threads;
  std::vector<int> misses(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, &misses, t] {
      const MessageRequest request = chat().request();
      for (int i = 0; i < 50; ++i) {
        const std::string own = "conversation " + std::to_string(t);
        if (memory.note(own, request, usage(1000, 0), at(i))) {
          ++misses[static_cast<std::size_t>(t)];
        }
        if (i % 10 == 0) (void)memory.note("conversation 0", request, usage(1000, 0), at(i));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(misses == std::vector<int>(4, 0));
}

}  // namespace
}  // namespace incipit
