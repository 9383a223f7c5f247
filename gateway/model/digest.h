// 128-bit content digests (XXH3). Not cryptographic: they tell apart, they do not authenticate.
#pragma once

#include "gateway/model/model.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>

namespace incipit::gateway {

// Feeds values one after another. Variable-length values are preceded by their length, so that
// different sequences of values never give the same stream of bytes.
class DigestBuilder {
 public:
  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(const DigestBuilder&) = delete;
  DigestBuilder& operator=(const DigestBuilder&) = delete;

  void bytes(const void* data, std::size_t size);

  void text(std::string_view value) { bytes(value.data(), value.size()); }

  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>

  void value(T scalar) { raw(&scalar, sizeof scalar); }

  [[nodiscard]] Digest finish() const;

 private:
  struct State;
  void raw(const void* data, std::size_t size);
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
