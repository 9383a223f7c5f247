#include "gateway/constrain/constraint.h"

#include "gateway/constrain/completion.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace incipit::constrain {

Constraint::Constraint(std::shared_ptr<const CompiledShape> shape) : shape_(std::move(shape)) {}

std::span<const std::uint64_t> Constraint::allowed(int remaining_tokens) {
  mask_.assign(mask_words(shape_->vocabulary().size()), 0);
  // `never` itself stays out: from there no budget is enough.
  const bool can_complete = remaining_tokens > 0 && remaining_tokens >= shortest_completion();
  const std::uint32_t most =
      can_complete ? static_cast<std::uint32_t>(remaining_tokens) - 1 : never - 1;
  shape_->allow(state_, most, mask_);
  return mask_;
}

bool Constraint::advance(TokenId token) {
  const std::string_view bytes = shape_->vocabulary().bytes(token);
  if (bytes.empty()) return false;
  const auto next = shape_->advance(state_, bytes);
  if (next) state_ = *next;
  return next.has_value();
}

int Constraint::shortest_completion() const {
  return static_cast<int>(shape_->tokens_to_end(state_));
}

}  // namespace incipit::constrain
