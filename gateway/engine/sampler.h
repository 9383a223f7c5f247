// From logits to a token id.
#pragma once

#include "gateway/engine/generation.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace incipit::gateway {

// Philox 4x32 with ten rounds (Salmon et al., 2011): random words as a pure function of a counter
// and a key, so that a draw depends on the request's seed and the position alone, never on what
// else ran or on how often the request was preempted.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key);

// Makes all tokens impossible but those of `allowed`, one bit per id.
void mask_logits(std::span<float> logits, std::span<const std::uint64_t> allowed);

// Keeps scratch memory of the size of the vocabulary between calls. One thread.
class Sampler {
 public:
  // Temperature first, then the top_k most likely, then of these the shortest head that holds
  // top_p of their mass; at least one token stays. Ties go to the lower id. temperature <= 0 is
  // greedy. The same arguments give the same token. Empty when a logit is NaN or +infinity, or all
  // are -infinity: the model's output is then unusable.
  [[nodiscard]] std::optional<std::int32_t> sample(std::span<const float> logits,
                                                   const Sampling& sampling,
                                                   std::uint64_t position);

 private:
  // Leaves in order_ the ids to draw from, most likely first.
  void narrow(std::span<const float> logits, const Sampling& sampling);

  std::vector<double> weights_;  // by id: exp((logit - max) / temperature)
  std::vector<std::int32_t> order_;
};

}  // namespace incipit::gateway
