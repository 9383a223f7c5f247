#include "gateway/api/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace incipit::gateway {

namespace {

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void single(std::string& out, std::string_view name, std::string_view type, std::string_view help,
            std::int64_t value) {
  head(out, name, type, help);
  fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
}

}  // namespace

void Metrics::count(const RequestRecord& record) {
  const std::lock_guard lock(mutex_);
  ++requests_by_status_[record.status];
  if (record.generated) {
    tokens_.input_tokens += record.usage.input_tokens;
    tokens_.cache_creation_5m += record.usage.cache_creation_5m;
    tokens_.cache_creation_1h += record.usage.cache_creation_1h;
    tokens_.cache_read_input_tokens += record.usage.cache_read_input_tokens;
    tokens_.output_tokens += record.usage.output_tokens;
    kv_reused_ += record.kv_reused;
  }
  if (record.ttft_ms) {
    const double seconds = *record.ttft_ms / 1000;
    const auto bucket = std::lower_bound(ttft_bounds.begin(), ttft_bounds.end(), seconds);
    ++ttft_counts_[static_cast<std::size_t>(bucket - ttft_bounds.begin())];
    ttft_sum_ += seconds;
  }
}

std::string Metrics::text(const EngineStats& engine, std::size_t live_entries,
                          std::int64_t entries_lost) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  const auto line = [&out](std::string_view name, std::string_view labels, auto value) {
    fmt::format_to(std::back_inserter(out), "{}{{{}}} {}\n", name, labels, value);
  };

  head(out, "incipit_requests_total", "counter", "Requests answered, by HTTP status.");
  for (const auto& [status, count] : requests_by_status_) {
    line("incipit_requests_total", fmt::format("status=\"{}\"", status), count);
  }
  head(out, "incipit_input_tokens_total", "counter", "Prompt tokens as usage reported them.");
  line("incipit_input_tokens_total", "kind=\"plain\"", tokens_.input_tokens);
  line("incipit_input_tokens_total", "kind=\"read\"", tokens_.cache_read_input_tokens);
  line("incipit_input_tokens_total", "kind=\"written_5m\"", tokens_.cache_creation_5m);
  line("incipit_input_tokens_total", "kind=\"written_1h\"", tokens_.cache_creation_1h);
  single(out, "incipit_output_tokens_total", "counter", "Tokens generated.", tokens_.output_tokens);
  single(out, "incipit_kv_reused_tokens_total", "counter", "Prompt tokens whose KV was reused.",
         kv_reused_);
  single(out, "incipit_entries", "gauge", "Live cache entries.",
         static_cast<std::int64_t>(live_entries));
  single(out, "incipit_entries_lost_total", "counter",
         "Live entries whose KV had been evicted when they were read.", entries_lost);

  single(out, "incipit_requests_waiting", "gauge", "Requests in the engine's queue.",
         engine.waiting);
  single(out, "incipit_requests_running", "gauge", "Requests in prefill or decode.",
         engine.running);
  head(out, "incipit_kv_blocks", "gauge", "KV blocks, by state.");
  line("incipit_kv_blocks", "state=\"in_use\"", engine.blocks_in_use);
  line("incipit_kv_blocks", "state=\"cached\"", engine.blocks_cached);
  line("incipit_kv_blocks", "state=\"free\"",
       engine.blocks_total - engine.blocks_in_use - engine.blocks_cached);
  single(out, "incipit_engine_steps_total", "counter", "Forward passes.", engine.steps);
  single(out, "incipit_preemptions_total", "counter", "Sequences put back for want of blocks.",
         engine.preemptions);
  single(out, "incipit_evictions_total", "counter", "Cached blocks given up.", engine.evictions);
  single(out, "incipit_protected_evictions_total", "counter",
         "Of those, blocks under a live entry.", engine.protected_evictions);
  single(out, "incipit_cancelled_total", "counter", "Sequences ended by their client.",
         engine.cancelled);

  head(out, "incipit_ttft_seconds", "histogram", "Arrival to first token.");
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < ttft_bounds.size(); ++i) {
    sum += ttft_counts_[i];
    line("incipit_ttft_seconds_bucket", fmt::format("le=\"{}\"", ttft_bounds[i]), sum);
  }
  sum += ttft_counts_.back();
  line("incipit_ttft_seconds_bucket", "le=\"+Inf\"", sum);
  fmt::format_to(std::back_inserter(out), "incipit_ttft_seconds_sum {}\n", ttft_sum_);
  fmt::format_to(std::back_inserter(out), "incipit_ttft_seconds_count {}\n", sum);
  return out;
}

}  // namespace incipit::gateway
