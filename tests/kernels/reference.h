// Independent float64 arithmetic for the kernels' tests, and random data to feed both.
#pragma once

#include "kernels/backend.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace incipit::kernels::test {

constexpr DType all_dtypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                DType::q4_k, DType::q5_k, DType::q6_k};

inline std::unique_ptr<Backend> backend_at(const std::string& level, int threads = 1) {
  return make_backend("cpu", {.threads = threads, .max_isa = level});
}

// Owns the bytes of a random matrix.
struct Matrix {
  std::vector<std::uint8_t> bytes;
  HostTensor tensor;

  // Row `row` in float32, as the format defines it.
  [[nodiscard]] std::vector<float> row(std::int64_t row) const {
    std::vector<float> out(static_cast<std::size_t>(tensor.cols));
    dequantize_row(
        tensor.dtype,
        bytes.data() + static_cast<std::size_t>(row) * row_bytes(tensor.dtype, tensor.cols),
        out.data(), tensor.cols);
    return out;
  }
};

inline std::uint16_t half_bits(std::mt19937& random) {
  // A normal half of magnitude 2^-8 to 2^-4, either sign.
  return static_cast<std::uint16_t>(((random() & 1U) << 15) | ((7 + random() % 4) << 10)
                                    | (random() & 0x3ffU));
}

inline Matrix random_matrix(DType dtype, std::int64_t rows, std::int64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.05F);
  Matrix matrix;
  matrix.bytes.resize(static_cast<std::size_t>(rows) * row_bytes(dtype, cols));
  const auto elements = static_cast<std::size_t>(rows * cols);
  if (dtype == DType::f32) {
    for (std::size_t i = 0; i < elements; ++i) {
      const float value = normal(random);
      std::memcpy(matrix.bytes.data() + 4 * i, &value, 4);
    }
  } else if (dtype == DType::f16) {
    for (std::size_t i = 0; i < elements; ++i) {
      const std::uint16_t bits = half_bits(random);
      std::memcpy(matrix.bytes.data() + 2 * i, &bits, 2);
    }
  } else if (dtype == DType::bf16) {
    for (std::size_t i = 0; i < elements; ++i) {
      const float value = normal(random);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      const auto upper = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(matrix.bytes.data() + 2 * i, &upper, 2);
    }
  } else {
    for (std::uint8_t& byte : matrix.bytes)
      byte = static_cast<std::uint8_t>(random());
    const bool two = dtype == DType::q4_1 || dtype == DType::q5_1 || dtype == DType::q4_k
                     || dtype == DType::q5_k;
    const std::size_t at = dtype == DType::q6_k ? 208 : 0;
    const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
    for (std::size_t begin = 0; begin < matrix.bytes.size(); begin += block) {
      for (std::size_t i = 0; i < (two ? 2U : 1U); ++i) {
        const std::uint16_t bits = half_bits(random);
        std::memcpy(matrix.bytes.data() + begin + at + 2 * i, &bits, 2);
      }
    }
  }
  matrix.tensor = {matrix.bytes.data(), dtype, rows, cols};
  return matrix;
}

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float deviation = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> out(count);
  for (float& value : out)
    value = normal(random);
  return out;
}

inline Rows rows_of(std::vector<float>& data, int rows, int cols) {
  return {data.data(), rows, cols};
}

inline bool same_bits(const float* a, const float* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

inline float bf16_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, 4);
  return value;
}

// The nearest value with eight significant bits, ties to even. Finite, normal values only.
inline float rounded_to_bf16(float value) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

}  // namespace incipit::kernels::test
