#include "gateway/model/digest.h"

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): xxHash's own switch
#include <xxhash.h>

#include <cstring>

namespace incipit::gateway {

struct DigestBuilder::State {
  XXH3_state_t xxh;
};

DigestBuilder::DigestBuilder() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}

DigestBuilder::~DigestBuilder() = default;

void DigestBuilder::raw(const void* data, std::size_t size) {
  if (size > 0) XXH3_128bits_update(&state_->xxh, data, size);
}

void DigestBuilder::bytes(const void* data, std::size_t size) {
  value(std::uint64_t{size});
  raw(data, size);
}

Digest DigestBuilder::finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  Digest digest{};
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

}  // namespace incipit::gateway
