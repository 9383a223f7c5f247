#include "gateway/prompt/call_finder.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

namespace incipit::gateway {

namespace {

constexpr std::string_view white_space = " \t\r\n";

std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(white_space), text.size()));
}

std::string_view without_trailing_space(std::string_view text) {
  return text.substr(0, text.find_last_not_of(white_space) + 1);
}

// How much of the end of `text` could be the beginning of `pattern`.
std::size_t begun(std::string_view text, std::string_view pattern) {
  std::size_t length = std::min(text.size(), pattern.size() - 1);
  while (!text.ends_with(pattern.substr(0, length)))
    --length;
  return length;
}

// Name and arguments of {"name": …, "arguments" or "parameters": {…}}.
std::optional<ToolCall> read_call(simdjson::ondemand::object object) {
  ToolCall call;
  bool has_input = false;
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) return std::nullopt;
    const bool is_input = key == "arguments" || key == "parameters";
    if (key == "name") {
      std::string_view name;
      if (field.value().get_string().get(name) != simdjson::SUCCESS) return std::nullopt;
      call.name = name;
    } else if (is_input) {
      simdjson::ondemand::object input;
      std::string_view raw;
      if (field.value().get_object().get(input) != simdjson::SUCCESS
          || input.raw_json().get(raw) != simdjson::SUCCESS) {
        return std::nullopt;
      }
      call.input = without_trailing_space(raw);
      has_input = true;
    }
  }
  if (call.name.empty() || !has_input) return std::nullopt;
  return call;
}

// One call, or an array of them. Empty when `json` is anything else.
std::vector<ToolCall> read_calls(std::string_view json, bool is_array) {
  const simdjson::padded_string padded(json);
  // The on-demand parser keeps the arguments' bytes but checks only what it touches; so the other
  // one looks at all of it first.
  simdjson::dom::parser checker;
  if (checker.parse(padded).error() != simdjson::SUCCESS) return {};

  std::vector<ToolCall> calls;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return {};
  const auto add = [&](auto&& value) {
    simdjson::ondemand::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) return false;
    auto call = read_call(object);
    if (call) calls.push_back(std::move(*call));
    return call.has_value();
  };
  if (!is_array) {
    if (!add(document)) return {};
    return calls;
  }
  simdjson::ondemand::array array;
  if (document.get_array().get(array) != simdjson::SUCCESS) return {};
  for (auto element : array) {
    if (!add(element)) return {};
  }
  return calls;
}

}  // namespace

CallFinder::CallFinder(ChatTemplate::CallSyntax syntax, std::vector<std::string> tools)
    : syntax_(syntax), tools_(std::move(tools)) {
  if (syntax == ChatTemplate::CallSyntax::tagged) {
    opening_ = "<tool_call>";
    closing_ = "</tool_call>";
  } else if (syntax == ChatTemplate::CallSyntax::bracketed) {
    opening_ = "[TOOL_CALLS]";
  }
}

void CallFinder::Extent::advance(std::string_view text) {
  for (; at < text.size() && !is_whole; ++at) {
    const char c = text[at];
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      is_whole = --depth == 0;
    }
  }
}

void CallFinder::feed(std::string_view text, std::vector<Finding>& findings) {
  held_ += text;
  while (phase_ == Phase::inside ? step_inside(findings) : step_outside(findings)) {
  }
}

