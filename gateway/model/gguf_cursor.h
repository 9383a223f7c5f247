// Bounds-checked forward reading of a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace incipit::gateway {

constexpr std::size_t gguf_length_bytes = 8;  // strings and arrays begin with a u64

template <typename T>
T load_scalar(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline std::string in_quotes(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

// Reads forward; every read is checked against the end of the file first.
class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const std::string& origin)
      : bytes_(bytes), origin_(origin) {}

  [[nodiscard]] std::size_t offset() const { return offset_; }

  [[nodiscard]] std::size_t left() const { return bytes_.size() - offset_; }

  [[noreturn]] void fail(std::size_t offset, const std::string& problem) const {
    throw std::runtime_error(origin_ + ": at byte " + std::to_string(offset) + ": " + problem);
  }

  template <typename T>
  T read(std::string_view what) {
    need(sizeof(T), what);
    const T value = load_scalar<T>(bytes_, offset_);
    offset_ += sizeof(T);
    return value;
  }

  std::string_view text(std::string_view what) {
    const auto length = read<std::uint64_t>(what);
    if (length > left()) {
      fail(offset_ - gguf_length_bytes, std::string(what) + " claims " + std::to_string(length)
                                            + " bytes, but only " + std::to_string(left())
                                            + " are left in the file");
    }
    const std::string_view value(reinterpret_cast<const char*>(bytes_.data()) + offset_, length);
    offset_ += length;
    return value;
  }

  void skip(std::size_t count, std::string_view what) {
    need(count, what);
    offset_ += count;
  }

  // Refuses a count of things that cannot fit into the rest of the file.
  void check_count(std::uint64_t count, std::size_t least_bytes, std::string_view what) const {
    if (count <= left() / least_bytes) return;
    fail(offset_ - gguf_length_bytes, std::string(what) + " is " + std::to_string(count)
                                          + ", more than the " + std::to_string(left())
                                          + " bytes left in the file can hold");
  }

 private:
  void need(std::size_t count, std::string_view what) const {
    if (count > left()) {
      fail(offset_, "the file ends inside " + std::string(what) + " (" + std::to_string(count)
                        + " bytes needed, " + std::to_string(left()) + " left)");
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& origin_;
  std::size_t offset_ = 0;
};

}  // namespace incipit::gateway
