// The store of message batches (section 15), without anybody who runs them: states, counts, dates,
// turns, bounds, on a clock that the test moves.
#include "gateway/api/batches.h"

#include "gateway/api/error.h"
#include "incipit/json.h"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

using namespace incipit::gateway;
using incipit::JsonValue;
using std::chrono::hours;

namespace {

const Scope home{"org", "home"};
const Scope elsewhere{"org", "elsewhere"};

struct Store {
  Clock clock = Clock::frozen();
  Batches batches;

  explicit Store(std::size_t memory = 1 << 20) : batches(clock, memory) {}

  std::string create(int requests, const Scope& scope = home, const std::string& prefix = "r") {
    std::vector<BatchItem> items;
    for (int i = 0; i < requests; ++i)
      items.push_back({prefix + std::to_string(i), "{\"n\":" + std::to_string(i) + "}"});
    return batches.create(scope, std::move(items), {}).id;
  }

  BatchView view(const std::string& id) { return batches.get(home, id); }

  std::vector<std::string> outcomes(const std::string& id) {
    std::vector<std::string> found;
    const BatchResults results = batches.results(home, id);
    for (const std::string& line : *results) {
      CHECK(line.back() == '\n');
      const JsonValue result = JsonValue::parse(line);
      found.push_back(result.find("custom_id")->as_string() + " "
                      + result.find("result")->find("type")->as_string());
    }
    return found;
  }
};

ApiError error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {200, "", ""};
}

using Outcomes = std::vector<std::string>;

}  // namespace

TEST_CASE("counts stay with processing until the whole batch has ended") {
  Store store;
  const std::string id = store.create(3);
  CHECK(id.starts_with("msgbatch_"));
  CHECK(store.view(id).status == BatchStatus::in_progress);
  CHECK(store.view(id).ended_at.empty());
  const BatchJob first = store.batches.begin().value();
  CHECK(first.params == "{\"n\":0}");
  CHECK(first.scope == home);
  store.batches.succeed(first, "{\"id\":\"msg_1\"}");
  CHECK(store.view(id).counts.processing == 3);
  CHECK(store.view(id).counts.succeeded == 0);
  store.batches.fail(store.batches.begin().value(), "{\"type\":\"error\"}");
  const BatchJob last = store.batches.begin().value();
  CHECK(!store.batches.begin());
  CHECK(error_of([&] { static_cast<void>(store.batches.results(home, id)); }).status == 404);
  store.batches.succeed(last, "{}");
  const BatchView ended = store.view(id);
  CHECK(ended.status == BatchStatus::ended);
  CHECK(ended.counts.processing == 0);
  CHECK(ended.counts.succeeded == 2);
  CHECK(ended.counts.errored == 1);
  CHECK(!ended.ended_at.empty());
  CHECK(store.outcomes(id) == Outcomes{"r0 succeeded", "r1 errored", "r2 succeeded"});
  const JsonValue line = JsonValue::parse(store.batches.results(home, id)->at(0));
  CHECK(line.find("result")->find("message")->find("id")->as_string() == "msg_1");
}

TEST_CASE("cancelling keeps what is done, gives up what waits, and ends when nothing runs") {
  Store store;
  const std::string id = store.create(4);
  store.batches.succeed(store.batches.begin().value(), "{}");
  const BatchJob stopped = store.batches.begin().value();
  const BatchJob finished = store.batches.begin().value();
  const BatchView answer = store.batches.cancel(home, id);
  CHECK(answer.status == BatchStatus::canceling);
  CHECK(answer.counts.processing == 4);
  CHECK(!answer.cancel_initiated_at.empty());
  CHECK(!store.batches.begin());
  CHECK(!store.batches.is_wanted(stopped));
  CHECK(store.view(id).status == BatchStatus::canceling);
  CHECK(store.batches.cancel(home, id).status == BatchStatus::canceling);  // again: no harm
  store.batches.abandon(stopped);
  store.batches.succeed(finished, "{}");
  CHECK(store.view(id).status == BatchStatus::ended);
  CHECK(store.view(id).counts.succeeded == 2);
  CHECK(store.view(id).counts.canceled == 2);
  CHECK(store.outcomes(id)
        == Outcomes{"r0 succeeded", "r1 canceled", "r2 succeeded", "r3 canceled"});
  CHECK(error_of([&] { store.batches.cancel(home, id); }).status == 400);
}

TEST_CASE("a batch that nobody has begun is canceling first and ended at the next look") {
  Store store;
  const std::string id = store.create(2);
  CHECK(store.batches.cancel(home, id).status == BatchStatus::canceling);
  CHECK(store.view(id).status == BatchStatus::ended);
  CHECK(store.view(id).counts.canceled == 2);
}

