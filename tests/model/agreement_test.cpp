#include "reference_forward.h"
#include "runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace incipit::test {
namespace {

// Root mean square of the difference, relative to that of the reference.
double relative_error(const Logits& ours, const std::vector<std::vector<double>>& reference) {
  double difference = 0;
  double magnitude = 0;
  std::size_t i = 0;
  for (const auto& row : reference) {
    for (const double expected : row) {
      difference += std::pow(ours[i++] - expected, 2);
      magnitude += expected * expected;
    }
  }
  REQUIRE(i == ours.size());
  return std::sqrt(difference / magnitude);
}

void check_against_reference(const RandomModel& model) {
  CAPTURE(model.architecture);
  const TemporaryDirectory directory;
  const Tokens tokens = random_tokens(50, model.vocab, 3);
  const auto reference = reference_logits(model, tokens);
  // Activations are rounded to bf16 (2^-9) before each product; a wrong formula costs far more.
  constexpr double bound = 0.02;
  CHECK(relative_error(Runner(*as_safetensors(directory, model)).run(tokens, 0, blocks_from(0)),
                       reference)
        < bound);
  if (model.llama3_scaling) return;  // in GGUF a tensor, tested with the file format
  CHECK(relative_error(Runner(*as_gguf(directory, model)).run(tokens, 0, blocks_from(0)), reference)
        < bound);
}

TEST_CASE("llama agrees with a double-precision reference from both file formats") {
  check_against_reference(model_of("llama"));
}

TEST_CASE("qwen2 agrees with the reference: biases on q, k and v") {
  check_against_reference(model_of("qwen2"));
}

TEST_CASE("qwen3 agrees with the reference: head norms and its own head size") {
  check_against_reference(model_of("qwen3"));
}

TEST_CASE("gemma3 agrees with the reference: windows, two RoPE bases, four norms, tied head") {
  check_against_reference(model_of("gemma3"));
}

TEST_CASE("llama with a window on every layer agrees with the reference") {
  RandomModel model = model_of("llama");
  model.sliding_window = 7;
  check_against_reference(model);
}

TEST_CASE("llama with the RoPE scaling of Llama 3 agrees with the reference") {
  RandomModel model = model_of("llama");
  model.llama3_scaling = true;
  check_against_reference(model);
  // The bound is tight enough to tell the scaling from none.
  const TemporaryDirectory directory;
  const auto checkpoint = as_safetensors(directory, model);
  model.llama3_scaling = false;
  const Tokens tokens = random_tokens(50, model.vocab, 3);
  CHECK(relative_error(Runner(*checkpoint).run(tokens, 0, blocks_from(0)),
                       reference_logits(model, tokens))
        > 0.1);
}

TEST_CASE("gemma3 and qwen weights give the same bits from GGUF and safetensors") {
  for (const char* architecture : {"gemma3", "qwen2", "qwen3"}) {
    CAPTURE(architecture);
    const RandomModel model = model_of(architecture);
    const TemporaryDirectory directory;
    const Tokens tokens = random_tokens(40, model.vocab, 4);
    CHECK(same_bits(Runner(*as_gguf(directory, model)).run(tokens, 0, blocks_from(0)),
                    Runner(*as_safetensors(directory, model)).run(tokens, 0, blocks_from(0))));
  }
}

TEST_CASE("llama weights give the same logits from GGUF, permuted, and from safetensors") {
  const RandomModel model = model_of("llama");
  const TemporaryDirectory directory;
  const Tokens tokens = random_tokens(40, model.vocab, 4);
  const Logits a = Runner(*as_gguf(directory, model)).run(tokens, 0, blocks_from(0));
  const Logits b = Runner(*as_safetensors(directory, model)).run(tokens, 0, blocks_from(0));
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  // The sums q·k run in another order; their last bits may flip a bf16 rounding further on.
  CHECK(largest < 0.02);
}

}  // namespace
}  // namespace incipit::test
