#include "message_read.h"

#include "block_read.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

constexpr std::array<std::pair<std::string_view, StopReason>, 8> stop_reasons{
    {{"end_turn", StopReason::end_turn},
     {"max_tokens", StopReason::max_tokens},
     {"stop_sequence", StopReason::stop_sequence},
     {"tool_use", StopReason::tool_use},
     {"pause_turn", StopReason::pause_turn},
     {"refusal", StopReason::refusal},
     {"model_context_window_exceeded", StopReason::model_context_window_exceeded},
     {"compaction", StopReason::compaction}}};

// Null counters are 0 (C-49); what the split does not cover is of the 5-minute class (C-70).
Usage read_usage(const JsonObject& object) {
  Usage usage;
  usage.input_tokens = object.integer("input_tokens").value_or(0);
  usage.output_tokens = object.integer("output_tokens").value_or(0);
  usage.cache_read_input_tokens = object.integer("cache_read_input_tokens").value_or(0);
  if (const auto split = object.find("cache_creation")) {
    const JsonObject classes(*split);
    usage.cache_creation_5m = classes.integer("ephemeral_5m_input_tokens").value_or(0);
    usage.cache_creation_1h = classes.integer("ephemeral_1h_input_tokens").value_or(0);
  }
  const std::int64_t total = object.integer("cache_creation_input_tokens").value_or(0);
  usage.cache_creation_5m += std::max<std::int64_t>(0, total - usage.cache_creation_input_tokens());
  const UsageDelta rest = read_usage_delta(object);
  usage.thinking_tokens = rest.thinking_tokens.value_or(0);
  usage.web_search_requests = rest.web_search_requests.value_or(0);
  usage.web_fetch_requests = rest.web_fetch_requests.value_or(0);
  usage.service_tier = object.string_or_empty("service_tier");
  usage.inference_geo = object.string_or_empty("inference_geo");
  usage.speed = object.string_or_empty("speed");
  return usage;
}

}  // namespace

UsageDelta read_usage_delta(const JsonObject& usage) {
  UsageDelta delta;
  delta.input_tokens = usage.integer("input_tokens");
  delta.cache_creation_input_tokens = usage.integer("cache_creation_input_tokens");
  delta.cache_read_input_tokens = usage.integer("cache_read_input_tokens");
  delta.output_tokens = usage.integer("output_tokens");
  if (const auto details = usage.find("output_tokens_details")) {
    delta.thinking_tokens = JsonObject(*details).integer("thinking_tokens");
  }
  if (const auto server_tools = usage.find("server_tool_use")) {
    const JsonObject counts(*server_tools);
    delta.web_search_requests = counts.integer("web_search_requests");
    delta.web_fetch_requests = counts.integer("web_fetch_requests");
  }
  return delta;
}

std::optional<Word<StopReason>> read_stop_reason(const JsonObject& object) {
  auto text = object.string("stop_reason");
  if (!text) return std::nullopt;
  const auto known = std::ranges::find(stop_reasons, std::string_view(*text),
                                       &std::pair<std::string_view, StopReason>::first);
  return Word<StopReason>{known == stop_reasons.end() ? StopReason::unknown : known->second,
                          std::move(*text)};
}

Message read_message(const JsonPlace& place) {
  const JsonObject object(place);
  Message message;
  message.id = object.at("id").string();
  message.model = object.at("model").string();
  for (const JsonPlace& block : object.at("content").items())
    message.content.push_back(BlockReader::read(block));
  message.stop_reason = read_stop_reason(object);
  message.stop_sequence = object.string("stop_sequence");
  message.stop_details = object.json("stop_details");
  message.usage = read_usage(JsonObject(object.at("usage")));
  message.container = object.json("container");
  if (const auto diagnostics = object.find("diagnostics")) {
    if (const auto reason = JsonObject(*diagnostics).find("cache_miss_reason")) {
      const JsonObject miss(*reason);
      message.cache_miss_reason =
          CacheMissReason{.type = miss.at("type").string(),
                          .cache_missed_input_tokens = miss.integer("cache_missed_input_tokens")};
    }
  }
  message.json = place.json();
  return message;
}

Message parse_message(std::string_view json) {
  return read_message(JsonPlace::check(json));
}

std::string Message::text() const {
  std::string all;
  for (const ContentBlock& block : content) {
    if (const auto* text = block.get_if<TextBlock>()) all += text->text;
  }
  return all;
}

}  // namespace incipit
