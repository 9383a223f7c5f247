#include "gateway/prompt/call_finder.h"

#include <algorithm>
#include <utility>

namespace incipit::gateway {

namespace {

constexpr std::string_view white_space = " \t\r\n";

std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(white_space), text.size()));
}

// How much of the end of `text` could be the beginning of `pattern`.
std::size_t begun(std::string_view text, std::string_view pattern) {
  std::size_t length = std::min(text.size(), pattern.size() - 1);
  while (!text.ends_with(pattern.substr(0, length)))
    --length;
  return length;
}

}  // namespace

CallFinder::CallFinder(const CallGrammar& grammar, const std::vector<std::string>& tools)
    : grammar_(grammar), tools_(tools) {
  for (const std::string& tool : tools_)
    heads_.push_back(grammar_.head(tool));
}

void CallFinder::feed(std::string_view text, std::vector<Finding>& findings) {
  held_ += text;
  while (step(findings)) {
  }
}

// Returns whether there is more to do with what is held.
bool CallFinder::step(std::vector<Finding>& findings) {
  switch (phase_) {
    case Phase::outside:
      return step_outside(findings);
    case Phase::opening: {
      // A SentencePiece vocabulary may put a blank in front.
      if (!grammar_.open.empty() && held_.starts_with(' ')) {
        opened_ += ' ';
        held_.erase(0, 1);
      }
      return pass(grammar_.open, Phase::head, findings);
    }
    case Phase::head:
      return step_head(findings);
    case Phase::input:
      return step_input(findings);
    case Phase::tail:
      return pass(grammar_.tail, grammar_.join.empty() ? Phase::outside : Phase::behind, findings);
    case Phase::behind:
      if (held_.empty()) return false;
      return held_.front() == grammar_.join.front()
                 ? pass(grammar_.join, Phase::head, findings)
                 : pass(grammar_.close, Phase::outside, findings);
  }
  return false;
}

bool CallFinder::step_outside(std::vector<Finding>& findings) {
  const std::size_t trigger = held_.find(grammar_.trigger);
  if (trigger == std::string::npos) {
    const bool is_blank = without_leading_space(held_).empty();
    if (is_blank && !has_text_) return false;
    // One line end in front of a call belongs to the call.
    const std::size_t keep = std::max(begun(held_, grammar_.trigger),
                                      begun(held_, "\n" + std::string(grammar_.trigger)));
    const std::string_view certain = std::string_view(held_).substr(0, held_.size() - keep);
    if (!has_text_ && without_leading_space(certain).empty()) return false;
    emit_text(certain, findings);
    held_.erase(0, certain.size());
    return false;
  }
  std::string_view before = std::string_view(held_).substr(0, trigger);
  if (!has_text_ && without_leading_space(before).empty()) {
    before = {};
  } else if (before.ends_with('\n')) {
    before.remove_suffix(1);
  }
  emit_text(before, findings);
  opened_ = held_.substr(before.size(), trigger + grammar_.trigger.size() - before.size());
  held_.erase(0, trigger + grammar_.trigger.size());
  phase_ = Phase::opening;
  return true;
}

// Goes on behind `literal` once it has come.
bool CallFinder::pass(std::string_view literal, Phase next, std::vector<Finding>& findings) {
  if (!held_.starts_with(literal)) {
    return literal.starts_with(held_) ? false : give_up(findings);
  }
  opened_ += literal;
  held_.erase(0, literal.size());
  phase_ = next;
  return true;
}

bool CallFinder::step_head(std::vector<Finding>& findings) {
  bool may_come = false;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    // With the brace, so that what follows is an object for sure.
    const std::string head = heads_[i] + "{";
    may_come = may_come || head.starts_with(held_);
    if (!held_.starts_with(head)) continue;
    held_.erase(0, heads_[i].size());
    opened_.clear();
    findings.push_back({Finding::Kind::call, tools_[i]});
    phase_ = Phase::input;
    extent_ = {};
    has_called_ = true;
    has_text_ = false;
    return true;
  }
  return may_come ? false : give_up(findings);
}

bool CallFinder::step_input(std::vector<Finding>& findings) {
  if (held_.empty()) return false;
  const std::size_t length = extent_.advance(held_);
  findings.push_back({Finding::Kind::input, held_.substr(0, length)});
  held_.erase(0, length);
  if (extent_.depth > 0) return false;
  findings.push_back({Finding::Kind::end, {}});
  phase_ = Phase::tail;
  return true;
}

std::size_t CallFinder::Extent::advance(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
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
      if (--depth == 0) return at + 1;
    }
  }
  return text.size();
}

// What looked like a call is text; behind its trigger a call may yet follow.
bool CallFinder::give_up(std::vector<Finding>& findings) {
  emit_text(std::exchange(opened_, {}), findings);
  phase_ = Phase::outside;
  return true;
}

void CallFinder::emit_text(std::string_view text, std::vector<Finding>& findings) {
  if (text.empty()) return;
  has_text_ = true;
  findings.push_back({Finding::Kind::text, std::string(text)});
}

void CallFinder::finish(std::vector<Finding>& findings) {
  if (phase_ == Phase::input) {
    findings.push_back({Finding::Kind::end, {}});
  } else if (phase_ == Phase::opening || phase_ == Phase::head) {
    give_up(findings);
  }
  // White space behind the last call is nobody's, and so is a call's end that did not come whole.
  const bool is_nobodys = phase_ != Phase::outside || without_leading_space(held_).empty();
  if (!(is_nobodys && has_called_ && !has_text_)) emit_text(held_, findings);
  held_.clear();
}

}  // namespace incipit::gateway
