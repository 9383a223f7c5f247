// Replies as the most erratic of models would write them: each token drawn from all that are
// allowed.
#pragma once

#include "gateway/constrain/constraint.h"
#include "tests/constrain/vocabularies.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace incipit::constrain {

inline std::vector<TokenId> tokens_of(std::span<const std::uint64_t> mask) {
  std::vector<TokenId> tokens;
  for (std::size_t word = 0; word < mask.size(); ++word) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      if (mask[word] >> bit & 1) tokens.push_back(static_cast<TokenId>(word * 64 + bit));
    }
  }
  return tokens;
}

struct Reply {
  std::string text;
  int tokens = 0;
  bool is_whole = false;
  std::string fault;  // what the constraint did against its word
};

// At most `budget` tokens.
inline Reply random_reply(Constraint constraint, const Vocabulary& vocabulary, int budget,
                          Random& random) {
  Reply reply;
  for (; reply.tokens < budget && !constraint.done(); ++reply.tokens) {
    if (constraint.end_allowed() && random() % 3 == 0) break;
    const std::vector<TokenId> allowed = tokens_of(constraint.allowed(budget - reply.tokens));
    if (allowed.empty()) {
      if (!constraint.end_allowed()) reply.fault = "no token may follow";
      break;
    }
    const TokenId token = allowed[random() % allowed.size()];
    reply.text += vocabulary.bytes(token);
    if (!constraint.advance(token)) {
      reply.fault = "an allowed token is refused";
      break;
    }
  }
  reply.is_whole = constraint.end_allowed();
  return reply;
}

}  // namespace incipit::constrain