TEST_CASE("what is not done after 24 hours expires") {
  Store store;
  const std::string id = store.create(3);
  store.batches.succeed(store.batches.begin().value(), "{}");
  const BatchJob running = store.batches.begin().value();
  store.clock.advance(hours(24) - std::chrono::seconds(1));
  CHECK(store.batches.is_wanted(running));
  store.clock.advance(std::chrono::seconds(1));
  CHECK(!store.batches.is_wanted(running));
  CHECK(!store.batches.begin());
  CHECK(store.view(id).status == BatchStatus::in_progress);
  store.batches.abandon(running);
  CHECK(store.view(id).counts.expired == 2);
  CHECK(store.view(id).counts.succeeded == 1);
  CHECK(store.view(id).ended_at >= store.view(id).expires_at);
  CHECK(store.outcomes(id) == Outcomes{"r0 succeeded", "r1 expired", "r2 expired"});
}

TEST_CASE("results are kept for 29 days after the creation") {
  Store store;
  const std::string id = store.create(1);
  store.batches.succeed(store.batches.begin().value(), "{}");
  store.clock.advance(hours(29 * 24) - std::chrono::seconds(1));
  CHECK(store.outcomes(id).size() == 1);
  CHECK(store.view(id).archived_at.empty());
  store.clock.advance(std::chrono::seconds(1));
  CHECK(store.view(id).status == BatchStatus::ended);
  CHECK(!store.view(id).archived_at.empty());
  const ApiError gone = error_of([&] { static_cast<void>(store.batches.results(home, id)); });
  CHECK(gone.status == 404);
  CHECK(std::string(gone.what()).find("were kept until") != std::string::npos);
}

TEST_CASE("batches take turns, and workspaces do not see each other's") {
  Store store;
  const std::string first = store.create(2, home, "a");
  const std::string second = store.create(2, elsewhere, "b");
  Outcomes order;
  while (const auto job = store.batches.begin())
    order.push_back(job->custom_id);
  CHECK(order == Outcomes{"a0", "b0", "a1", "b1"});
  CHECK(store.batches.list(home).size() == 1);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { static_cast<void>(store.batches.get(home, second)); },
           [&] { store.batches.cancel(home, second); }, [&] { store.batches.remove(home, second); },
           [&] { static_cast<void>(store.batches.results(home, second)); }}) {
    const ApiError error = error_of(call);
    CHECK(error.status == 404);
    CHECK(std::string(error.what()) == "Message batch not found: " + second);
  }
}

TEST_CASE("only an ended batch can be deleted") {
  Store store;
  const std::string id = store.create(1);
  const BatchJob job = store.batches.begin().value();
  CHECK(error_of([&] { store.batches.remove(home, id); }).status == 400);
  store.batches.succeed(job, "{}");
  store.batches.remove(home, id);
  CHECK(error_of([&] { static_cast<void>(store.batches.get(home, id)); }).status == 404);
}

TEST_CASE("newest first") {
  Store store;
  const std::string first = store.create(1);
  const std::string second = store.create(1);
  const std::vector<BatchView> views = store.batches.list(home);
  CHECK(views.at(0).id == second);
  CHECK(views.at(1).id == first);
}

TEST_CASE("requests and results have a bound together, and room comes back") {
  Store store(20'000);
  const auto create = [&](std::size_t bytes) {
    return store.batches.create(home, {{"r", '"' + std::string(bytes, 'x') + '"'}}, {}).id;
  };
  const std::string id = create(15'000);
  const ApiError full = error_of([&] { create(15'000); });
  CHECK(full.status == 400);
  CHECK(std::string(full.what()).find("--batches-memory") != std::string::npos);
  // A result that finds no room is an error that says so, not a result that is missing.
  store.batches.succeed(store.batches.begin().value(), '"' + std::string(30'000, 'y') + '"');
  CHECK(store.outcomes(id) == Outcomes{"r errored"});
  CHECK(store.batches.results(home, id)->at(0).find("--batches-memory") != std::string::npos);
  for (int i = 0; i < 50; ++i) {  // nothing leaks, whichever way a batch goes
    const std::string next = create(15'000);
    if (i % 2 == 0) {
      store.batches.cancel(home, next);
    } else {
      store.batches.succeed(store.batches.begin().value(), "{}");
    }
    store.batches.remove(home, next);
  }
  const std::string last = create(15'000);
  store.batches.succeed(store.batches.begin().value(), '"' + std::string(15'000, 'y') + '"');
  store.clock.advance(Batches::results_kept_for);
  CHECK_NOTHROW(create(15'000));
}
