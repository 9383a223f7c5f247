#include "gateway/model/checkpoint.h"
#include "kernels/backend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

namespace incipit::test {
namespace {

// The file in INCIPIT_MODELS, or where the launcher puts it.
std::filesystem::path model_file(const std::string& name) {
  const auto variable = [](const char* key) {
    const char* value = std::getenv(key);
    return std::string(value == nullptr ? "" : value);
  };
  std::filesystem::path folder = variable("INCIPIT_MODELS");
  if (folder.empty()) {
    const std::filesystem::path cache = variable("XDG_CACHE_HOME");
    folder = (cache.empty() ? std::filesystem::path(variable("HOME")) / ".cache" : cache)
             / "incipit" / "models";
  }
  const std::filesystem::path file = folder / name;
  REQUIRE_MESSAGE(std::filesystem::exists(file),
                  file.string() << " is missing; `./incipit test` downloads it");
  return file;
}

TEST_CASE("SmolLM2 says that the capital of France is Paris") {
  const auto checkpoint = gateway::open_gguf(model_file("SmolLM2-135M-Instruct.Q4_1.gguf"));
  CHECK(checkpoint->config().architecture == "llama");
  CHECK(checkpoint->config().layers == 30);
  CHECK(checkpoint->config().vocab_size == 49152);
  CHECK(checkpoint->config().tied_embeddings);
  CHECK(checkpoint->tokenizer().pre == "smollm");
  CHECK_FALSE(checkpoint->tokenizer().add_bos);

  const auto backend = kernels::make_backend("cpu", {});
  const auto model = gateway::load_model(*checkpoint, *backend, 256);
  model->allocate_kv(4, 64);
  const std::vector<std::int32_t> table = {0, 1, 2, 3};
  // <|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n, as the
  // `tokenizers` package encodes it.
  gateway::Batch batch;
  batch.tokens = {1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198};
  std::vector<std::int32_t> answer;
  std::vector<float> logits(49152);
  int context = 0;
  constexpr std::int32_t im_end = 2;
  while (answer.size() < 20 && (answer.empty() || answer.back() != im_end)) {
    const auto rows = static_cast<int>(batch.tokens.size());
    batch.spans = {{0, rows, context, table.data()}};
    batch.logits_rows = {rows - 1};
    model->forward(batch, logits);
    context += rows;
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    answer.push_back(static_cast<std::int32_t>(best));
    batch.tokens = {answer.back()};
  }
  constexpr std::int32_t paris = 7042;  // " Paris"
  CHECK(std::count(answer.begin(), answer.end(), paris) == 1);
  CHECK(answer.back() == im_end);
}

TEST_CASE("Gemma 3's file opens with the constants of its family") {
  const auto checkpoint = gateway::open_gguf(model_file("gemma-3-270m-q4_k_m.gguf"));
  const gateway::ModelConfig& config = checkpoint->config();
  CHECK(config.architecture == "gemma3");
  CHECK(config.layers == 18);
  CHECK(config.hidden == 640);
  CHECK(config.head_dim == 256);
  CHECK(config.vocab_size == 262144);
  CHECK(config.context == 32768);
  CHECK(config.sliding_window == 512);
  CHECK(config.sliding_pattern == 6);
  CHECK(config.rope_base == 1e6);
  CHECK(config.rope_base_local == 1e4);
  CHECK(config.tied_embeddings);
  CHECK(checkpoint->tokenizer().kind == gateway::TokenizerSpec::Kind::sentencepiece);
  CHECK(checkpoint->tokenizer().bos == 2);
  CHECK(checkpoint->tokenizer().add_bos);
  CHECK_FALSE(checkpoint->tokenizer().add_space_prefix);
}

}  // namespace
}  // namespace incipit::test
