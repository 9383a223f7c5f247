// What the specification says of each model: minimum length (cache semantics, section 10), thinking
// matrix and effort (wire, sections 7.1 and 7.2), turns (4.1), forced tools (6.4), sampling (W-5).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace incipit::oracle {

enum class Cell { yes, no, to_high };  // accepted, refused, accepted up to effort "high"

struct ModelFacts {
  std::string id, alias;
  int minimum = 0;
  int most_output = 0;
  bool thinks_by_default = false;
  Cell adaptive, enabled, between_tools, disabled;
  std::string default_effort;
  bool keeps_all_thinking = false;  // section 9; the others keep the last turn's only
  bool system_messages = false;
  bool forced_tools = false;
  bool prefill = false;
  bool sampling = false;
};

inline const std::vector<ModelFacts>& models() {
  constexpr Cell yes = Cell::yes, no = Cell::no, high = Cell::to_high;
  constexpr int now = 128'000, then = 64'000;
  static const std::vector<ModelFacts> table = {
      {"claude-fable-5-2", "", 512, now, true, yes, no, no, no, "high", true, true, false},
      {"claude-mythos-5-2", "", 512, now, true, yes, no, no, no, "high", true, true, false},
      {"claude-fable-5-1", "", 512, now, true, yes, no, no, no, "high", true, true, false},
      {"claude-mythos-5-1", "", 512, now, true, yes, no, no, no, "high", true, true, false},
      {"claude-fable-5", "", 512, now, true, yes, no, no, no, "high", true, true, true},
      {"claude-mythos-5", "", 512, now, true, yes, no, no, no, "high", true, true, true},
      {"claude-opus-5-5", "", 512, now, true, yes, no, no, no, "medium", true, true, false},
      {"claude-sonnet-5-5", "", 512, now, true, yes, no, high, no, "high", true, true, false},
      {"claude-haiku-5-5", "", 512, now, true, yes, no, no, high, "medium", true, true, true},
      {"claude-opus-5", "", 512, now, true, yes, no, no, high, "high", true, true, true},
      {"claude-sonnet-5", "", 1024, now, true, yes, no, no, yes, "high", true, false, true},
      {"claude-opus-4-8", "", 1024, now, false, yes, no, no, yes, "high", true, true, true},
      {"claude-opus-4-7", "", 2048, now, false, yes, no, no, yes, "high", true, false, true},
      {"claude-mythos-preview", "", 2048, now, true, yes, yes, no, no, "high", true, false, true,
       false, true},
      {"claude-opus-4-6", "", 4096, now, false, yes, yes, no, yes, "high", true, false, true, false,
       true},
      {"claude-sonnet-4-6", "", 1024, now, false, yes, yes, no, yes, "high", true, false, true,
       false, true},
      {"claude-opus-4-5-20251101", "claude-opus-4-5", 4096, then, false, no, yes, no, yes, "high",
       true, false, true, true, true},
      {"claude-haiku-4-5-20251001", "claude-haiku-4-5", 4096, then, false, no, yes, no, yes, "high",
       false, false, true, true, true},
      {"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", 1024, then, false, no, yes, no, yes,
       "high", false, false, true, true, true},
  };
  return table;
}

// Preserved thinking (7.1): signatures are bound to what precedes them.
inline bool binds_thoughts(const ModelFacts& model) {
  for (const std::string_view id :
       {"claude-fable-5-2", "claude-mythos-5-2", "claude-fable-5-1", "claude-mythos-5-1",
        "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"}) {
    if (model.id == id) return true;
  }
  return false;
}

inline const ModelFacts* facts_of(std::string_view name) {
  for (const ModelFacts& model : models()) {
    if (name == model.id || (!model.alias.empty() && name == model.alias)) return &model;
  }
  return nullptr;
}

}  // namespace incipit::oracle
