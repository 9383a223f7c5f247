#include "gateway/api/diagnostics.h"

#include "incipit/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>

namespace incipit::gateway {

namespace {

// What the extension adds to the hosted API's answer.
struct Detail {
  std::string path;
  std::size_t byte_offset = 0;
  std::string before = {};
  std::string after = {};
  std::string explanation = {};
};

std::string diagnostics_json(std::string_view type, std::optional<std::int64_t> missed,
                             const Detail* detail) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("cache_miss_reason").begin_object().key("type").string(type);
  if (missed) json.key("cache_missed_input_tokens").integer(*missed);
  json.end_object();
  if (detail != nullptr) {
    json.key("incipit").begin_object();
    json.key("path").string(detail->path);
    json.key("byte_offset").integer(static_cast<std::int64_t>(detail->byte_offset));
    json.key("before").string(detail->before);
    json.key("after").string(detail->after);
    json.key("explanation").string(detail->explanation);
    json.end_object();
  }
  json.end_object();
  return body;
}

std::vector<std::string> as_set(std::vector<std::string> betas) {
  std::ranges::sort(betas);
  const auto repeated = std::ranges::unique(betas);
  betas.erase(repeated.begin(), repeated.end());
  return betas;
}

}  // namespace

std::string Diagnostics::diagnose(const Scope& scope, const MessagesRequest& request,
                                  const std::string& message_id, std::int64_t prompt_tokens) {
  const std::optional<DiagnosticsParam>& asked = request.values.diagnostics;
  if (!asked) return "null";
  try {
    Fingerprint fingerprint = Fingerprint::of(request.values);
    std::vector<std::string> betas = as_set(request.betas);
    std::string answer = "null";
    if (asked->previous_message_id) {
      answer = compared(scope, *asked->previous_message_id, fingerprint, betas,
                        request.detailed_diagnostics);
    }
    const std::size_t bytes = fingerprint.memory() + sizeof(Kept) + 2 * message_id.size();
    keep({scope, message_id, std::move(fingerprint), std::move(betas), prompt_tokens,
          clock_.now() + kept_for, bytes});
    return answer;
  } catch (const std::exception&) {  // no memory, say: the request itself is in order
    return asked->previous_message_id ? diagnostics_json("unavailable", {}, nullptr) : "null";
  }
}

std::string Diagnostics::compared(const Scope& scope, const std::string& previous,
                                  const Fingerprint& fingerprint,
                                  const std::vector<std::string>& betas, bool detail) {
  std::optional<Kept> before;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = by_id_.find({scope, previous});
    if (found != by_id_.end() && found->second->until > clock_.now()) {
      before = *found->second;
      recent_.splice(recent_.begin(), recent_, found->second);
    }
  }
  if (!before) {
    const Detail unknown{.path = "diagnostics.previous_message_id",
                         .after = previous,
                         .explanation =
                             "no request of this workspace that asked for diagnostics "
                             "got this message id within the last 24 hours"};
    return diagnostics_json("previous_message_not_found", {}, detail ? &unknown : nullptr);
  }
  const CacheMiss miss = compare(before->fingerprint, fingerprint, before->prompt_tokens);
  if (miss.reason == MissReason::none) {
    if (betas == before->betas) return "null";
    const Detail other{.path = "anthropic-beta",
                       .before = fmt::format("{}", fmt::join(before->betas, ",")),
                       .after = fmt::format("{}", fmt::join(betas, ",")),
                       .explanation = "the set of active betas is not that of the request before"};
    return diagnostics_json("unavailable", {}, detail ? &other : nullptr);
  }
  const Detail place{.path = miss.path,
                     .byte_offset = miss.byte_offset,
                     .before = miss.before,
                     .after = miss.after,
                     .explanation = miss.explanation};
  const auto missed =
      miss.reason == MissReason::unavailable ? std::nullopt : std::optional(miss.tokens_lost);
  return diagnostics_json(to_string(miss.reason), missed, detail ? &place : nullptr);
}

void Diagnostics::keep(Kept kept) {
  const std::scoped_lock lock(mutex_);
  if (kept.bytes > memory_) return;
  const TimePoint now = clock_.now();
  while (!recent_.empty() && used_ + kept.bytes > memory_)
    drop(std::prev(recent_.end()));
  while (!recent_.empty() && recent_.back().until <= now)
    drop(std::prev(recent_.end()));
  used_ += kept.bytes;
  recent_.push_front(std::move(kept));
  by_id_[{recent_.front().scope, recent_.front().message_id}] = recent_.begin();
}

void Diagnostics::drop(Recent::iterator kept) {
  used_ -= kept->bytes;
  by_id_.erase({kept->scope, kept->message_id});
  recent_.erase(kept);
}

}  // namespace incipit::gateway
