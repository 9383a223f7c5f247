#include "gateway/api/anthropic_traits.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

// claude-opus-4-8 → opus, 48. claude-3-5-haiku-20241022 → haiku, 35.
struct Generation {
  std::string line;
  int number = 0;
};

std::optional<Generation> generation(std::string_view model) {
  constexpr std::string_view prefix = "claude-";
  if (!model.starts_with(prefix)) return std::nullopt;
  // Released between 4.6 and 4.7; its name carries no number.
  if (model == "claude-mythos-preview") return Generation{"mythos", 46};
  Generation result;
  std::vector<int> numbers;
  std::size_t at = prefix.size();
  while (at <= model.size()) {
    const std::size_t end = std::min(model.find_first_of("-@:.", at), model.size());
    const std::string_view part = model.substr(at, end - at);
    at = end + 1;
    if (part.size() == 1 && std::isdigit(static_cast<unsigned char>(part[0])) != 0) {
      numbers.push_back(part[0] - '0');
    } else if (!part.empty() && std::isalpha(static_cast<unsigned char>(part[0])) != 0) {
      if (result.line.empty()) result.line = part;
    }
  }
  if (result.line.empty() || numbers.empty()) return std::nullopt;
  result.number = numbers[0] * 10 + (numbers.size() > 1 ? numbers[1] : 0);
  return result;
}

using enum ThinkingSupport;

// Rows of the matrix in section 7.1; columns adaptive, enabled, between_tools, disabled.
void set_thinking(ModelTraits& traits, const Generation& model) {
  const bool always = model.line == "fable" || model.line == "mythos"
                      || (model.line == "opus" && model.number >= 55);
  traits.thinks_by_default = always || model.number >= 50;
  traits.shows_thinking = !traits.thinks_by_default && model.number < 47;
  traits.keeps_thinking = always
                          || model.number >= (model.line == "opus"     ? 45
                                              : model.line == "sonnet" ? 46
                                                                       : 50);
  const bool is_fable_or_mythos = model.line == "fable" || model.line == "mythos";
  traits.binds_thinking = model.number >= (is_fable_or_mythos ? 51 : 55);
  if (model.line == "mythos" && model.number == 46) {
    traits.thinking = {accepted, accepted, refused, refused};
  } else if (always) {
    traits.thinking = {accepted, refused, refused, refused};
  } else if (model.line == "sonnet" && model.number >= 55) {
    traits.thinking = {accepted, refused, accepted_to_high_effort, refused};
  } else if (model.line != "sonnet" && model.number >= 50) {
    traits.thinking = {accepted, refused, refused, accepted_to_high_effort};
  } else if (model.number >= 47) {
    traits.thinking = {accepted, refused, refused, accepted};
  } else if (model.number == 46) {
    traits.thinking = {accepted, accepted, refused, accepted};
  } else {
    traits.thinking = {refused, accepted, refused, accepted};
  }
}

}  // namespace

ModelTraits model_traits(std::string_view model) {
  ModelTraits traits;
  const auto parsed = generation(model);
  if (!parsed) return traits;
  const auto& [line, number] = *parsed;
  traits.prefill = number < 46;
  traits.sampling = number < 47;
  // Of the fives, plain Sonnet 5 has no system messages; Opus has them from 4.8 on.
  traits.system_messages = line == "opus"                        ? number >= 48
                           : line == "fable" || line == "mythos" ? number >= 50
                                                                 : number >= 55;
  const bool newest =
      line == "fable" || line == "mythos" ? number >= 51 : line != "haiku" && number >= 55;
  traits.forced_tool_use = !newest;
  if ((line == "opus" || line == "haiku") && number >= 55) traits.default_effort = Effort::medium;
  set_thinking(traits, *parsed);
  return traits;
}

}  // namespace incipit::gateway
