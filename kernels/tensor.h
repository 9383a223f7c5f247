// Element types of weights as model files hold them, and how many bytes a row of each takes.
// Block layouts are those of the GGUF specification (ggml "type" numbers in brackets).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace incipit::kernels {

enum class DType : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

struct DTypeInfo {
  std::string_view name;  // "Q4_1", as GGUF tools print it
  int gguf_type;          // the number in a GGUF tensor header
  int block_elements;     // elements that share a scale; 1 for plain floats
  int block_bytes;        // bytes of one such block
};

[[nodiscard]] const DTypeInfo& info(DType dtype) noexcept;

// The element type of a GGUF tensor header; empty when this build cannot read it.
[[nodiscard]] std::optional<DType> dtype_from_gguf(std::uint32_t gguf_type) noexcept;

// Bytes of one row of `cols` elements. `cols` must be a multiple of `block_elements`.
[[nodiscard]] std::size_t row_bytes(DType dtype, std::int64_t cols) noexcept;

// A matrix as a file holds it: row-major, `rows` x `cols`, in host memory that outlives the view.
// A vector is one row.
struct HostTensor {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

// Decodes one row to float32, exactly as the format defines it. The specification for every other
// path that reads weights.
void dequantize_row(DType dtype, const void* row, float* out, std::int64_t cols);

}  // namespace incipit::kernels
