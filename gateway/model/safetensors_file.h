// One .safetensors file: its header, checked, and where each tensor lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace incipit::gateway {

struct SafetensorsEntry {
  std::string dtype;                 // "BF16", as the file spells it
  std::vector<std::int64_t> shape;   // outermost first
  std::span<const std::byte> bytes;  // inside the file; not checked against dtype and shape
  std::size_t file_offset = 0;
};

// Throws std::runtime_error that names `origin`, the byte offset and the problem when the header is
// broken or a tensor lies outside the file or over another.
[[nodiscard]] std::map<std::string, SafetensorsEntry> read_safetensors_header(
    std::span<const std::byte> bytes, const std::string& origin);

}  // namespace incipit::gateway
