#include "gateway/cache/prefix_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace incipit::gateway {

// XXH3 keeps its input in an aligned buffer of its own, so a key may be taken at any time without
// changing the state: `XXH3_128bits_digest` reads a const state and copies at most its 256-byte
// tail.
struct PrefixHasher::State {
  XXH3_state_t hash;
};

PrefixHasher::PrefixHasher() : state_(std::make_unique<State>()) {
  XXH3_INITSTATE(&state_->hash);
  XXH3_128bits_reset(&state_->hash);
}

PrefixHasher::~PrefixHasher() = default;
PrefixHasher::PrefixHasher(PrefixHasher&&) noexcept = default;
PrefixHasher& PrefixHasher::operator=(PrefixHasher&&) noexcept = default;

void PrefixHasher::add(std::string_view bytes) {
  // The length comes first, in a fixed byte order, so that no two sequences of adds feed the same
  // bytes: a reader of the stream could always tell where each add ends.
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) {
    length[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(bytes.size()) >> (8 * i));
  }
  XXH3_128bits_update(&state_->hash, length, sizeof length);
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

PrefixKey PrefixHasher::key() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(&state_->hash);
  return {digest.high64, digest.low64};
}

}  // namespace incipit::gateway
