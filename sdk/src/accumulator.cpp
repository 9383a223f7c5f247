#include "incipit/stream.h"
#include "json_slices.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace incipit {
namespace {

ParseError out_of_order(const std::string& what) {
  return {"the stream's events are out of order: " + what, 0, 1, 1, 0};
}

// Name, as in a string literal, and JSON.
using Members = std::vector<std::pair<std::string_view, std::string>>;

std::string json_string(std::string_view text) {
  std::string out;
  JsonWriter(out).string(text);
  return out;
}

// `object` with `members` in the place of those of that name, or behind the others.
JsonText with_members(const JsonText& object, Members members) {
  std::string out = "{";
  const auto append = [&](std::string_view name, std::string_view json) {
    if (out.size() > 1) out += ',';
    out.append("\"").append(name).append("\":").append(json);
  };
  for (const JsonMemberSlice& member : json_members(object.text())) {
    const std::string_view name = member.key.substr(1, member.key.size() - 2);
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& each) { return each.first == name; });
    append(name, found == members.end() ? member.value : found->second);
    if (found != members.end()) members.erase(found);
  }
  for (const auto& [name, json] : members)
    append(name, json);
  return JsonText::trusted(out + "}");
}

// The members that deltas have filled in; none when they cannot be given as received.
Members streamed_members(const TextBlock& block) {
  Members members{{"text", json_string(block.text)}};
  if (block.citations.empty()) return members;
  std::string citations;
  JsonWriter writer(citations);
  writer.begin_array();
  for (const Citation& citation : block.citations) {
    if (citation.json.empty()) return {};
    writer.raw(citation.json.text());
  }
  writer.end_array();
  members.emplace_back("citations", std::move(citations));
  return members;
}

Members streamed_members(const ThinkingBlock& block) {
  return {{"thinking", json_string(block.thinking)}, {"signature", json_string(block.signature)}};
}

template <class Kind>
concept HasInput = requires(Kind& block) {
  block.input;
};

void merge(Usage& usage, const UsageDelta& delta) {
  const auto set = [](std::int64_t& counter, const std::optional<std::int64_t>& value) {
    if (value) counter = *value;
  };
  set(usage.input_tokens, delta.input_tokens);
  set(usage.cache_read_input_tokens, delta.cache_read_input_tokens);
  set(usage.output_tokens, delta.output_tokens);
  set(usage.thinking_tokens, delta.thinking_tokens);
  set(usage.web_search_requests, delta.web_search_requests);
  set(usage.web_fetch_requests, delta.web_fetch_requests);
  if (delta.cache_creation_input_tokens) {
    // Only the total is repeated (W-21): what the hour's writes do not account for is 5-minute.
    const std::int64_t total = *delta.cache_creation_input_tokens;
    usage.cache_creation_1h = std::min(usage.cache_creation_1h, total);
    usage.cache_creation_5m = total - usage.cache_creation_1h;
  }
}

}  // namespace

void MessageAccumulator::add(const StreamEvent& event) {
  if (event.get_if<UnknownEvent>() != nullptr) return;
  if (const auto* first = event.get_if<MessageStartEvent>()) {
    if (started_) throw out_of_order("a second message_start");
    message_ = first->message;
    parts_.assign(message_.content.size(), {});
    started_ = true;
    return;
  }
  if (!started_) throw out_of_order("message_start has not come yet");
  if (complete_) throw out_of_order("message_stop has come already");
  if (const auto* block = event.get_if<ContentBlockStartEvent>()) start(*block);
  if (const auto* delta = event.get_if<ContentBlockDeltaEvent>()) extend(*delta);
  if (const auto* stop = event.get_if<ContentBlockStopEvent>()) finish(stop->index);
  if (const auto* delta = event.get_if<MessageDeltaEvent>()) update(*delta);
  if (event.get_if<MessageStopEvent>() != nullptr) {
    for (std::size_t index = 0; index < parts_.size(); ++index)
      if (parts_[index].open) finish(index);
    complete_ = true;
  }
}

