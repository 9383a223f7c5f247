#include "gateway/api/batches.h"

#include "gateway/api/anthropic_fields.h"
#include "gateway/api/anthropic_reply.h"
#include "gateway/api/error.h"
#include "incipit/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace incipit::gateway {

namespace {

constexpr std::size_t overhead = 512;  // of a batch, and of a request at most

std::size_t size_of(const std::vector<BatchItem>& items) {
  std::size_t bytes = overhead;
  for (const BatchItem& item : items)
    bytes += sizeof item + item.custom_id.size() + item.params.size();
  return bytes;
}

}  // namespace

BatchView Batches::create(const Scope& scope, std::vector<BatchItem> items,
                          RequestContext context) {
  const TimePoint now = clock_.now();
  Batch batch;
  batch.view.id = make_id("msgbatch_01");
  batch.view.created_at = calendar_.date(now);
  batch.view.expires_at = calendar_.date(now + runs_for);
  batch.view.counts.processing = static_cast<std::int64_t>(items.size());
  batch.scope = scope;
  batch.created = now;
  batch.context = std::make_shared<const RequestContext>(std::move(context));
  batch.bytes = size_of(items);
  for (BatchItem& item : items) {
    batch.requests.push_back(
        {.custom_id = std::move(item.custom_id), .json = std::move(item.params)});
  }
  BatchView view = batch.view;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [number, other] : batches_)
      settle(other);
    if (batch.bytes > memory_ - std::min(used_, memory_)) {
      throw invalid_request(
          fmt::format("requests: {} bytes do not fit beside the {} of {} that batches and their "
                      "results take; delete ended batches, or start the gateway with a larger "
                      "--batches-memory",
                      batch.bytes, used_, memory_));
    }
    used_ += batch.bytes;
    numbers_.emplace(view.id, ++last_number_);
    turns_.push_back(view.id);
    batches_.emplace(last_number_, std::move(batch));
  }
  tell();
  return view;
}

BatchView Batches::get(const Scope& scope, std::string_view id) {
  std::unique_lock lock(mutex_);
  BatchView view = existing(scope, id).view;
  const bool stop_due = std::exchange(stop_due_, false);
  lock.unlock();
  if (stop_due) tell();
  return view;
}

std::vector<BatchView> Batches::list(const Scope& scope) {
  std::unique_lock lock(mutex_);
  std::vector<BatchView> views;
  for (auto& [number, batch] : batches_) {
    if (batch.scope != scope) continue;
    settle(batch);
    views.push_back(batch.view);
  }
  const bool stop_due = std::exchange(stop_due_, false);
  lock.unlock();
  if (stop_due) tell();
  return views;
}

BatchView Batches::cancel(const Scope& scope, std::string_view id) {
  BatchView view;
  {
    const std::scoped_lock lock(mutex_);
    Batch& batch = existing(scope, id);
    if (batch.view.status == BatchStatus::ended) {
      throw invalid_request(fmt::format("Message batch {} has ended at {} and cannot be canceled",
                                        batch.view.id, batch.view.ended_at));
    }
    if (batch.view.status == BatchStatus::in_progress) {
      batch.view.status = BatchStatus::canceling;
      batch.view.cancel_initiated_at = calendar_.date(clock_.now());
      give_up(batch, Request::State::canceled);
    }
    view = batch.view;  // the next look settles it, so that nobody misses this state
  }
  tell();
  return view;
}

void Batches::remove(const Scope& scope, std::string_view id) {
  const std::scoped_lock lock(mutex_);
  const Batch& batch = existing(scope, id);
  if (batch.view.status != BatchStatus::ended) {
    throw invalid_request(fmt::format(
        "Message batch {} has not ended yet; cancel it and wait until it has, then delete it",
        batch.view.id));
  }
  used_ -= batch.bytes;
  const auto number = numbers_.find(id);
  batches_.erase(number->second);
  numbers_.erase(number);
}

BatchResults Batches::results(const Scope& scope, std::string_view id) {
  const std::scoped_lock lock(mutex_);
  const Batch& batch = existing(scope, id);
  if (batch.view.status != BatchStatus::ended) {
    throw ApiError(404, "not_found_error",
                   fmt::format("Message batch {} has not ended yet, so it has no results; wait for "
                               "the processing_status ended",
                               batch.view.id));
  }
  if (!batch.results) {
    throw ApiError(404, "not_found_error",
                   fmt::format("The results of message batch {} were kept until {}", batch.view.id,
                               batch.view.archived_at));
  }
  return batch.results;
}

void Batches::on_change(std::function<void()> changed) {
  const std::scoped_lock lock(changed_mutex_);
  changed_ = std::move(changed);
}

void Batches::tell() {
  const std::scoped_lock lock(changed_mutex_);
  if (changed_) changed_();
}

