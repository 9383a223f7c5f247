#include "tests/kernels/reference.h"

#include <doctest/doctest.h>

#include <cmath>

namespace incipit::kernels::test {

TEST_CASE("rms_norm matches float64 for every level and ragged width") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level, 2);
    for (const int cols : {1, 15, 16, 17, 33, 576}) {
      for (const int rows : {1, 3, 65}) {
        auto x = random_floats(static_cast<std::size_t>(rows) * cols, 1, 3.0F);
        auto weight = random_floats(cols, 2);
        std::vector<float> y(x.size());
        backend->rms_norm(rows_of(x, rows, cols), weight.data(), 1e-5F, rows_of(y, rows, cols));
        auto in_place = x;
        backend->rms_norm(rows_of(in_place, rows, cols), weight.data(), 1e-5F,
                          rows_of(in_place, rows, cols));
        CHECK(same_bits(y.data(), in_place.data(), y.size()));
        for (int t = 0; t < rows; ++t) {
          const float* row = x.data() + static_cast<std::size_t>(t) * cols;
          double squares = 0;
          for (int i = 0; i < cols; ++i)
            squares += static_cast<double>(row[i]) * row[i];
          const double inverse = 1 / std::sqrt(squares / cols + 1e-5);
          for (int i = 0; i < cols; ++i) {
            const double expected = row[i] * inverse * weight[i];
            CHECK(y[static_cast<std::size_t>(t) * cols + i]
                  == doctest::Approx(expected).epsilon(1e-6));
          }
        }
      }
    }
  }
}

TEST_CASE("gated_activation matches float64 for every level, and saturates cleanly") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level);
    for (const int cols : {1, 15, 17, 64, 100}) {
      auto x = random_floats(static_cast<std::size_t>(2) * 2 * cols, 1, 4.0F);
      x[0] = -1000.0F;
      x[static_cast<std::size_t>(2) * cols] = 1000.0F;
      for (const Activation activation : {Activation::silu, Activation::gelu_tanh}) {
        std::vector<float> y(static_cast<std::size_t>(2) * cols);
        backend->gated_activation(rows_of(x, 2, 2 * cols), activation, rows_of(y, 2, cols));
        for (int t = 0; t < 2; ++t) {
          for (int i = 0; i < cols; ++i) {
            const double gate = x[static_cast<std::size_t>(t) * 2 * cols + i];
            const double up = x[static_cast<std::size_t>(t) * 2 * cols + cols + i];
            const double activated =
                activation == Activation::silu
                    ? gate / (1 + std::exp(-gate))
                    : 0.5 * gate
                          * (1
                             + std::tanh(std::sqrt(2 / M_PI)
                                         * (gate + 0.044715 * gate * gate * gate)));
            const double got = y[static_cast<std::size_t>(t) * cols + i];
            CHECK(std::fabs(got - activated * up)
                  <= 2e-6 * std::fabs(activated * up) + 1e-6 * std::fabs(up));
          }
        }
      }
    }
  }
}

TEST_CASE("rms_norm, activation and add have the same bits at every level") {
  const int rows = 5;
  const int cols = 77;
  const auto x = random_floats(static_cast<std::size_t>(rows) * 2 * cols, 1, 5.0F);
  auto weight = random_floats(static_cast<std::size_t>(2) * cols, 2);
  std::vector<float> expected;
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level);
    auto normed = x;
    backend->rms_norm(rows_of(normed, rows, 2 * cols), weight.data(), 1e-6F,
                      rows_of(normed, rows, 2 * cols));
    auto sum = x;
    backend->add(rows_of(sum, rows, 2 * cols), rows_of(normed, rows, 2 * cols));
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(sum[i] == x[i] + normed[i]);
    std::vector<float> all = normed;
    for (const Activation activation : {Activation::silu, Activation::gelu_tanh}) {
      std::vector<float> y(static_cast<std::size_t>(rows) * cols);
      backend->gated_activation(rows_of(sum, rows, 2 * cols), activation, rows_of(y, rows, cols));
      all.insert(all.end(), y.begin(), y.end());
    }
    if (expected.empty()) expected = all;
    CHECK(same_bits(all.data(), expected.data(), all.size()));
  }
}

TEST_CASE("gather_rows copies the named rows in order") {
  auto backend = backend_at("");
  std::vector<float> x = {0, 1, 10, 11, 20, 21};
  std::vector<float> y(8);
  const std::int32_t rows[] = {2, 0, 2, 1};
  backend->gather_rows(rows_of(x, 3, 2), rows, rows_of(y, 4, 2));
  CHECK(y == std::vector<float>{20, 21, 0, 1, 20, 21, 10, 11});
}

TEST_CASE("buffers are zeroed and keep what is uploaded") {
  auto backend = backend_at("");
  auto buffer = backend->allocate(100);
  REQUIRE(buffer->size() == 100);
  const auto* bytes = static_cast<const unsigned char*>(buffer->data());
  for (int i = 0; i < 100; ++i)
    CHECK(bytes[i] == 0);
  const int sent[2] = {7, 8};
  int received[2] = {};
  backend->upload(sent, buffer->data(), sizeof sent);
  backend->download(buffer->data(), received, sizeof received);
  CHECK(received[0] == 7);
  CHECK(received[1] == 8);
  CHECK(backend->allocate(0)->size() == 0);
}

}  // namespace incipit::kernels::test
