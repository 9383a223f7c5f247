// The tensor table of a GGUF file: read, checked, and placed in the mapped data.
#include "gateway/model/architecture.h"
#include "gateway/model/gguf_cursor.h"
#include "gateway/model/gguf_file.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace incipit::gateway {
namespace {

constexpr std::int64_t default_alignment = 32;
constexpr std::uint32_t max_dimensions = 4;

}  // namespace

// A tensor as the header describes it.
struct GgufFile::Described {
  std::string_view name;
  std::size_t described_at = 0;  // in the file
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  kernels::DType dtype = kernels::DType::f32;
  std::uint64_t offset = 0;  // in the data section
  std::uint64_t bytes = 0;
};

GgufFile::Described GgufFile::read_tensor(GgufCursor& cursor, std::uint64_t index) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  Described tensor;
  tensor.described_at = cursor.offset();
  tensor.name = cursor.text("the name of tensor " + std::to_string(index));
  const std::string what = "tensor " + in_quotes(tensor.name);
  const auto fail = [&](const std::string& problem) {
    cursor.fail(tensor.described_at, what + " " + problem);
  };
  const auto dimensions = cursor.read<std::uint32_t>(what);
  if (dimensions < 1 || dimensions > max_dimensions) {
    fail("has " + std::to_string(dimensions) + " dimensions, not 1 to 4");
  }
  tensor.cols = cursor.read<std::uint64_t>(what);
  unsigned __int128 product = 1;  // of two numbers below 2^64 each: never overflows
  for (std::uint32_t d = 1; d < dimensions; ++d) {
    product *= cursor.read<std::uint64_t>(what);
    if (product > most) fail("has an impossible shape");
  }
  if (tensor.cols == 0 || tensor.cols > most || product == 0) fail("has an impossible shape");
  tensor.rows = static_cast<std::uint64_t>(product);

  const auto type = cursor.read<std::uint32_t>(what);
  tensor.offset = cursor.read<std::uint64_t>(what);
  const std::optional<kernels::DType> dtype = kernels::dtype_from_gguf(type);
  if (!dtype) {
    fail("has the tensor type number " + std::to_string(type)
         + ", which is not supported; supported are " + supported_dtypes());
  }
  tensor.dtype = *dtype;
  const kernels::DTypeInfo& format = kernels::info(*dtype);
  const auto block = static_cast<std::uint64_t>(format.block_elements);
  if (tensor.cols % block != 0) {
    fail("has rows of " + std::to_string(tensor.cols) + " elements, which is no whole number of "
         + std::string(format.name) + " blocks");
  }
  const unsigned __int128 row = static_cast<unsigned __int128>(tensor.cols / block)
                                * static_cast<std::uint64_t>(format.block_bytes);
  if (row > most || row * tensor.rows > most - std::min(tensor.offset, most)) {
    fail("is larger than any file");
  }
  tensor.bytes = static_cast<std::uint64_t>(row) * tensor.rows;
  return tensor;
}

void GgufFile::read_tensors(GgufCursor& cursor, std::uint64_t count) {
  const std::int64_t alignment = integer("general.alignment").value_or(default_alignment);
  if (alignment < 8 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0) {
    fail("general.alignment",
         "is " + std::to_string(alignment) + "; it must be a power of two between 8 and 1048576");
  }
  std::vector<Described> described;
  for (std::uint64_t i = 0; i < count; ++i)
    described.push_back(read_tensor(cursor, i));
  const auto step = static_cast<std::uint64_t>(alignment);
  place_tensors(cursor, described, (cursor.offset() + step - 1) / step * step, step);
}

void GgufFile::place_tensors(const GgufCursor& cursor, std::vector<Described>& described,
                             std::uint64_t data, std::uint64_t alignment) {
  const std::uint64_t data_bytes = data < bytes_.size() ? bytes_.size() - data : 0;
  std::sort(described.begin(), described.end(),
            [](const Described& a, const Described& b) { return a.offset < b.offset; });
  std::uint64_t free_from = 0;
  std::string_view previous;
  for (const Described& tensor : described) {
    const auto fail = [&](const std::string& problem) {
      cursor.fail(tensor.described_at, "tensor " + in_quotes(tensor.name) + " " + problem);
    };
    const std::uint64_t end = tensor.offset + tensor.bytes;
    if (end > data_bytes) {
      fail("needs bytes " + std::to_string(data + tensor.offset) + " to "
           + std::to_string(data + end) + ", but the file ends at byte "
           + std::to_string(bytes_.size()) + " (is it truncated?)");
    }
    if (tensor.offset % alignment != 0) {
      fail("begins at data offset " + std::to_string(tensor.offset)
           + ", which is not a multiple of the alignment " + std::to_string(alignment));
    }
    if (tensor.offset < free_from) fail("overlaps tensor " + in_quotes(previous));
    const kernels::HostTensor view{bytes_.data() + data + tensor.offset, tensor.dtype,
                                   static_cast<std::int64_t>(tensor.rows),
                                   static_cast<std::int64_t>(tensor.cols)};
    if (!tensors_.emplace(tensor.name, view).second) fail("occurs twice");
    free_from = end;
    previous = tensor.name;
  }
}

}  // namespace incipit::gateway
