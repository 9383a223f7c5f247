// Message batches: what was asked for, how far it is, what came out. In memory; who runs the
// requests is `batch_runner.h`'s matter. Source: anthropic-wire section 15.
#pragma once

#include "gateway/api/anthropic_request.h"
#include "gateway/api/calendar.h"
#include "gateway/cache/ledger.h"
#include "gateway/clock.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

struct BatchItem {
  std::string custom_id;
  std::string params;  // JSON: the body of a Messages request
};

enum class BatchStatus : std::uint8_t { in_progress, canceling, ended };

struct BatchCounts {
  std::int64_t processing = 0, succeeded = 0, errored = 0, canceled = 0, expired = 0;
};

// A batch as its caller sees it. Dates are RFC 3339, empty as long as they do not apply.
struct BatchView {
  std::string id;
  BatchStatus status = BatchStatus::in_progress;
  BatchCounts counts;
  std::string created_at, expires_at, ended_at, cancel_initiated_at, archived_at;
};

// A request of a batch on its way.
struct BatchJob {
  std::string batch_id;
  std::size_t index = 0;
  Scope scope;
  std::string custom_id;
  std::string params;
  std::shared_ptr<const RequestContext> context;  // of the call that made the batch
};

// Lines of JSON, one for each request of an ended batch, in the order of the requests.
using BatchResults = std::shared_ptr<const std::vector<std::string>>;

// The batches of all workspaces; no workspace sees another's. Any thread.
class Batches {
 public:
  static constexpr std::chrono::hours runs_for{24};               // then what is left expires
  static constexpr std::chrono::hours results_kept_for{29 * 24};  // from the creation on

  // `memory`: the most that requests and results may take, in bytes.
  Batches(const Clock& clock, std::size_t memory)
      : clock_(clock), calendar_(clock), memory_(memory) {}

  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // `items` are in order already: not empty, ids valid and different. Throws ApiError 400 when they
  // do not fit into the memory.
  BatchView create(const Scope& scope, std::vector<BatchItem> items, RequestContext context);
  [[nodiscard]] BatchView get(const Scope& scope, std::string_view id);         // or ApiError 404
  [[nodiscard]] std::vector<BatchView> list(const Scope& scope);                // newest first
  BatchView cancel(const Scope& scope, std::string_view id);                    // or 404, 400
  void remove(const Scope& scope, std::string_view id);                         // or 404, 400
  [[nodiscard]] BatchResults results(const Scope& scope, std::string_view id);  // or 404

  // For the one that runs them. `changed` is called, from any thread and under no lock but its own,
  // when there may be something to begin or to stop; empty: nobody is there any more.
  void on_change(std::function<void()> changed);
  // A request that nobody runs yet, each batch in turn.
  [[nodiscard]] std::optional<BatchJob> begin();
  // Not cancelled, expired or deleted meanwhile.
  [[nodiscard]] bool is_wanted(const BatchJob& job);
  // Its result: JSON of a message, or of an error's envelope.
  void succeed(const BatchJob& job, std::string_view message);
  void fail(const BatchJob& job, std::string_view error);
  // It was given up because it was not wanted any more.
  void abandon(const BatchJob& job);

 private:
  struct Request {
    enum class State : std::uint8_t { waiting, running, succeeded, errored, canceled, expired };
    State state = State::waiting;
    std::string custom_id;
    std::string json;  // params, then the message or error
  };

  struct Batch {
    BatchView view;
    Scope scope;
    TimePoint created;
    std::shared_ptr<const RequestContext> context;
    std::vector<Request> requests;  // gone once it has ended
    std::size_t next = 0;           // all requests before it are not waiting
    std::size_t running = 0;
    bool is_expired = false;
    std::size_t bytes = 0;
    BatchResults results;  // once it has ended, until it is archived
  };

  using Order = std::map<std::uint64_t, Batch, std::greater<>>;  // newest first

  Batch* find(std::string_view id);
  Batch& existing(const Scope& scope, std::string_view id);
  void settle(Batch& batch);
  void give_up(Batch& batch, Request::State state);
  void end(Batch& batch);
  void finish(const BatchJob& job, Request::State state, std::string_view json);
  void tell();

  const Clock& clock_;
  const Calendar calendar_;
  const std::size_t memory_;
  std::mutex mutex_;
  Order batches_;
  std::map<std::string, std::uint64_t, std::less<>> numbers_;  // by id
  std::deque<std::string> turns_;  // batches with waiting requests, whose turn is next in front
  std::size_t used_ = 0;
  std::uint64_t last_number_ = 0;
  bool stop_due_ = false;  // a batch with running requests has expired, and nobody was told

  std::mutex changed_mutex_;
  std::function<void()> changed_;
};

}  // namespace incipit::gateway
