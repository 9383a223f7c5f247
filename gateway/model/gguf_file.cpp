#include "gateway/model/gguf_file.h"

#include "gateway/model/gguf_cursor.h"

#include <limits>
#include <stdexcept>
#include <utility>

namespace incipit::gateway {
namespace {

// Metadata value types, numbered as in the GGUF specification.
enum ValueType : std::uint32_t {
  type_u8,
  type_i8,
  type_u16,
  type_i16,
  type_u32,
  type_i32,
  type_f32,
  type_bool,
  type_string,
  type_array,
  type_u64,
  type_i64,
  type_f64,
};

constexpr std::size_t smallest_metadata = 13;  // empty key, type, one byte
constexpr std::size_t smallest_tensor = 32;    // empty name, one dimension, type, offset

// Bytes of a scalar; for strings, the least that one takes; 0 for what is no element type.
std::size_t element_bytes(std::uint32_t type) {
  switch (type) {
    case type_u8:
    case type_i8:
    case type_bool:
      return 1;
    case type_u16:
    case type_i16:
      return 2;
    case type_u32:
    case type_i32:
    case type_f32:
      return 4;
    case type_u64:
    case type_i64:
    case type_f64:
      return 8;
    case type_string:
      return gguf_length_bytes;
    default:
      return 0;
  }
}

}  // namespace

GgufFile::GgufFile(std::span<const std::byte> bytes, std::string origin)
    : bytes_(bytes), origin_(std::move(origin)) {
  GgufCursor cursor(bytes_, origin_);
  const auto magic = cursor.read<std::uint32_t>("the magic number");
  if (std::memcmp(&magic, "GGUF", sizeof magic) != 0) {
    cursor.fail(0, "this is not a GGUF file (it does not begin with \"GGUF\")");
  }
  const auto version = cursor.read<std::uint32_t>("the format version");
  if (version != 2 && version != 3) {
    const bool big_endian = version == 0x02000000U || version == 0x03000000U;
    cursor.fail(4, big_endian ? "this is a big-endian GGUF file; supported are little-endian ones"
                              : "GGUF version " + std::to_string(version)
                                    + " is not supported; supported are 2 and 3");
  }
  const auto tensor_count = cursor.read<std::uint64_t>("the number of tensors");
  cursor.check_count(tensor_count, smallest_tensor, "the number of tensors");
  const auto metadata_count = cursor.read<std::uint64_t>("the number of metadata entries");
  cursor.check_count(metadata_count, smallest_metadata, "the number of metadata entries");
  read_metadata(cursor, metadata_count);
  read_tensors(cursor, tensor_count);
}

void GgufFile::read_metadata(GgufCursor& cursor, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t start = cursor.offset();
    const std::string key(cursor.text("the key of metadata entry " + std::to_string(i)));
    const Value value = read_value(cursor, key);
    if (!metadata_.emplace(key, value).second) {
      cursor.fail(start, "metadata key " + in_quotes(key) + " occurs twice");
    }
  }
}

GgufFile::Value GgufFile::read_value(GgufCursor& cursor, std::string_view key) {
  const std::string what = "metadata entry " + in_quotes(key);
  Value value;
  value.type = cursor.read<std::uint32_t>(what);
  value.is_array = value.type == type_array;
  if (value.is_array) {
    value.type = cursor.read<std::uint32_t>(what);
    value.count = cursor.read<std::uint64_t>(what);
  }
  const std::size_t least = element_bytes(value.type);
  if (least == 0) {
    cursor.fail(cursor.offset(),
                what + " has the unknown value type " + std::to_string(value.type));
  }
  if (value.is_array) cursor.check_count(value.count, least, "the array length of " + what);
  value.offset = cursor.offset();
  if (value.type != type_string) {
    cursor.skip(value.count * least, what);
  } else {
    for (std::size_t i = 0; i < value.count; ++i)
      cursor.text(what);
  }
  return value;
}

const GgufFile::Value* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

const GgufFile::Value* GgufFile::find_scalar(std::string_view key) const {
  const Value* value = find(key);
  if (value != nullptr && value->is_array) fail(key, "is an array, not a single value");
  return value;
}

const GgufFile::Value* GgufFile::find_array(std::string_view key) const {
  const Value* value = find(key);
  if (value != nullptr && !value->is_array) fail(key, "is a single value, not an array");
  return value;
}

void GgufFile::fail(std::string_view key, const std::string& problem) const {
  const Value* value = find(key);
  const std::string where =
      value == nullptr ? "" : "at byte " + std::to_string(value->offset) + ": ";
  throw std::runtime_error(origin_ + ": " + where + "metadata entry " + in_quotes(key) + " "
                           + problem);
}

std::int64_t GgufFile::integer_at(std::string_view key, std::uint32_t type,
                                  std::size_t offset) const {
  switch (type) {
    case type_u8:
      return load_scalar<std::uint8_t>(bytes_, offset);
    case type_i8:
      return load_scalar<std::int8_t>(bytes_, offset);
    case type_u16:
      return load_scalar<std::uint16_t>(bytes_, offset);
    case type_i16:
      return load_scalar<std::int16_t>(bytes_, offset);
    case type_u32:
      return load_scalar<std::uint32_t>(bytes_, offset);
    case type_i32:
      return load_scalar<std::int32_t>(bytes_, offset);
    case type_i64:
      return load_scalar<std::int64_t>(bytes_, offset);
    case type_u64: {
      const auto value = load_scalar<std::uint64_t>(bytes_, offset);
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail(key, "is " + std::to_string(value) + ", which is too large");
      }
      return static_cast<std::int64_t>(value);
    }
    default:
      fail(key, "is not an integer");
  }
}

double GgufFile::number_at(std::string_view key, std::uint32_t type, std::size_t offset) const {
  if (type == type_f32) return load_scalar<float>(bytes_, offset);
  if (type == type_f64) return load_scalar<double>(bytes_, offset);
  return static_cast<double>(integer_at(key, type, offset));
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const Value* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  return integer_at(key, value->type, value->offset);
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const Value* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  return number_at(key, value->type, value->offset);
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const Value* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != type_bool) fail(key, "is not a boolean");
  return load_scalar<std::uint8_t>(bytes_, value->offset) != 0;
}

std::optional<std::string> GgufFile::text(std::string_view key) const {
  const Value* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != type_string) fail(key, "is not a string");
  GgufCursor cursor(bytes_.subspan(value->offset), origin_);
  return std::string(cursor.text(key));
}

std::optional<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  const Value* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  const std::size_t step = element_bytes(value->type);
  std::vector<std::int64_t> list(value->count);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t offset = value->offset + i * step;
    list[i] = value->type == type_bool ? load_scalar<std::uint8_t>(bytes_, offset) != 0
                                       : integer_at(key, value->type, offset);
  }
  return list;
}

std::optional<std::vector<float>> GgufFile::floats(std::string_view key) const {
  const Value* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  const std::size_t step = element_bytes(value->type);
  std::vector<float> list(value->count);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = static_cast<float>(number_at(key, value->type, value->offset + i * step));
  }
  return list;
}

std::optional<std::vector<std::string>> GgufFile::texts(std::string_view key) const {
  const Value* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != type_string) fail(key, "is not an array of strings");
  GgufCursor cursor(bytes_.subspan(value->offset), origin_);
  std::vector<std::string> list;
  list.reserve(value->count);
  for (std::size_t i = 0; i < value->count; ++i)
    list.emplace_back(cursor.text(key));
  return list;
}

bool GgufFile::is_array(std::string_view key) const {
  const Value* value = find(key);
  return value != nullptr && value->is_array;
}

}  // namespace incipit::gateway
