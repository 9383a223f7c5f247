#include "gateway/model/checkpoint.h"
#include "kernels/backend.h"
#include "temporary_directory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace incipit::test {
namespace {

using gateway::make_tiny_checkpoint;

// Greedy text of `count` bytes after `prompt`.
std::string generate(const gateway::Checkpoint& checkpoint, const std::string& prompt, int count) {
  const auto backend = kernels::make_backend("cpu", {1, ""});
  const auto model = gateway::load_model(checkpoint, *backend, 2048);
  model->allocate_kv(32, 64);
  std::vector<std::int32_t> table(32);
  std::iota(table.begin(), table.end(), 0);
  gateway::Batch batch;
  for (const char c : prompt)
    batch.tokens.push_back(static_cast<unsigned char>(c));
  std::string text;
  int context = 0;
  std::vector<float> logits(static_cast<std::size_t>(model->info().vocab_size));
  while (static_cast<int>(text.size()) < count) {
    const auto rows = static_cast<int>(batch.tokens.size());
    batch.spans = {{0, rows, context, table.data()}};
    batch.logits_rows = {rows - 1};
    model->forward(batch, logits);
    context += rows;
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    REQUIRE(best < 256);
    text += static_cast<char>(best);
    batch.tokens = {static_cast<std::int32_t>(best)};
  }
  return text;
}

TEST_CASE("the tiny model has bytes, then its special tokens, and 32k positions") {
  const auto checkpoint = gateway::open_checkpoint("tiny");
  const gateway::TokenizerSpec& spec = checkpoint->tokenizer();
  CHECK(spec.kind == gateway::TokenizerSpec::Kind::bytes);
  REQUIRE(spec.pieces.size() == 261);
  CHECK(spec.pieces[65] == "A");
  CHECK(spec.pieces[256] == "<|end|>");
  CHECK(spec.pieces[257] == "<|system|>");
  CHECK(spec.pieces[258] == "<|user|>");
  CHECK(spec.pieces[259] == "<|assistant|>");
  CHECK(spec.pieces[260] == "<|tools|>");
  CHECK(spec.types[256] == gateway::TokenizerSpec::TokenType::control);
  CHECK(spec.eos == 256);
  CHECK(checkpoint->config().context == 32768);
  CHECK(checkpoint->config().vocab_size == 261);
}

TEST_CASE("the tiny model's weights depend on the seed alone") {
  CHECK(make_tiny_checkpoint(1)->digest() == make_tiny_checkpoint(1)->digest());
  CHECK(make_tiny_checkpoint(1)->digest() != make_tiny_checkpoint(2)->digest());
  // splitmix64 from seed 1 begins 0x910a2dec89025cc1: top byte 0x91 - 128 = 17, but dimension 0 of
  // an embedding is the constant. The second draw is 0xbeeb8da1658eec67: 0xbe - 128 = 62.
  const auto checkpoint = make_tiny_checkpoint(1);
  const auto* embedding = static_cast<const float*>(checkpoint->tensor("token_embd.weight")->data);
  CHECK(embedding[0] == 1.0F);
  CHECK(embedding[1] == 62.0F / 128.0F);
}

TEST_CASE("the tiny model writes lively printable text that depends on all of the prompt") {
  const auto checkpoint = make_tiny_checkpoint();
  const std::string text = generate(*checkpoint, "Hello, who are you?", 400);
  CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  CHECK(std::set<char>(text.begin(), text.end()).size() > 20);
  // No loop: the last 40 characters have not been seen before.
  CHECK(text.find(text.substr(360)) == 360);
  CHECK(generate(*checkpoint, "Hello, who are you?", 400) == text);
  CHECK(generate(*checkpoint, "Jello, who are you?", 40) != text.substr(0, 40));
  CHECK(generate(*make_tiny_checkpoint(2), "Hello, who are you?", 40) != text.substr(0, 40));
}

}  // namespace
}  // namespace incipit::test
