#include "gateway/model/safetensors_file.h"

#include "gateway/model/json_object.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace incipit::gateway {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t max_header = 100'000'000;  // the format's own limit

[[noreturn]] void fail(const std::string& origin, std::size_t offset, const std::string& problem) {
  throw std::runtime_error(origin + ": at byte " + std::to_string(offset) + ": " + problem);
}

std::string_view header_text(std::span<const std::byte> bytes, const std::string& origin) {
  if (bytes.size() < length_bytes) {
    fail(
        origin, 0,
        "the file ends inside the header length (" + std::to_string(bytes.size()) + " of 8 bytes)");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::size_t left = bytes.size() - length_bytes;
  if (length > max_header) {
    fail(origin, 0,
         "a header of " + std::to_string(length)
             + " bytes is more than the format allows; this is no safetensors file");
  }
  if (length > left) {
    fail(origin, 0,
         "the header claims " + std::to_string(length) + " bytes, but only " + std::to_string(left)
             + " are left in the file (is it truncated?)");
  }
  return {reinterpret_cast<const char*>(bytes.data()) + length_bytes, length};
}

std::vector<std::int64_t> read_shape(const JsonObject& entry) {
  const auto dimensions = entry.array("shape");
  if (!dimensions) entry.fail("shape", "is missing");
  std::vector<std::int64_t> shape;
  for (const simdjson::dom::element dimension : *dimensions) {
    std::int64_t value = 0;
    if (dimension.get(value) != simdjson::SUCCESS || value < 0) {
      entry.fail("shape", "holds something other than a size");
    }
    shape.push_back(value);
  }
  return shape;
}

}  // namespace

std::map<std::string, SafetensorsEntry> read_safetensors_header(std::span<const std::byte> bytes,
                                                                const std::string& origin) {
  const std::string_view header = header_text(bytes, origin);
  const JsonDocument document(header, origin + ": header (bytes 8 to "
                                          + std::to_string(length_bytes + header.size()) + ")");
  const std::size_t data = length_bytes + header.size();
  const std::size_t data_bytes = bytes.size() - data;

  std::map<std::string, SafetensorsEntry> entries;
  std::vector<std::pair<std::size_t, const std::string*>> order;
  for (const auto& member : document.root().members()) {
    if (member.key == "__metadata__") continue;
    const std::string name(member.key);
    simdjson::dom::object object;
    if (member.value.get(object) != simdjson::SUCCESS) {
      document.root().fail(name, "is not an object");
    }
    const JsonObject entry(object, document.root().where() + ": tensor " + name);
    const auto dtype = entry.text("dtype");
    if (!dtype) entry.fail("dtype", "is missing");
    const auto offsets = entry.array("data_offsets");
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (!offsets || offsets->size() != 2 || offsets->at(0).get(begin) != simdjson::SUCCESS
        || offsets->at(1).get(end) != simdjson::SUCCESS || begin > end) {
      entry.fail("data_offsets", "is not a pair of offsets in order");
    }
    if (end > data_bytes) {
      fail(origin, data,
           "tensor " + name + " needs data bytes " + std::to_string(begin) + " to "
               + std::to_string(end) + ", but the file holds only " + std::to_string(data_bytes)
               + " (is it truncated?)");
    }
    SafetensorsEntry read{std::string(*dtype), read_shape(entry),
                          bytes.subspan(data + begin, end - begin), data + begin};
    const auto [place, is_new] = entries.emplace(name, std::move(read));
    if (!is_new) document.root().fail(name, "occurs twice");
    order.emplace_back(begin, &place->first);
  }

  std::sort(order.begin(), order.end());
  std::size_t free_from = data;
  const std::string* previous = nullptr;
  for (const auto& [begin, name] : order) {
    const SafetensorsEntry& entry = entries.at(*name);
    if (entry.file_offset < free_from && !entry.bytes.empty()) {
      fail(origin, entry.file_offset, "tensor " + *name + " overlaps tensor " + *previous);
    }
    if (!entry.bytes.empty()) {
      free_from = entry.file_offset + entry.bytes.size();
      previous = name;
    }
  }
  return entries;
}

}  // namespace incipit::gateway
