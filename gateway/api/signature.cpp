#include "gateway/api/signature.h"

#include "incipit/anthropic.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace incipit::gateway {
namespace {

constexpr char version = 1;
constexpr std::size_t key_size = 16;
constexpr std::size_t head_size = 1 + 2 * key_size + 1;  // version, checksum, bound_to, was_shown

void append(std::string& bytes, const PrefixKey& key) {
  for (const std::uint64_t half : {key.high, key.low}) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes += static_cast<char>(half >> shift & 0xFFU);
    }
  }
}

PrefixKey key_at(std::string_view bytes) {
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < key_size; ++i) {
    halves[i / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << i % 8 * 8;
  }
  return {halves[0], halves[1]};
}

std::string checksum(std::string_view content) {
  PrefixHasher hasher;
  hasher.add("incipit: the thought of a model");
  hasher.add(content);
  std::string bytes;
  append(bytes, hasher.key());
  return bytes;
}

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text.substr(0, text.find_last_not_of('=') + 1)) {
    const int value = sextet(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFFU);
  }
  return bytes;
}

}  // namespace

std::string sign_thought(std::string_view thought, const PrefixKey& bound_to, bool was_shown) {
  std::string content;
  append(content, bound_to);
  content += was_shown ? '\1' : '\0';
  content += thought;
  return base64(version + checksum(content) + content);
}

std::optional<SignedThought> read_signature(std::string_view signature) {
  const auto bytes = from_base64(signature);
  if (!bytes || bytes->size() < head_size || bytes->front() != version) return std::nullopt;
  const std::string_view content = std::string_view(*bytes).substr(1 + key_size);
  SignedThought result;
  result.bound_to = key_at(content);
  result.was_shown = content[key_size] != '\0';
  result.thought = content.substr(key_size + 1);
  // One spelling only: neither another checksum nor other padding.
  if (sign_thought(result.thought, result.bound_to, result.was_shown) != signature) {
    return std::nullopt;
  }
  return result;
}

}  // namespace incipit::gateway