std::optional<BatchJob> Batches::begin() {
  const std::scoped_lock lock(mutex_);
  while (!turns_.empty()) {
    const std::string id = std::move(turns_.front());
    turns_.pop_front();
    Batch* batch = find(id);
    if (batch == nullptr) continue;
    settle(*batch);
    if (batch->next >= batch->requests.size()) continue;
    const std::size_t index = batch->next++;
    Request& request = batch->requests[index];
    request.state = Request::State::running;
    ++batch->running;
    if (batch->next < batch->requests.size()) turns_.push_back(id);
    return BatchJob{id, index, batch->scope, request.custom_id, request.json, batch->context};
  }
  return std::nullopt;
}

bool Batches::is_wanted(const BatchJob& job) {
  const std::scoped_lock lock(mutex_);
  Batch* batch = find(job.batch_id);
  if (batch == nullptr) return false;
  settle(*batch);
  return batch->view.status == BatchStatus::in_progress && !batch->is_expired;
}

void Batches::succeed(const BatchJob& job, std::string_view message) {
  finish(job, Request::State::succeeded, message);
}

void Batches::fail(const BatchJob& job, std::string_view error) {
  finish(job, Request::State::errored, error);
}

void Batches::abandon(const BatchJob& job) {
  const std::scoped_lock lock(mutex_);
  Batch* batch = find(job.batch_id);
  if (batch == nullptr) return;
  Request& request = batch->requests[job.index];
  request.state = batch->is_expired ? Request::State::expired : Request::State::canceled;
  --batch->running;
  settle(*batch);
}

void Batches::finish(const BatchJob& job, Request::State state, std::string_view json) {
  const std::scoped_lock lock(mutex_);
  Batch* batch = find(job.batch_id);
  if (batch == nullptr) return;
  Request& request = batch->requests[job.index];
  const std::size_t freed = request.json.size();
  std::string error;
  if (json.size() > memory_ - std::min(used_ - freed, memory_)) {
    state = Request::State::errored;
    error = error_body({500, "api_error",
                        "the result found no room beside those of other batches; delete ended "
                        "batches, or start the gateway with a larger --batches-memory"},
                       {});
    json = error;
  }
  batch->bytes += json.size() - freed;
  used_ += json.size() - freed;
  request.state = state;
  request.json = json;
  --batch->running;
  settle(*batch);
}

Batches::Batch* Batches::find(std::string_view id) {
  const auto number = numbers_.find(id);
  return number == numbers_.end() ? nullptr : &batches_.at(number->second);
}

Batches::Batch& Batches::existing(const Scope& scope, std::string_view id) {
  Batch* batch = find(id);
  if (batch == nullptr || batch->scope != scope) {
    throw ApiError(404, "not_found_error", "Message batch not found: " + shown(id));
  }
  settle(*batch);
  return *batch;
}

// Does what is due: expiry, the end, the archive. Not told to whoever runs the requests: they stop
// at the next look of a client, or come to their own end.
void Batches::settle(Batch& batch) {
  const TimePoint now = clock_.now();
  if (batch.view.status != BatchStatus::ended) {
    if (now >= batch.created + runs_for && !batch.is_expired) {
      batch.is_expired = true;
      give_up(batch, Request::State::expired);
      stop_due_ = stop_due_ || batch.running > 0;
    }
    if (batch.next == batch.requests.size() && batch.running == 0) end(batch);
  }
  if (batch.results && now >= batch.created + results_kept_for) {
    batch.view.archived_at = calendar_.date(batch.created + results_kept_for);
    batch.results.reset();
    used_ -= batch.bytes - overhead;
    batch.bytes = overhead;
  }
}

// Of all requests that nobody runs yet.
void Batches::give_up(Batch& batch, Request::State state) {
  for (; batch.next < batch.requests.size(); ++batch.next) {
    Request& request = batch.requests[batch.next];
    request.state = state;
    batch.bytes -= request.json.size();
    used_ -= request.json.size();
    request.json = {};
  }
}

void Batches::end(Batch& batch) {
  auto lines = std::make_shared<std::vector<std::string>>();
  lines->reserve(batch.requests.size());
  BatchCounts counts;
  std::size_t bytes = overhead;
  for (Request& request : batch.requests) {
    std::string line;
    JsonWriter json(line);
    json.begin_object().key("custom_id").string(request.custom_id).key("result").begin_object();
    json.key("type");
    switch (request.state) {
      case Request::State::succeeded:
        json.string("succeeded").key("message").raw(request.json);
        ++counts.succeeded;
        break;
      case Request::State::errored:
        json.string("errored").key("error").raw(request.json);
        ++counts.errored;
        break;
      case Request::State::expired:
        json.string("expired");
        ++counts.expired;
        break;
      case Request::State::canceled:
      case Request::State::waiting:
      case Request::State::running:
        json.string("canceled");
        ++counts.canceled;
        break;
    }
    json.end_object().end_object();
    line += '\n';
    request = {};
    bytes += line.size() + sizeof line;
    lines->push_back(std::move(line));
  }
  batch.requests = {};
  batch.next = 0;
  used_ += bytes - batch.bytes;
  batch.bytes = bytes;
  batch.results = std::move(lines);
  batch.context.reset();
  batch.view.counts = counts;
  batch.view.status = BatchStatus::ended;
  batch.view.ended_at = calendar_.date(clock_.now());
}

}  // namespace incipit::gateway
