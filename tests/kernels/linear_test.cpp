#include "tests/kernels/reference.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <span>

namespace incipit::kernels::test {
namespace {

struct Product {
  std::vector<double> value;
  std::vector<double> magnitude;  // Σ|x·w|
};

// The weights that the contract's bound speaks of: exact, but plain floats rounded to bf16.
std::vector<float> packed_row(const Matrix& matrix, std::int64_t row) {
  auto values = matrix.row(row);
  if (matrix.tensor.dtype == DType::f32 || matrix.tensor.dtype == DType::f16) {
    for (float& value : values)
      value = rounded_to_bf16(value);
  }
  return values;
}

Product reference_product(const std::vector<float>& x, int rows, std::span<const Matrix> stacked) {
  const auto cols = static_cast<std::size_t>(stacked.front().tensor.cols);
  Product out;
  std::vector<std::vector<float>> weights;
  for (const Matrix& matrix : stacked) {
    for (std::int64_t row = 0; row < matrix.tensor.rows; ++row)
      weights.push_back(packed_row(matrix, row));
  }
  for (int t = 0; t < rows; ++t) {
    for (const auto& w : weights) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t k = 0; k < cols; ++k) {
        const double product = static_cast<double>(x[t * cols + k]) * w[k];
        sum += product;
        magnitude += std::fabs(product);
      }
      out.value.push_back(sum);
      out.magnitude.push_back(magnitude);
    }
  }
  return out;
}

std::unique_ptr<Weight> pack(Backend& backend, std::span<const Matrix> stacked) {
  std::vector<HostTensor> tensors;
  for (const Matrix& matrix : stacked)
    tensors.push_back(matrix.tensor);
  return backend.pack(tensors);
}

int smallest_cols(DType dtype) {
  return info(dtype).block_elements == 1 ? 33 : info(dtype).block_elements;
}

}  // namespace

TEST_CASE("linear stays within its bound for every level, type and ragged shape") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level);
    for (const DType dtype : all_dtypes) {
      CAPTURE(level);
      CAPTURE(info(dtype).name);
      const int unit = smallest_cols(dtype);
      for (const int n : {1, 15, 16, 17, 33}) {
        for (const int k : {unit, 3 * unit}) {
          const Matrix stacked[] = {random_matrix(dtype, n, k, 1)};
          auto weight = pack(*backend, stacked);
          CHECK(weight->rows() == n);
          CHECK(weight->cols() == k);
          for (const int t : {1, 2, 3, 5, 8, 17, 33}) {
            auto x = random_floats(static_cast<std::size_t>(t) * k, 7 + t);
            const Product expected = reference_product(x, t, stacked);
            std::vector<float> y(static_cast<std::size_t>(t) * n, 99.0F);
            backend->linear(rows_of(x, t, k), *weight, nullptr, false, rows_of(y, t, n));
            bool within = true;
            for (std::size_t i = 0; i < y.size(); ++i) {
              within = within
                       && std::fabs(y[i] - expected.value[i]) <= expected.magnitude[i] / 256 + 1e-6;
            }
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(t);
            CHECK(within);
          }
        }
      }
    }
  }
}

TEST_CASE("inputs of two bf16 numbers bring the error down to 2^-15, row by row the same") {
  for (const std::string& level : cpu_isa_levels()) {
    CAPTURE(level);
    auto backend = backend_at(level);
    const int n = 17;
    const int k = 512;
    const Matrix stacked[] = {random_matrix(DType::q8_0, n, k, 1)};
    auto weight = backend->pack(std::span(&stacked[0].tensor, 1), InputPrecision::two_bf16);
    auto x = random_floats(std::size_t{33} * k, 7);
    const Product expected = reference_product(x, 33, stacked);
    std::vector<float> y(std::size_t{33} * n);
    backend->linear(rows_of(x, 33, k), *weight, nullptr, false, rows_of(y, 33, n));
    for (std::size_t i = 0; i < y.size(); ++i) {
      CHECK(std::fabs(y[i] - expected.value[i]) <= expected.magnitude[i] / 32768 + 1e-6);
    }
    std::vector<float> one(n);
    std::vector<float> first_row(x.begin(), x.begin() + k);
    backend->linear(rows_of(first_row, 1, k), *weight, nullptr, false, rows_of(one, 1, n));
    CHECK(std::memcmp(one.data(), y.data(), n * sizeof(float)) == 0);
  }
}

TEST_CASE("plain float weights may have any number of columns") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level);
    for (const int k : {1, 2, 15, 17, 31, 63, 65}) {
      const Matrix stacked[] = {random_matrix(DType::f32, 5, k, 3)};
      auto weight = pack(*backend, stacked);
      auto x = random_floats(static_cast<std::size_t>(6) * k, 4);
      const Product expected = reference_product(x, 6, stacked);
      std::vector<float> y(30);
      backend->linear(rows_of(x, 6, k), *weight, nullptr, false, rows_of(y, 6, 5));
      for (std::size_t i = 0; i < y.size(); ++i) {
        CHECK(std::fabs(y[i] - expected.value[i]) <= expected.magnitude[i] / 256 + 1e-6);
      }
    }
  }
}