// Returns whether there is more to do with what is held.
bool CallFinder::step_outside(std::vector<Finding>& findings) {
  if (phase_ == Phase::only_text) {
    emit(std::exchange(held_, {}), findings);
    return false;
  }
  if (syntax_ == ChatTemplate::CallSyntax::bare) {
    look_for_bare_call();
    return phase_ != Phase::outside;
  }
  const std::size_t opening = held_.find(opening_);
  if (opening == std::string::npos) {
    const bool is_blank = without_leading_space(held_).empty();
    if (is_blank && !has_text_) return false;
    // One line end in front of a call belongs to the call.
    const std::size_t keep =
        std::max(begun(held_, opening_), begun(held_, "\n" + std::string(opening_)));
    const std::string_view certain = std::string_view(held_).substr(0, held_.size() - keep);
    if (!has_text_ && without_leading_space(certain).empty()) return false;
    emit(certain, findings);
    held_.erase(0, certain.size());
    return false;
  }
  std::string_view before = std::string_view(held_).substr(0, opening);
  if (!has_text_ && without_leading_space(before).empty()) {
    before = {};
  } else if (before.ends_with('\n')) {
    before.remove_suffix(1);
  }
  emit(before, findings);
  opened_ = held_.substr(before.size(), opening + opening_.size() - before.size());
  held_.erase(0, opening + opening_.size());
  phase_ = Phase::inside;
  extent_ = {};
  return true;
}

// The whole reply is calls, or none of it is.
void CallFinder::look_for_bare_call() {
  const std::size_t begin = held_.find_first_not_of(has_called_ ? " \t\r\n;" : white_space);
  if (begin == std::string::npos) return;
  if (held_[begin] != '{') {
    phase_ = Phase::only_text;
    return;
  }
  opened_ = held_.substr(0, begin);
  held_.erase(0, begin);
  phase_ = Phase::inside;
  extent_ = {};
}

bool CallFinder::step_inside(std::vector<Finding>& findings) {
  const char bracket = syntax_ == ChatTemplate::CallSyntax::bracketed ? '[' : '{';
  const std::string_view content = without_leading_space(held_);
  if (content.empty()) return false;
  if (content.front() != bracket) {
    give_up(findings);
    return true;
  }
  extent_.advance(held_);
  if (!extent_.is_whole) return false;
  const std::string_view rest = without_leading_space(std::string_view(held_).substr(extent_.at));
  if (!rest.starts_with(closing_)) {
    if (closing_.starts_with(rest)) return false;
    give_up(findings);
    return true;
  }
  if (!take_calls(std::string_view(held_).substr(0, extent_.at), findings)) {
    give_up(findings);
    return true;
  }
  const std::size_t end = closing_.empty() ? extent_.at : held_.size() - rest.size();
  held_.erase(0, end + closing_.size());
  phase_ = Phase::outside;
  return true;
}

bool CallFinder::take_calls(std::string_view json, std::vector<Finding>& findings) {
  auto calls = read_calls(json, syntax_ == ChatTemplate::CallSyntax::bracketed);
  const bool are_known = std::ranges::all_of(calls, [&](const ToolCall& call) {
    return std::ranges::find(tools_, call.name) != tools_.end();
  });
  if (calls.empty() || !are_known) return false;
  for (ToolCall& call : calls)
    findings.push_back({{}, std::move(call)});
  has_called_ = true;
  has_text_ = false;
  return true;
}

// What looked like a call is text; behind its opening a call may yet follow.
void CallFinder::give_up(std::vector<Finding>& findings) {
  emit(std::exchange(opened_, {}), findings);
  const bool is_bare = syntax_ == ChatTemplate::CallSyntax::bare;
  phase_ = is_bare ? Phase::only_text : Phase::outside;
}

void CallFinder::emit(std::string_view text, std::vector<Finding>& findings) {
  if (text.empty()) return;
  has_text_ = true;
  findings.push_back({std::string(text), std::nullopt});
}

void CallFinder::finish(std::vector<Finding>& findings) {
  while (phase_ == Phase::inside) {
    const bool is_whole_call =
        extent_.is_whole
        && closing_.starts_with(without_leading_space(std::string_view(held_).substr(extent_.at)));
    if (is_whole_call && take_calls(std::string_view(held_).substr(0, extent_.at), findings)) {
      held_.clear();
      return;
    }
    give_up(findings);
    feed({}, findings);
  }
  // White space behind the last call is nobody's.
  const bool is_blank = without_leading_space(held_).empty();
  if (!(is_blank && has_called_ && !has_text_)) emit(held_, findings);
  held_.clear();
}

}  // namespace incipit::gateway
