// Which tokens may come next in one request's reply.
#pragma once

#include "gateway/constrain/compiled_shape.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace incipit::constrain {

// A value: copies go on independently, and a reply that is replayed token by token comes to the
// same state. One thread at a time; the compiled shape is shared.
//
//   Constraint constraint(shape);
//   while (!constraint.done()) {
//     sample a token from constraint.allowed(left), or an end token if constraint.end_allowed()
//     constraint.advance(token)
//   }
class Constraint {
 public:
  explicit Constraint(std::shared_ptr<const CompiledShape> shape);

  // One bit per token, token 0 lowest in word 0. Of `remaining_tokens`, that this token is one of,
  // enough are always kept to write a whole value; with fewer than `shortest_completion` left from
  // the beginning that cannot be, and the mask is as if there were no limit. Special tokens are
  // never in it. Without bits only when an end token is all that can follow. Valid until the next
  // call.
  [[nodiscard]] std::span<const std::uint64_t> allowed(int remaining_tokens);

  // The reply may end here.
  [[nodiscard]] bool end_allowed() const { return shape_->accepts(state_); }

  // Nothing but the end can follow.
  [[nodiscard]] bool done() const { return shape_->is_end(state_); }

  // False, and no change, when the token cannot follow.
  bool advance(TokenId token);

  // With so many tokens more the reply can be whole, though not with every choice of tokens. An end
  // token is not counted. An upper bound: there may be a shorter way.
  [[nodiscard]] int shortest_completion() const;

 private:
  std::shared_ptr<const CompiledShape> shape_;
  CompiledShape::State state_ = Dfa::start();
  std::vector<std::uint64_t> mask_;
};

}  // namespace incipit::constrain
