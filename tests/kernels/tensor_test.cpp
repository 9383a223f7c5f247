#include "kernels/tensor.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace incipit::kernels {
namespace {

std::uint32_t next_u32(const std::vector<char>& bytes, std::size_t& at) {
  std::uint32_t value = 0;
  REQUIRE(at + 4 <= bytes.size());
  std::memcpy(&value, bytes.data() + at, 4);
  at += 4;
  return value;
}

}  // namespace

TEST_CASE("rows decode to the bits that the reference implementation of the format gives") {
  std::ifstream file(INCIPIT_TEST_DATA "/kernels/dequantize.bin", std::ios::binary);
  REQUIRE(file.is_open());
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  int records = 0;
  bool seen[32] = {};
  while (at < bytes.size()) {
    const std::uint32_t type = next_u32(bytes, at);
    const std::uint32_t elements = next_u32(bytes, at);
    const std::uint32_t size = next_u32(bytes, at);
    const auto dtype = dtype_from_gguf(type);
    REQUIRE(dtype.has_value());
    CAPTURE(info(*dtype).name);
    REQUIRE(row_bytes(*dtype, elements) == size);
    REQUIRE(at + size + std::size_t{4} * elements <= bytes.size());
    std::vector<float> expected(elements);
    std::memcpy(expected.data(), bytes.data() + at + size, std::size_t{4} * elements);
    std::vector<float> decoded(elements);
    dequantize_row(*dtype, bytes.data() + at, decoded.data(), elements);
    CHECK(std::memcmp(decoded.data(), expected.data(), std::size_t{4} * elements) == 0);
    at += size + std::size_t{4} * elements;
    seen[type] = true;
    ++records;
  }
  CHECK(records == 14);
  for (const int type : {1, 2, 3, 6, 7, 8, 12, 13, 14})
    CHECK(seen[type]);
}

TEST_CASE("plain floats decode exactly") {
  const float values[] = {0.0F, -1.5F, 3.25e-20F, 65504.0F};
  float out[4];
  dequantize_row(DType::f32, values, out, 4);
  CHECK(std::memcmp(values, out, sizeof out) == 0);
  const std::uint16_t bf16[] = {0x3f80, 0xc020, 0x0000, 0x7f7f};
  dequantize_row(DType::bf16, bf16, out, 4);
  CHECK(out[0] == 1.0F);
  CHECK(out[1] == -2.5F);
  CHECK(out[2] == 0.0F);
  CHECK(out[3] == 0x1.fep127F);
}

TEST_CASE("the type table has the numbers and block sizes of the GGUF specification") {
  CHECK(info(DType::q4_1).name == "Q4_1");
  CHECK(info(DType::q6_k).name == "Q6_K");
  CHECK(dtype_from_gguf(0) == DType::f32);
  CHECK(dtype_from_gguf(1) == DType::f16);
  CHECK(dtype_from_gguf(30) == DType::bf16);
  CHECK(dtype_from_gguf(13) == DType::q5_k);
  CHECK_FALSE(dtype_from_gguf(9).has_value());   // Q8_1
  CHECK_FALSE(dtype_from_gguf(10).has_value());  // Q2_K
  CHECK_FALSE(dtype_from_gguf(4000).has_value());
  CHECK(row_bytes(DType::q8_0, 576) == 612);
  CHECK(row_bytes(DType::q4_1, 64) == 40);
  CHECK(row_bytes(DType::q4_k, 512) == 288);
  CHECK(row_bytes(DType::q6_k, 256) == 210);
  CHECK(row_bytes(DType::f16, 7) == 14);
}

}  // namespace incipit::kernels
