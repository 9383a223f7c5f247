// Where two requests first differ, for a program and for a person.
// Source: anthropic-cache-semantics sections 9 and 19.
#include "fingerprint_state.h"
#include "incipit/fingerprint.h"
#include "json_slices.h"
#include "visible_json.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace incipit {
namespace {

using State = FingerprintState;

std::string_view name_of(Section section) {
  switch (section) {
    case Section::tools:
      return "tools";
    case Section::system:
      return "system";
    case Section::messages:
      break;
  }
  return "messages";
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// About 40 bytes on either side of a place.
std::string excerpt(std::string_view body, std::size_t at) {
  constexpr std::size_t around = 40;
  std::size_t begin = at > around ? at - around : 0;
  std::size_t end = std::min(at + around, body.size());
  while (begin < end && continues_character(body[begin]))
    ++begin;
  while (end > begin && end < body.size() && continues_character(body[end]))
    --end;
  return std::string(body.substr(begin, end - begin));
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// A place in both bodies.
struct Place {
  std::string path;
  std::size_t before = 0, after = 0;
};

// The first blocks of a section that are not the same; null where there is none.
struct Divergence {
  Section section = Section::tools;
  const PromptBlock* before = nullptr;
  const PromptBlock* after = nullptr;
};

std::optional<Divergence> diverge(const State& a, const State& b, Section section) {
  const auto before = a.in(section);
  const auto after = b.in(section);
  const std::size_t both = std::min(before.size(), after.size());
  for (std::size_t i = 0; i < both; ++i) {
    const bool same = before[i]->role == after[i]->role && before[i]->digest == after[i]->digest;
    if (!same) return Divergence{section, before[i], after[i]};
  }
  if (section == Section::messages || before.size() == after.size()) return std::nullopt;
  return Divergence{section, both < before.size() ? before[both] : nullptr,
                    both < after.size() ? after[both] : nullptr};
}

std::string path_of(const PromptBlock& block) {
  std::string path = std::string(name_of(block.section)) + "." + std::to_string(block.index);
  if (block.section == Section::messages) path += ".content." + std::to_string(block.part);
  return path;
}

std::string_view json_of(const State& state, const PromptBlock& block) {
  return std::string_view(state.body).substr(block.offset, block.size);
}

// Where a list that is longer than the other's goes on with `block`, or, without one, where the
// shorter ends: at the comma or the bracket. If only one of the two has the list, at the first
// letter of a key.
std::size_t edge_of(const State& state, const State& other, Section section,
                    const PromptBlock* block) {
  const auto offset = [&](std::string_view part) {
    return static_cast<std::size_t>(part.data() - state.body.data());
  };
  const auto others = json_members(other.body);
  const bool in_other = std::ranges::any_of(
      others, [&](const JsonMemberSlice& member) { return member.is_named(name_of(section)); });
  for (const JsonMemberSlice& member : json_members(state.body)) {
    const bool here = member.is_named(name_of(section));
    if (here && in_other && block != nullptr) {
      return block->offset - (state.body[block->offset - 1] == ',' ? 1 : 0);
    }
    if (here && in_other) return offset(member.value) + member.value.size() - 1;
    if (here || member.is_named("system") || member.is_named("messages")) {
      return offset(member.key) + 1;
    }
  }
  return state.body.size() - 1;
}

Place place_of(const State& a, const State& b, const Divergence& found) {
  if (found.before == nullptr || found.after == nullptr) {
    return {found.after == nullptr ? std::string(name_of(found.section)) : path_of(*found.after),
            edge_of(a, b, found.section, found.before), edge_of(b, a, found.section, found.after)};
  }
  const VisibleJson before = visible_json(json_of(a, *found.before));
  const VisibleJson after = visible_json(json_of(b, *found.after));
  const std::size_t at = common_prefix(before.text, after.text);
  if (found.before->role != found.after->role) {
    const auto message = [](const PromptBlock& block) {
      return "messages." + std::to_string(block.index) + ".role";
    };
    return {message(*found.after), json_offset(a.body, message(*found.before)) + 1,
            json_offset(b.body, message(*found.after)) + 1};
  }
  const std::string inside = path_of_difference(before.text, after.text, at);
  return {path_of(*found.after) + (inside.empty() ? "" : "." + inside),
          found.before->offset + before.source(at), found.after->offset + after.source(at)};
}

// Visible bytes of `a` that come before the difference.
std::size_t bytes_kept(const State& a, const State& b, const Divergence& found) {
  std::size_t kept = 0;
  for (const PromptBlock& block : a.blocks) {
    if (&block == found.before || block.section > found.section) break;
    kept += block.visible;
  }
  if (found.before != nullptr && found.after != nullptr
      && found.before->role == found.after->role) {
    kept += common_prefix(visible_json(json_of(a, *found.before)).text,
                          visible_json(json_of(b, *found.after)).text);
  }
  return kept;
}

std::size_t bytes_before(const State& a, Section section) {
  std::size_t kept = 0;
  for (const PromptBlock& block : a.blocks)
    kept += block.section < section ? block.visible : 0;
  return kept;
}

const RenderedSetting* find_setting(const State& state, std::string_view name) {
  const auto found = std::ranges::find(state.settings, name, &RenderedSetting::name);
  return found == state.settings.end() ? nullptr : &*found;
}

// A setting that the two have not alike; either is null when that request does not know it at all.
struct Change {
  const RenderedSetting* before;
  const RenderedSetting* after;

  [[nodiscard]] const RenderedSetting& any() const { return after != nullptr ? *after : *before; }
};

std::vector<Change> changed_settings(const State& a, const State& b) {
  std::vector<Change> changes;
  for (const RenderedSetting& before : a.settings) {
    const RenderedSetting* after = find_setting(b, before.name);
    if (after == nullptr || after->value != before.value) changes.push_back({&before, after});
  }
  for (const RenderedSetting& after : b.settings) {
    if (find_setting(a, after.name) == nullptr) changes.push_back({nullptr, &after});
  }
  // What is rendered first comes first.
  std::ranges::stable_sort(changes, {}, [](const Change& change) { return change.any().before; });
  return changes;
}

std::size_t start_of(const State& state, const RenderedSetting* setting) {
  const bool there = setting != nullptr && !setting->path.empty();
  return there ? json_offset(state.body, setting->path) : state.body.size() - 1;
}

Place place_of(const State& a, const State& b, const Change& change) {
  const bool both = change.before != nullptr && change.after != nullptr
                    && !change.before->path.empty() && !change.after->path.empty();
  Place place{change.after == nullptr || change.after->path.empty() ? change.any().name
                                                                    : change.after->path,
              start_of(a, change.before), start_of(b, change.after)};
  if (!both) return place;
  const std::size_t at = common_prefix(std::string_view(a.body).substr(place.before),
                                       std::string_view(b.body).substr(place.after));
  return {std::move(place.path), place.before + at, place.after + at};
}

// Everything about a pair of requests.
class Comparison {
 public:
  Comparison(const State& a, const State& b, std::int64_t prompt_tokens)
      : a_(a), b_(b), changes_(changed_settings(a, b)) {
    const auto bytes = static_cast<double>(a.bytes);
    tokens_per_byte_ =
        prompt_tokens > 0 && a.bytes > 0 ? static_cast<double>(prompt_tokens) / bytes : 0.25;
    for (const Section section : {Section::tools, Section::system, Section::messages}) {
      const auto found = diverge(a, b, section);
      if (found) divergences_.push_back(*found);
      if (found) keep_at_most(bytes_kept(a, b, *found));
    }
    for (const Change& change : changes_)
      keep_at_most(bytes_before(a, change.any().before));
  }

  [[nodiscard]] CacheMiss miss() const {
    if (a_.model != b_.model) return of_model();
    const auto speed = std::ranges::find_if(
        changes_, [](const Change& change) { return change.any().name == "speed"; });
    if (speed != changes_.end()) return of_setting(*speed, MissReason::model_changed);
    for (const Section section : {Section::system, Section::tools, Section::messages}) {
      const auto found = std::ranges::find(divergences_, section, &Divergence::section);
      if (found != divergences_.end()) return of_section(*found);
    }
    if (!changes_.empty()) return of_setting(changes_.front(), MissReason::unavailable);
    return {};
  }

 private:
  void keep_at_most(std::size_t bytes) { kept_ = std::min(kept_.value_or(bytes), bytes); }

  [[nodiscard]] std::int64_t tokens_behind(std::size_t kept) const {
    return std::llround(static_cast<double>(a_.bytes - kept) * tokens_per_byte_);
  }

  // `what` is said of the place: "…, so N tokens …".
  [[nodiscard]] CacheMiss made(MissReason reason, Place place, std::size_t kept,
                               const std::string& what) const {
    CacheMiss miss;
    miss.reason = reason;
    miss.byte_offset = place.after;
    miss.before = excerpt(a_.body, place.before);
    miss.after = excerpt(b_.body, place.after);
    miss.tokens_lost = tokens_behind(kept);
    miss.explanation = what + ", so about " + std::to_string(miss.tokens_lost)
                       + " tokens that could have been read are processed anew";
    miss.path = std::move(place.path);
    return miss;
  }

  [[nodiscard]] CacheMiss of_model() const {
    const std::size_t before = json_offset(a_.body, "model");
    const std::size_t after = json_offset(b_.body, "model");
    const std::size_t at = common_prefix(std::string_view(a_.body).substr(before),
                                         std::string_view(b_.body).substr(after));
    return made(MissReason::model_changed, {"model", before + at, after + at}, 0,
                "the model changed from " + a_.model + " to " + b_.model
                    + ", and each model has a cache of its own");
  }

  [[nodiscard]] CacheMiss of_setting(const Change& change, MissReason reason) const {
    const Place place = place_of(a_, b_, change);
    const std::string& name = change.any().name;
    std::string what = name + " is not what it was in the request before";
    if (name == "image") what = "the first image of the conversation came, or the last one went";
    if (name == "citations") what = "citations were switched on or off";
    if (place.path != name) what += " (" + place.path + ")";
    const std::string level = change.any().before == Section::system
                                  ? "the system prompt and the messages"
                                  : "the messages";
    return made(reason, place, kept_.value_or(0),
                what + "; the cache of " + level + " depends on it");
  }

  [[nodiscard]] CacheMiss of_section(const Divergence& found) const {
    constexpr MissReason reasons[] = {MissReason::tools_changed, MissReason::system_changed,
                                      MissReason::messages_changed};
    Place place = place_of(a_, b_, found);
    return made(reasons[static_cast<std::size_t>(found.section)], place, kept_.value_or(0),
                said_of(found, place));
  }

  [[nodiscard]] std::string said_of(const Divergence& found, const Place& place) const {
    const std::string part = found.section == Section::tools ? "tool" : "system text";
    if (found.before == nullptr) return "a " + part + " was added at " + place.path;
    if (found.after == nullptr) {
      return path_of(*found.before) + " of the request before, a " + part + ", is gone";
    }
    if (found.before->thinking && b_.thinking_dropped) {
      return "this model takes earlier thinking out of the prompt once a user turn holds more than "
             "tool results, from "
             + path_of(*found.before) + " on";
    }
    return place.path + " is not what it was in the request before, from byte "
           + std::to_string(place.after) + " of the body on";
  }

  const State& a_;
  const State& b_;
  std::vector<Change> changes_;
  std::vector<Divergence> divergences_;  // at most one of each section
  std::optional<std::size_t> kept_;      // visible bytes of `a` before the earliest difference
  double tokens_per_byte_ = 0.25;
};

}  // namespace

std::string_view to_string(MissReason reason) {
  switch (reason) {
    case MissReason::model_changed:
      return "model_changed";
    case MissReason::system_changed:
      return "system_changed";
    case MissReason::tools_changed:
      return "tools_changed";
    case MissReason::messages_changed:
      return "messages_changed";
    case MissReason::unavailable:
      return "unavailable";
    case MissReason::none:
      break;
  }
  return "none";
}

CacheMiss compare(const Fingerprint& a, const Fingerprint& b, std::int64_t prompt_tokens) {
  return Comparison(*a.state_, *b.state_, prompt_tokens).miss();
}

}  // namespace incipit
