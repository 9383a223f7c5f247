// The structure of a GGUF file (versions 2 and 3): metadata entries and tensor extents, all checked
// against the size of the file before anything is used. What they mean is gguf.cpp's business.
#pragma once

#include "gateway/model/loaded_checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

class GgufCursor;

class GgufFile {
 public:
  // `bytes` outlives the object; `origin` names the file in messages. Throws std::runtime_error
  // with the byte offset of the first thing that is wrong.
  GgufFile(std::span<const std::byte> bytes, std::string origin);

  // Metadata by key; empty when the key is absent. A value of another kind, or one that does not
  // fit, throws.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  [[nodiscard]] std::optional<std::vector<float>> floats(std::string_view key) const;
  [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string_view key) const;
  [[nodiscard]] bool is_array(std::string_view key) const;

  [[nodiscard]] const TensorMap& tensors() const { return tensors_; }

  [[nodiscard]] const std::string& origin() const { return origin_; }

  // Throws std::runtime_error about the entry `key`.
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  struct Value {
    std::uint32_t type = 0;  // of the value, or of the elements of an array
    bool is_array = false;
    std::size_t count = 1;   // elements
    std::size_t offset = 0;  // of the first element in the file
  };
  struct Described;

  void read_metadata(GgufCursor& cursor, std::uint64_t count);
  void read_tensors(GgufCursor& cursor, std::uint64_t count);
  static Described read_tensor(GgufCursor& cursor, std::uint64_t index);
  void place_tensors(const GgufCursor& cursor, std::vector<Described>& described,
                     std::uint64_t data, std::uint64_t alignment);
  static Value read_value(GgufCursor& cursor, std::string_view key);
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] const Value* find_scalar(std::string_view key) const;
  [[nodiscard]] const Value* find_array(std::string_view key) const;
  [[nodiscard]] std::int64_t integer_at(std::string_view key, std::uint32_t type,
                                        std::size_t offset) const;
  [[nodiscard]] double number_at(std::string_view key, std::uint32_t type,
                                 std::size_t offset) const;

  std::span<const std::byte> bytes_;
  std::string origin_;
  std::map<std::string, Value, std::less<>> metadata_;
  TensorMap tensors_;
};

}  // namespace incipit::gateway
