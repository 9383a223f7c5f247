#include "gateway/engine/scheduler.h"

#include "tests/engine/schedule_bench.h"

#include <doctest/doctest.h>

namespace incipit::gateway {

namespace {

using Tokens = std::vector<std::int32_t>;

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Tokens first(const Tokens& tokens, int n) {
  return {tokens.begin(), tokens.begin() + n};
}

void check_output(const ScheduleBench& bench, std::uint64_t id, const GenerationRequest& request) {
  const Received& got = bench.received.at(id);
  const Output wanted =
      scripted_output(request, bench.model.info().context, bench.model.info().vocab_size);
  CHECK(got.finished == 1);
  CHECK(got.reason == wanted.reason);
  CHECK(got.tokens == wanted.tokens);
}

}  // namespace

TEST_CASE("reuse is exact to the token at every split point of a 200-token prompt") {
  const Tokens prompt = prompt_of(1, 200);
  for (int split = 0; split <= 200; ++split) {
    CAPTURE(split);
    ScheduleBench bench({});
    bench.run(greedy(prompt, 0));
    CHECK(bench.model.rows == 200);
    // A token that the first prompt has not at this place, and some more.
    Tokens other = first(prompt, split);
    if (split < 200) other.push_back((prompt[std::size_t(split)] + 1) % 64);
    other = other + Tokens{3, 3, 3};
    const GenerationRequest request = greedy(other, 5);
    const Received& got = bench.run(request);
    CHECK(got.reused_tokens == split);
    CHECK(bench.model.rows == 200 + int(other.size()) - split + 4);
    check_output(bench, bench.last_id, request);
  }
}

TEST_CASE("a prompt that is resident as a whole recomputes its last token and counts as reused") {
  for (const int length : {1, 2, 5, 15, 16, 17, 31, 32, 33, 100}) {
    CAPTURE(length);
    ScheduleBench bench({});
    const GenerationRequest request = greedy(prompt_of(2, length), 3);
    CHECK(bench.run(request).reused_tokens == (length == 1 ? 1 : 0));
    const std::int64_t rows = bench.model.rows;
    CHECK(bench.run(request).reused_tokens == length);
    CHECK(bench.model.rows - rows == 3);
    check_output(bench, bench.last_id, request);
    CHECK(bench.pool.in_use() == 0);
  }
}

TEST_CASE("the next turn reuses the reply as well") {
  ScheduleBench bench({});
  const Tokens prompt = prompt_of(3, 50);
  const Tokens reply = bench.run(greedy(prompt, 40)).tokens;
  REQUIRE(reply.size() == 40);
  // The last token of the reply was never computed.
  CHECK(bench.run(greedy(prompt + reply + Tokens{1, 2}, 1)).reused_tokens == 89);
}

TEST_CASE("the tail of a running request can be reused") {
  ScheduleBench bench({});
  const Tokens prompt = prompt_of(4, 21);
  const GenerationRequest request = greedy(prompt, 30);
  const std::uint64_t id = bench.submit(request);
  for (int i = 0; i < 5; ++i)
    bench.step();
  const Tokens longer = prompt + bench.received[id].tokens + Tokens{1, 2};
  CHECK(bench.run(greedy(longer, 2)).reused_tokens == 25);
  check_output(bench, id, request);
}

TEST_CASE("equal prompts under different salts share nothing") {
  ScheduleBench bench({});
  GenerationRequest request = greedy(prompt_of(5, 60), 1);
  bench.run(request);
  request.salt[7] = 1;
  CHECK(bench.run(request).reused_tokens == 0);
  CHECK(bench.run(request).reused_tokens == 60);
}

TEST_CASE("four simultaneous requests with one new prefix compute it once") {
  for (const int budget : {20, 64, 512}) {
    CAPTURE(budget);
    ScheduleBench bench({.token_budget = budget});
    const Tokens prefix = prompt_of(6, 150);
    std::vector<GenerationRequest> requests;
    for (std::int32_t i = 0; i < 4; ++i) {
      requests.push_back(greedy(prefix + Tokens{i, i + 1, i + 2}, 1));
      bench.submit(requests.back());
    }
    bench.drain();
    CHECK(bench.model.rows == 150 + 4 * 3);
    for (std::uint64_t id = 1; id <= 4; ++id) {
      check_output(bench, id, requests[id - 1]);
      CHECK(bench.received[id].reused_tokens == (id == 1 ? 0 : 150));
    }
  }
}

TEST_CASE("of four identical requests three reuse the whole prompt") {
  ScheduleBench bench({.token_budget = 32});
  for (int i = 0; i < 4; ++i)
    bench.submit(greedy(prompt_of(7, 128), 1));
  bench.drain();
  CHECK(bench.model.rows == 128 + 3);
  for (std::uint64_t id = 2; id <= 4; ++id)
    CHECK(bench.received[id].reused_tokens == 128);
}

TEST_CASE("requests that share nested prefixes compute each part once") {
  ScheduleBench bench({.token_budget = 32});
  const Tokens x = prompt_of(8, 70), y = prompt_of(9, 70);
  bench.submit(greedy(x + Tokens{1}, 1));
  bench.submit(greedy(x + y + Tokens{2}, 1));
  bench.submit(greedy(x + y + Tokens{3}, 1));
  bench.drain();
  CHECK(bench.model.rows == 70 + 1 + 70 + 1 + 1);
}

TEST_CASE("when the request that computes a shared prefix is cancelled, the waiting ones go on") {
  ScheduleBench bench({.token_budget = 20});
  const GenerationRequest request = greedy(prompt_of(10, 200), 2);
  const std::uint64_t leader = bench.submit(request);
  bench.submit(request);
  bench.submit(request);
  for (int i = 0; i < 4; ++i)
    bench.step();
  CHECK(bench.scheduler.stats().running == 1);
  CHECK(bench.scheduler.stats().waiting == 2);
  const std::int64_t rows = bench.model.rows;
  CHECK(rows == 80);
  bench.end(leader);
  bench.drain();
  CHECK(bench.model.rows == 200 + 1 + 2);  // nothing twice, but one last prompt token and decodes
  CHECK(bench.received[2].reused_tokens == 80);
  CHECK(bench.received[3].reused_tokens == 200);
  check_output(bench, 2, request);
  check_output(bench, 3, request);
}

TEST_CASE("a step stays within its budget and gives every decode a row") {
  ScheduleBench bench({.token_budget = 24, .max_running = 8});
  for (std::uint64_t i = 0; i < 4; ++i)
    bench.submit(greedy(prompt_of(20 + i, 5), 50));
  CHECK(bench.step() == 20);
  bench.submit(greedy(prompt_of(30, 100), 1));
  for (int i = 1; i <= 5; ++i) {
    CHECK(bench.step() == 24);
    for (std::uint64_t id = 1; id <= 4; ++id) {
      CHECK(bench.received[id].tokens.size() == std::size_t(1 + i));
    }
  }
  CHECK(bench.received[5].finished == 1);
}

TEST_CASE("a short prompt does not wait out a long one, and the long one keeps half") {
  ScheduleBench bench({.token_budget = 32});
  bench.submit(greedy(prompt_of(11, 200), 1));
  bench.step();
  bench.submit(greedy(prompt_of(12, 16), 1));
  bench.submit(greedy(prompt_of(13, 100), 1));
  bench.step();
  CHECK(bench.received[2].started == 1);
  CHECK(bench.received[1].finished == 0);
  for (int i = 0; i < 10; ++i)
    bench.step();
  CHECK(bench.received[1].finished == 1);
}

TEST_CASE("short prompts without end cannot starve a long one") {
  ScheduleBench bench({.blocks = 200, .token_budget = 32, .max_running = 31});
  bench.submit(greedy(prompt_of(11, 200), 1));
  int steps = 0;
  for (std::uint64_t i = 0; bench.received[1].finished == 0 && steps < 50; ++steps) {
    for (int n = 0; n < 2; ++n)
      bench.submit(greedy(prompt_of(100 + i++, 16), 0));
    bench.step();
  }
  CHECK(steps == 12);  // half of 32 rows in each, and in the last, as the nearest to its end, 24
}

TEST_CASE("max_tokens 0 ends after the prefill and leaves the prompt cached") {
  ScheduleBench bench({});
  const Received got = bench.run(greedy(prompt_of(14, 40), 0));
  CHECK(got.started == 1);
  CHECK(got.tokens.empty());
  CHECK(got.reason == FinishReason::max_tokens);
  CHECK(bench.run(greedy(prompt_of(14, 40), 0)).reused_tokens == 40);
}

TEST_CASE("a sequence ends with context_full when prompt and output fill the context") {
  ScheduleBench bench({.context = 32, .blocks = 2});
  const GenerationRequest request = greedy(prompt_of(15, 20), 100);
  const Received got = bench.run(request);
  CHECK(got.tokens.size() == 12);
  CHECK(got.reason == FinishReason::context_full);
  check_output(bench, 1, request);
  CHECK(bench.run(greedy(prompt_of(15, 31), 1)).reason == FinishReason::max_tokens);
}

TEST_CASE("a stop token ends the reply and is not delivered") {
  ScheduleBench bench({});
  GenerationRequest request = greedy(prompt_of(16, 20), 30);
  const Tokens all = bench.run(request).tokens;
  request.stop_tokens = {999, all[7]};
  const Received got = bench.run(request);
  CHECK(got.reason == FinishReason::stop_token);
  CHECK(got.tokens == first(all, int(std::ranges::find(all, all[7]) - all.begin())));
}

TEST_CASE("a request that can never run fails at once and says why") {
  ScheduleBench bench({.context = 32, .blocks = 4});
  const auto message = [&](Tokens tokens) {
    const Received& got = bench.received[bench.submit(greedy(std::move(tokens), 1))];
    CHECK(got.started == 0);
    CHECK(got.finished == 1);
    CHECK(got.reason == FinishReason::failed);
    return got.message;
  };
  CHECK(message({}) == "the prompt has no tokens");
  CHECK(message(prompt_of(1, 32))
        == "the prompt has 32 tokens; the model's context holds 32, and one is needed for the "
           "reply");
  CHECK(message({1, 64}) == "prompt token 1 has id 64; the model's vocabulary has 64 ids");
  CHECK(message({-1}) == "prompt token 0 has id -1; the model's vocabulary has 64 ids");
  CHECK_FALSE(bench.scheduler.has_work());
}

TEST_CASE("logits that are not numbers fail their request alone and leave no KV behind") {
  ScheduleBench bench({.vocab_size = 64});
  bench.model.poison_token = 63;
  const Tokens prefix = prompt_of(17, 40, 60);
  const GenerationRequest good = greedy(prefix + Tokens{61}, 10);
  const std::uint64_t good_id = bench.submit(good);
  bench.step();
  const std::uint64_t bad_id = bench.submit(greedy(prefix + Tokens(30, 62) + Tokens{63}, 10));
  bench.step();
  CHECK(bench.received[bad_id].reason == FinishReason::failed);
  CHECK(bench.received[bad_id].finished == 1);
  CHECK(bench.received[bad_id].message == "the model's output was not a number");
  bench.drain();
  check_output(bench, good_id, good);
  CHECK(bench.run(greedy(prefix + Tokens(30, 62), 0)).reused_tokens == 40);
}

TEST_CASE("a cancelled request gives its blocks back in prefill, in decode and while waiting") {
  ScheduleBench bench({.token_budget = 32, .max_running = 1});
  const std::uint64_t prefilling = bench.submit(greedy(prompt_of(18, 200), 10));
  const std::uint64_t waiting = bench.submit(greedy(prompt_of(19, 20), 10));
  bench.step();
  CHECK(bench.pool.in_use() > 0);
  bench.end(prefilling);
  bench.end(waiting);
  CHECK(bench.pool.in_use() == 0);
  CHECK(bench.received[prefilling].started == 0);
  CHECK(bench.received[waiting].finished == 1);
  const std::uint64_t decoding = bench.submit(greedy(prompt_of(19, 20), 10));
  for (int i = 0; i < 3; ++i)
    bench.step();
  bench.end(decoding);
  bench.end(decoding);
  CHECK(bench.received[decoding].tokens.size() == 3);
  CHECK(bench.received[decoding].finished == 1);
  CHECK(bench.pool.in_use() == 0);
  CHECK_FALSE(bench.scheduler.has_work());
  // What was computed before the cancel is not lost.
  CHECK(bench.run(greedy(prompt_of(18, 200), 0)).reused_tokens == 32);
}

TEST_CASE("preempted requests resume without losing or repeating a token") {
  ScheduleBench bench({.context = 128, .blocks = 9, .token_budget = 64, .max_running = 6});
  std::vector<GenerationRequest> requests;
  for (std::uint64_t i = 0; i < 6; ++i) {
    requests.push_back(greedy(prompt_of(40 + i, 14), 60));
    requests.back().sampling = {.temperature = 1.0F, .seed = i};
    bench.submit(requests.back());
  }
  bench.drain();
  CHECK(bench.scheduler.stats().preemptions > 0);
  for (std::uint64_t id = 1; id <= 6; ++id) {
    check_output(bench, id, requests[id - 1]);
    CHECK(bench.received[id].started == 1);
    CHECK(bench.received[id].reused_tokens == 0);  // its own KV, found again, is no reuse
  }
}

TEST_CASE("the oldest request is never preempted") {
  ScheduleBench bench({.context = 128, .blocks = 8, .token_budget = 64, .max_running = 4});
  bench.submit(greedy(prompt_of(50, 20), 100));
  for (std::uint64_t i = 0; i < 3; ++i)
    bench.submit(greedy(prompt_of(51 + i, 20), 100));
  for (int i = 1; i <= 100; ++i) {
    bench.step();
    CHECK(bench.received[1].tokens.size() == std::size_t(i));
  }
  bench.drain();
}

TEST_CASE("a large request is overtaken by small ones only so often") {
  ScheduleBench bench({.context = 256, .blocks = 16, .token_budget = 64, .max_running = 4});
  bench.submit(greedy(prompt_of(60, 100), 100));
  bench.step();
  const std::uint64_t large = bench.submit(greedy(prompt_of(61, 240), 1));
  for (std::uint64_t i = 0; i < 60; ++i) {
    bench.submit(greedy(prompt_of(100 + i, 3), 1));
    bench.step();
  }
  CHECK(bench.received[large].started == 0);
  int overtakers = 0;
  for (const auto& [id, got] : bench.received)
    overtakers += id > large ? got.started : 0;
  CHECK(overtakers == 32);
  bench.end(1);
  bench.step();
  bench.drain();
  CHECK(bench.received[large].finished == 1);
  CHECK(bench.received.size() == 62);
}

TEST_CASE("a protected prefix survives pressure until its entry expires, an unprotected one not") {
  for (const double later : {299.0, 301.0}) {
    CAPTURE(later);
    ScheduleBench bench({.context = 128, .blocks = 12});
    const Tokens kept = prompt_of(70, 70), lost = prompt_of(71, 20);
    GenerationRequest request = greedy(kept + prompt_of(72, 26), 1);
    request.protections = {{70, Ttl::five_minutes, at_second(300)}};
    bench.run(request);
    bench.run(greedy(lost, 1));
    bench.now = later;
    for (std::uint64_t i = 0; i < 20; ++i)
      bench.run(greedy(prompt_of(80 + i, 60), 1));
    const bool is_live = later < 300;
    // The block that holds token 70 is protected as a whole, up to token 80.
    const BlockIndex::Match match = bench.pool.match({}, request.tokens);
    CHECK(match.full.size() == (is_live ? 5 : 0));
    CHECK(bench.run(greedy(kept, 0)).reused_tokens == (is_live ? 70 : 0));
    CHECK(bench.scheduler.stats().protected_evictions == 0);
    CHECK(bench.scheduler.stats().evictions > 0);
    CHECK(bench.run(greedy(lost, 0)).reused_tokens == 0);
  }
}

TEST_CASE("a request that is cancelled before its prefill ends protects nothing") {
  ScheduleBench bench({.context = 128, .blocks = 8, .token_budget = 32});
  GenerationRequest request = greedy(prompt_of(90, 100), 1);
  request.protections = {{100, Ttl::one_hour, at_second(3600)}};
  const std::uint64_t id = bench.submit(request);
  bench.step();
  bench.end(id);
  for (std::uint64_t i = 0; i < 4; ++i)
    bench.run(greedy(prompt_of(91 + i, 120), 1));
  CHECK(bench.pool.match({}, request.tokens).full.empty());
  CHECK(bench.scheduler.stats().protected_evictions == 0);
}

TEST_CASE("ending all leaves nothing and ends each request once") {
  ScheduleBench bench({.token_budget = 32, .max_running = 2});
  for (std::uint64_t i = 0; i < 5; ++i)
    bench.submit(greedy(prompt_of(95 + i, 50), 10));
  for (int i = 0; i < 4; ++i)
    bench.step();
  bench.scheduler.end_all(FinishReason::shutdown, at_second(0));
  bench.step();
  CHECK_FALSE(bench.scheduler.has_work());
  CHECK(bench.pool.in_use() == 0);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    CHECK(bench.received[id].finished == 1);
    CHECK(bench.received[id].reason == FinishReason::shutdown);
  }
}

}  // namespace incipit::gateway
