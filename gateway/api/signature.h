// Signatures of thinking blocks: opaque to clients, which send them back with the block.
// Source: anthropic-wire section 7.1.
//
// A signature is base64 of a version, a checksum, what the thought is bound to, whether it was
// shown, and the thought itself: a block whose display was omitted comes back without its text. The
// checksum is a hash with a fixed key. It finds signatures that were made elsewhere, cut or
// altered; it is no secret, and who reads this file can forge one. So a signature is valid on
// every gateway of this version and after every restart.
#pragma once

#include "gateway/cache/prefix_key.h"

#include <optional>
#include <string>
#include <string_view>

namespace incipit::gateway {

struct SignedThought {
  std::string thought;
  PrefixKey bound_to;     // the content that the thought followed
  bool was_shown = true;  // its text was in the block, so that a change of it can be told
};

// The same for the same arguments.
[[nodiscard]] std::string sign_thought(std::string_view thought, const PrefixKey& bound_to,
                                       bool was_shown);

// Nothing for what `sign_thought` did not make.
[[nodiscard]] std::optional<SignedThought> read_signature(std::string_view signature);

}  // namespace incipit::gateway