TEST_CASE("stacked tensors of different types give dense outputs in order, with bias and sum") {
  for (const std::string& level : cpu_isa_levels()) {
    CAPTURE(level);
    auto backend = backend_at(level, 2);
    const int k = 256;
    const Matrix stacked[] = {
        random_matrix(DType::q4_1, 19, k, 1), random_matrix(DType::q6_k, 5, k, 2),
        random_matrix(DType::bf16, 16, k, 3), random_matrix(DType::q8_0, 1, k, 4)};
    const int n = 41;
    auto weight = pack(*backend, stacked);
    REQUIRE(weight->rows() == n);
    for (const int t : {1, 7, 20}) {
      auto x = random_floats(static_cast<std::size_t>(t) * k, 5);
      auto bias = random_floats(n, 6);
      const auto before = random_floats(static_cast<std::size_t>(t) * n, 7);
      auto y = before;
      const Product expected = reference_product(x, t, stacked);
      backend->linear(rows_of(x, t, k), *weight, bias.data(), true, rows_of(y, t, n));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double sum = expected.value[i] + bias[i % n] + before[i];
        CHECK(std::fabs(y[i] - sum) <= expected.magnitude[i] / 256 + 1e-5);
      }
    }
  }
}

TEST_CASE("an output row has the same bits for any number of rows, threads and any level") {
  const int k = 512;
  const Matrix stacked[] = {
      random_matrix(DType::q4_1, 50, k, 1), random_matrix(DType::q6_k, 33, k, 2),
      random_matrix(DType::q4_k, 17, k, 3), random_matrix(DType::q5_0, 16, k, 4),
      random_matrix(DType::f32, 31, k, 5)};
  const int n = 147;
  const int most = 300;
  auto x = random_floats(static_cast<std::size_t>(most) * k, 9);
  // Values around which flushing of subnormals and the size of exponents show.
  for (int i = 0; i < k; ++i)
    x[3 * k + i] *= 1e-37F;
  for (int i = 0; i < k; i += 3)
    x[5 * k + i] *= 1e15F;
  std::vector<float> expected(static_cast<std::size_t>(most) * n);
  {
    auto backend = backend_at("plain");
    auto weight = pack(*backend, stacked);
    for (int t = 0; t < most; ++t) {
      backend->linear({x.data() + static_cast<std::size_t>(t) * k, 1, k}, *weight, nullptr, false,
                      {expected.data() + static_cast<std::size_t>(t) * n, 1, n});
    }
  }
  for (const std::string& level : cpu_isa_levels()) {
    for (const int threads : {1, 2}) {
      auto backend = backend_at(level, threads);
      CHECK(backend->numerics_profile() == backend_at("plain")->numerics_profile());
      auto weight = pack(*backend, stacked);
      for (const int t : {1, 2, 7, 16, 17, 64, 65, 300}) {
        CAPTURE(level);
        CAPTURE(threads);
        CAPTURE(t);
        std::vector<float> y(static_cast<std::size_t>(t) * n);
        backend->linear({x.data(), t, k}, *weight, nullptr, false, rows_of(y, t, n));
        CHECK(same_bits(y.data(), expected.data(), y.size()));
      }
    }
  }
}

TEST_CASE("embed reads the exact rows back out of the packed matrix") {
  for (const DType dtype : all_dtypes) {
    CAPTURE(info(dtype).name);
    auto backend = backend_at("");
    const int k = info(dtype).block_elements == 1 ? 37 : 512;
    const Matrix tables[] = {random_matrix(dtype, 19, k, 1), random_matrix(DType::bf16, 4, k, 2)};
    auto weight = pack(*backend, tables);
    const std::int32_t ids[] = {18, 0, 5, 16, 22, 18};
    std::vector<float> x(static_cast<std::size_t>(6) * k);
    backend->embed(ids, *weight, 1.0F, rows_of(x, 6, k));
    for (int t = 0; t < 6; ++t) {
      const auto row =
          ids[t] < 19 ? packed_row(tables[0], ids[t]) : packed_row(tables[1], ids[t] - 19);
      for (int i = 0; i < k; ++i) {
        const float got = x[static_cast<std::size_t>(t) * k + i];
        CHECK(same_bits(&got, &row[i], 1));
      }
    }
    std::vector<float> scaled(x.size());
    backend->embed(ids, *weight, 25.25F, rows_of(scaled, 6, k));
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(scaled[i] == x[i] * 25.25F);
  }
}

TEST_CASE("packed 4-bit and 8-bit weights are about the size of their source") {
  auto backend = backend_at("");
  const Matrix q4[] = {random_matrix(DType::q4_1, 64, 1024, 1)};
  CHECK(pack(*backend, q4)->bytes() == q4[0].bytes.size());
  const Matrix q8[] = {random_matrix(DType::q8_0, 64, 1024, 1)};
  CHECK(pack(*backend, q8)->bytes() == q8[0].bytes.size());
  const Matrix q4k[] = {random_matrix(DType::q4_k, 64, 1024, 1)};
  CHECK(pack(*backend, q4k)->bytes() <= q4k[0].bytes.size() * 3 / 2);
}

}  // namespace incipit::kernels::test
