// Writes GGUF files byte by byte, from the format's specification, wrong ones too.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::test {

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void put_text(std::string& bytes, std::string_view text) {
  put(bytes, std::uint64_t{text.size()});
  bytes += text;
}

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t extra_tensors = 0;   // added to the tensor count in the header
  std::uint64_t extra_metadata = 0;  // likewise
  std::size_t alignment = 32;

  void text(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_text(metadata_, value);
  }

  void u32(std::string_view key, std::uint32_t value) {
    begin(key, 4);
    put(metadata_, value);
  }

  void f32(std::string_view key, float value) {
    begin(key, 6);
    put(metadata_, value);
  }

  void boolean(std::string_view key, bool value) {
    begin(key, 7);
    put(metadata_, static_cast<std::uint8_t>(value));
  }

  void texts(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const std::string& value : values)
      put_text(metadata_, value);
  }

  void i32s(std::string_view key, const std::vector<std::int32_t>& values) {
    begin_array(key, 5, values.size());
    for (const std::int32_t value : values)
      put(metadata_, value);
  }

  void f32s(std::string_view key, const std::vector<float>& values) {
    begin_array(key, 6, values.size());
    for (const float value : values)
      put(metadata_, value);
  }

  // An entry whose value the caller spells out.
  void raw(std::string_view key, std::uint32_t type, std::string_view value) {
    begin(key, type);
    metadata_ += value;
  }

  // `dimensions` innermost first, as the format has them.
  void tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions,
              std::uint32_t type, std::string_view bytes) {
    while (data_.size() % alignment != 0)
      data_ += '\0';
    describe(name, dimensions, type, data_.size());
    data_ += bytes;
  }

  // A tensor header alone.
  void describe(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                std::uint32_t type, std::uint64_t offset) {
    put_text(infos_, name);
    put(infos_, static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions)
      put(infos_, dimension);
    put(infos_, type);
    put(infos_, offset);
    ++tensors_;
  }

  void floats(std::string_view name, const std::vector<std::uint64_t>& dimensions,
              const std::vector<float>& values) {
    tensor(name, dimensions, 0,
           {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  [[nodiscard]] std::string build() const {
    std::string bytes = "GGUF";
    put(bytes, version);
    put(bytes, tensors_ + extra_tensors);
    put(bytes, entries_ + extra_metadata);
    bytes += metadata_;
    bytes += infos_;
    while (bytes.size() % alignment != 0)
      bytes += '\0';
    return bytes + data_;
  }

  // Bytes before the tensor data.
  [[nodiscard]] std::size_t header_bytes() const { return build().size() - data_.size(); }

 private:
  void begin(std::string_view key, std::uint32_t type) {
    put_text(metadata_, key);
    put(metadata_, type);
    ++entries_;
  }

  void begin_array(std::string_view key, std::uint32_t element_type, std::size_t count) {
    begin(key, 9);
    put(metadata_, element_type);
    put(metadata_, std::uint64_t{count});
  }

  std::string metadata_, infos_, data_;
  std::uint64_t entries_ = 0, tensors_ = 0;
};

}  // namespace incipit::test
