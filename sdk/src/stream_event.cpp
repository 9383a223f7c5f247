#include "block_read.h"
#include "incipit/anthropic.h"
#include "json_place.h"
#include "message_read.h"

#include <string>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

using Delta = decltype(ContentBlockDeltaEvent::delta);

Delta read_delta(const JsonPlace& place) {
  const JsonObject object(place);
  std::string type = object.at("type").string();
  if (type == "text_delta") return TextDelta{object.at("text").string()};
  if (type == "input_json_delta") return InputJsonDelta{object.at("partial_json").string()};
  if (type == "citations_delta") return CitationsDelta{read_citation(object.at("citation"))};
  if (type == "thinking_delta") return ThinkingDelta{object.at("thinking").string()};
  if (type == "signature_delta") return SignatureDelta{object.at("signature").string()};
  return UnknownDelta{std::move(type), place.json()};
}

std::size_t read_index(const JsonObject& object) {
  const JsonPlace index = object.at("index");
  if (index.integer() < 0) index.fail("should not be negative");
  return static_cast<std::size_t>(index.integer());
}

MessageDeltaEvent read_message_delta(const JsonObject& object) {
  const JsonObject delta(object.at("delta"));
  MessageDeltaEvent event;
  event.stop_reason = read_stop_reason(delta);
  event.stop_sequence = delta.string("stop_sequence");
  event.stop_details = delta.json("stop_details");
  event.container = delta.json("container");
  if (const auto usage = object.find("usage")) event.usage = read_usage_delta(JsonObject(*usage));
  return event;
}

template <class Inner>
const Inner* delta_of(const StreamEvent& event) {
  const auto* delta = event.get_if<ContentBlockDeltaEvent>();
  return delta == nullptr ? nullptr : std::get_if<Inner>(&delta->delta);
}

}  // namespace

std::optional<StreamEvent> parse_stream_event(std::string_view json) {
  const JsonObject object(JsonPlace::check(json));
  std::string type = object.at("type").string();
  if (type == "content_block_delta") {
    return StreamEvent{ContentBlockDeltaEvent{.index = read_index(object),
                                              .delta = read_delta(object.at("delta"))}};
  }
  if (type == "ping") return std::nullopt;
  if (type == "error") throw parse_api_error(0, json);
  if (type == "message_start") {
    return StreamEvent{MessageStartEvent{read_message(object.at("message"))}};
  }
  if (type == "content_block_start") {
    return StreamEvent{
        ContentBlockStartEvent{.index = read_index(object),
                               .content_block = BlockReader::read(object.at("content_block"))}};
  }
  if (type == "content_block_stop") return StreamEvent{ContentBlockStopEvent{read_index(object)}};
  if (type == "message_delta") return StreamEvent{read_message_delta(object)};
  if (type == "message_stop") return StreamEvent{MessageStopEvent{}};
  return StreamEvent{UnknownEvent{std::move(type), object.place().json()}};
}

const std::string* StreamEvent::text() const {
  const auto* delta = delta_of<TextDelta>(*this);
  return delta == nullptr ? nullptr : &delta->text;
}

const std::string* StreamEvent::thinking() const {
  const auto* delta = delta_of<ThinkingDelta>(*this);
  return delta == nullptr ? nullptr : &delta->thinking;
}

const std::string* StreamEvent::input_json() const {
  const auto* delta = delta_of<InputJsonDelta>(*this);
  return delta == nullptr ? nullptr : &delta->partial_json;
}

}  // namespace incipit