void MessageAccumulator::start(const ContentBlockStartEvent& event) {
  if (event.index != parts_.size())
    throw out_of_order("block " + std::to_string(event.index) + " starts where block "
                       + std::to_string(parts_.size()) + " is due");
  message_.content.push_back(event.content_block);
  parts_.push_back({event.content_block.received(), {}, true, false});
}

void MessageAccumulator::extend(const ContentBlockDeltaEvent& event) {
  if (event.index >= parts_.size() || !parts_[event.index].open)
    throw out_of_order("a delta for block " + std::to_string(event.index) + ", which is not open");
  Part& part = parts_[event.index];
  ContentBlock& block = message_.content[event.index];
  auto* text = std::get_if<TextBlock>(&block.value_);
  auto* thinking = std::get_if<ThinkingBlock>(&block.value_);
  auto* unknown = std::get_if<UnknownBlock>(&block.value_);

  if (const auto* delta = std::get_if<InputJsonDelta>(&event.delta)) {
    part.input += delta->partial_json;
    return;
  }
  if (const auto* delta = std::get_if<UnknownDelta>(&event.delta)) {
    if (unknown == nullptr || delta->type != "compaction_delta") return;  // W-28
    Members members;
    for (const JsonMemberSlice& member : json_members(delta->json.text())) {
      if (member.is_named("type")) continue;
      members.emplace_back(member.key.substr(1, member.key.size() - 2), member.value);
    }
    unknown->json = block.received_ = with_members(unknown->json, std::move(members));
    return;
  }
  const auto* words = std::get_if<TextDelta>(&event.delta);
  const auto* citation = std::get_if<CitationsDelta>(&event.delta);
  const auto* thought = std::get_if<ThinkingDelta>(&event.delta);
  const auto* signature = std::get_if<SignatureDelta>(&event.delta);
  if (text != nullptr && words != nullptr) text->text += words->text;
  if (text != nullptr && citation != nullptr) text->citations.push_back(citation->citation);
  if (thinking != nullptr && thought != nullptr) thinking->thinking += thought->thinking;
  if (thinking != nullptr && signature != nullptr) thinking->signature = signature->signature;
  if (text == nullptr && thinking == nullptr) return;
  part.changed = true;
  block.received_ = {};  // until the block is whole it is what its typed value says
}

void MessageAccumulator::finish(std::size_t index) {
  if (index >= parts_.size() || !parts_[index].open)
    throw out_of_order("the end of block " + std::to_string(index) + ", which is not open");
  Part& part = parts_[index];
  ContentBlock& block = message_.content[index];
  part.open = false;
  JsonText input;
  try {
    if (!part.input.empty()) input = JsonText(part.input);
  } catch (const ParseError&) {
    // Cut off in the middle (W-24).
  }
  std::visit(
      [&]<class Kind>(Kind& value) {
        Members members;
        if constexpr (requires { streamed_members(value); }) {
          if (part.changed) members = streamed_members(value);
        }
        if constexpr (HasInput<Kind>) {
          if (input.is_object()) value.input = input;
        }
        if (input.is_object() && (HasInput<Kind> || std::is_same_v<Kind, UnknownBlock>))
          members.emplace_back("input", input.text());
        if (members.empty() || !part.start.is_object()) return;
        block.received_ = with_members(part.start, std::move(members));
        if constexpr (std::is_same_v<Kind, UnknownBlock>) value.json = block.received_;
      },
      block.value_);
}

void MessageAccumulator::update(const MessageDeltaEvent& event) {
  message_.stop_reason = event.stop_reason;  // W-22: these three whatever they are
  message_.stop_sequence = event.stop_sequence;
  message_.stop_details = event.stop_details;
  if (!event.container.empty()) message_.container = event.container;
  merge(message_.usage, event.usage);
}

JsonValue MessageAccumulator::partial_input(std::size_t index) const {
  if (index >= parts_.size()) return {};
  if (!parts_[index].input.empty()) return parse_partial_json(parts_[index].input);
  return std::visit(
      []<class Kind>(const Kind& value) -> JsonValue {
        if constexpr (HasInput<const Kind>) return value.input.value();
        return {};
      },
      message_.content[index].value());
}

}  // namespace incipit
