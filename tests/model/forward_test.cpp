#include "runner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace incipit::test {
namespace {

TEST_CASE("a prompt cut into chunks and decoded token by token gives the bits of the whole") {
  for (const char* architecture : {"llama", "gemma3"}) {
    CAPTURE(architecture);
    const RandomModel model = model_of(architecture);
    const TemporaryDirectory directory;
    const auto checkpoint = as_gguf(directory, model);
    const Tokens tokens = random_tokens(150, model.vocab, 5);
    Runner runner(*checkpoint);
    const Logits whole = runner.run(tokens, 0, blocks_from(0));
    Runner chunked(*checkpoint);
    Logits parts;
    int position = 0;
    for (const int rows : {1, 63, 2, 40, 1, 1, 1, 30, 1, 10}) {
      const Tokens part(tokens.begin() + position, tokens.begin() + position + rows);
      const Logits logits = chunked.run(part, position, blocks_from(20));
      parts.insert(parts.end(), logits.begin(), logits.end());
      position += rows;
    }
    REQUIRE(position == 150);
    CHECK(same_bits(whole, parts));
  }
}

TEST_CASE("a batch larger than one pass gives the bits of small batches") {
  RandomModel model = model_of("llama");
  const TemporaryDirectory directory;
  const auto checkpoint = as_gguf(directory, model);
  const Tokens tokens = random_tokens(1300, model.vocab, 6);
  Runner runner(*checkpoint);
  const Logits whole = runner.run(tokens, 0, blocks_from(0));
  Logits parts;
  for (int begin = 0; begin < 1300; begin += 100) {
    const Tokens part(tokens.begin() + begin, tokens.begin() + begin + 100);
    const Logits logits = runner.run(part, begin, blocks_from(100));
    parts.insert(parts.end(), logits.begin(), logits.end());
  }
  CHECK(same_bits(whole, parts));
}

TEST_CASE("sequences in one batch give the bits that each gives alone") {
  const RandomModel model = model_of("gemma3");
  const TemporaryDirectory directory;
  const auto checkpoint = as_gguf(directory, model);
  Runner runner(*checkpoint);
  const int lengths[] = {33, 1, 70, 16};
  std::vector<std::vector<std::int32_t>> tables;
  Batch batch;
  Logits alone;
  for (int i = 0; i < 4; ++i) {
    const Tokens tokens =
        random_tokens(lengths[i], model.vocab, 10 + static_cast<std::uint32_t>(i));
    const Logits logits = Runner(*checkpoint).run(tokens, 0, blocks_from(0));
    alone.insert(alone.end(), logits.begin(), logits.end());
    tables.push_back(blocks_from(60 - 20 * i, 10));
    std::reverse(tables.back().begin(), tables.back().end());
    batch.spans.push_back({static_cast<int>(batch.tokens.size()), lengths[i], 0, nullptr});
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  }
  for (std::size_t i = 0; i < 4; ++i)
    batch.spans[i].block_table = tables[i].data();
  batch.logits_rows.resize(batch.tokens.size());
  std::iota(batch.logits_rows.begin(), batch.logits_rows.end(), 0);
  CHECK(same_bits(runner.forward(batch), alone));
}

TEST_CASE("logits come for the wanted rows only, in order") {
  const RandomModel model = model_of("llama");
  const TemporaryDirectory directory;
  Runner runner(*as_gguf(directory, model));
  const Tokens tokens = random_tokens(700, model.vocab, 8);
  const Logits all = runner.run(tokens, 0, blocks_from(0));
  const auto table = blocks_from(0);
  const Batch batch{tokens, {{0, 700, 0, table.data()}}, {0, 5, 511, 512, 699}};
  const Logits some = runner.forward(batch);
  const auto vocab = static_cast<std::size_t>(model.vocab);
  for (std::size_t i = 0; i < batch.logits_rows.size(); ++i) {
    CHECK(std::memcmp(&some[i * vocab],
                      &all[static_cast<std::size_t>(batch.logits_rows[i]) * vocab],
                      vocab * sizeof(float))
          == 0);
  }
  const Batch none{tokens, {{0, 700, 0, table.data()}}, {}};
  CHECK(runner.forward(none).empty());
}

TEST_CASE("a copied block continues as its original, up to the copied position") {
  const RandomModel model = model_of("gemma3");
  const TemporaryDirectory directory;
  const auto checkpoint = as_gguf(directory, model);
  const Tokens tokens = random_tokens(60, model.vocab, 9);
  const Tokens tail(tokens.begin() + 41, tokens.end());
  Runner runner(*checkpoint);
  runner.run(Tokens(tokens.begin(), tokens.begin() + 46), 0, {0, 1, 2});
  const Logits expected = Runner(*checkpoint).run(tokens, 0, blocks_from(0));
  // Positions 32 to 40 are copied; 41 and on are written anew.
  runner.model().copy_block(2, 7, 9);
  const Logits continued = runner.run(tail, 41, {0, 1, 7, 8});
  const std::size_t skipped = 41 * static_cast<std::size_t>(model.vocab);
  CHECK(same_bits(continued,
                  Logits(expected.begin() + static_cast<std::ptrdiff_t>(skipped), expected.end())));
  // One position fewer is not enough.
  runner.model().copy_block(2, 9, 8);
  CHECK_FALSE(same_bits(runner.run(tail, 41, {0, 1, 9, 10}), continued));
}

// Logits at the last of 40 positions, with the token at `changed` replaced.
Logits last_logits(const Checkpoint& checkpoint, int changed) {
  Tokens tokens = random_tokens(40, checkpoint.config().vocab_size, 11);
  if (changed >= 0) {
    std::int32_t& token = tokens[static_cast<std::size_t>(changed)];
    token = (token + 1) % checkpoint.config().vocab_size;
  }
  const Logits all = Runner(checkpoint).run(tokens, 0, blocks_from(0));
  return {all.end() - checkpoint.config().vocab_size, all.end()};
}

TEST_CASE("a sliding-window layer sees exactly its window") {
  RandomModel model;
  model.layers = 1;
  model.sliding_window = 9;
  model.randomise(12);
  const TemporaryDirectory directory;
  const auto checkpoint = as_gguf(directory, model);
  const Logits base = last_logits(*checkpoint, -1);
  // Position 39 sees positions above 39 - 9.
  CHECK(same_bits(last_logits(*checkpoint, 30), base));
  CHECK(same_bits(last_logits(*checkpoint, 0), base));
  CHECK_FALSE(same_bits(last_logits(*checkpoint, 31), base));
}

TEST_CASE("every sixth layer of gemma3 is global and uses the global RoPE base") {
  RandomModel model;
  model.architecture = "gemma3";
  model.layers = 6;
  model.tied = true;
  model.sliding_window = 5;   // five layers of 5: 21 positions at most
  model.sliding_pattern = 0;  // the file does not say; six is the family's
  model.randomise(13);
  const TemporaryDirectory directory;
  CHECK_FALSE(same_bits(last_logits(*as_gguf(directory, model), 3),
                        last_logits(*as_gguf(directory, model), -1)));
  // Without the sixth layer's attention nothing reaches that far.
  RandomModel local = model;
  auto& norm = local.tensors.at("layers.5.post_attention_layernorm");
  std::fill(norm.begin(), norm.end(), -1.0F);  // 1 + w = 0
  const Logits base = last_logits(*as_gguf(directory, local), -1);
  CHECK(same_bits(last_logits(*as_gguf(directory, local), 3), base));
  CHECK_FALSE(same_bits(last_logits(*as_gguf(directory, local), 25), base));
  // And then the global base does not matter, the local one does.
  RandomModel other_base = local;
  other_base.rope_base = 500.0;
  CHECK(same_bits(last_logits(*as_gguf(directory, other_base), -1), base));
  other_base.rope_base_local = 500.0;
  CHECK_FALSE(same_bits(last_logits(*as_gguf(directory, other_base), -1), base));
}

TEST_CASE("the context can be made smaller, not larger, and positions beyond it are refused") {
  const RandomModel model = model_of("llama");
  const TemporaryDirectory directory;
  const auto checkpoint = as_gguf(directory, model);
  CHECK(contains(error_of([&] { (void)gateway::load_model(*checkpoint, backend(), 4096); }),
                 "a context of 4096 tokens was asked for, but the model was made for 2048"));
  const auto small = gateway::load_model(*checkpoint, backend(), 32);
  CHECK(small->info().context == 32);
  small->allocate_kv(4, block_tokens);
  const auto table = blocks_from(0, 4);
  Logits logits;
  CHECK_THROWS_AS(small->forward({{1, 2}, {{0, 2, 31, table.data()}}, {}}, logits),
                  std::invalid_argument);
  CHECK_THROWS_AS(small->forward({{model.vocab}, {{0, 1, 0, table.data()}}, {}}, logits),
                  std::invalid_argument);
  CHECK_THROWS_AS(small->forward({{1}, {{0, 1, 0, table.data()}}, {0}}, logits),
                  std::invalid_argument);
  CHECK_NOTHROW(small->forward({{1}, {{0, 1, 31, table.data()}}, {}}, logits));
}

TEST_CASE("the model describes itself and its KV blocks") {
  const RandomModel model = model_of("llama");
  const TemporaryDirectory directory;
  Runner runner(*as_gguf(directory, model));
  const gateway::ModelInfo& info = runner.model().info();
  CHECK(info.name == "random");
  CHECK(info.vocab_size == 40);
  // 2 embeddings of 40x64, norms 5x64, per layer q, o 64x64, k, v 32x64, ffn 3 x 96x64.
  CHECK(info.parameters == 2 * 2560 + 5 * 64 + 2 * (2 * 4096 + 2 * 2048 + 3 * 6144));
  // K and V, bf16, 2 layers, 2 heads of 16, 64 tokens.
  CHECK(runner.model().kv_block_bytes(64) == 2 * 2 * 2 * 2 * 16 * 64);
}

// Sanitizers end the program at such a request, where the plain allocator throws.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool allocator_aborts = true;
#else
constexpr bool allocator_aborts = false;
#endif

TEST_CASE("KV memory that cannot be had is an error with both sizes"
          * doctest::skip(allocator_aborts)) {
  const RandomModel model = model_of("llama");
  const TemporaryDirectory directory;
  const auto loaded = gateway::load_model(*as_gguf(directory, model), backend(), 0);
  const std::string error = error_of([&] { loaded->allocate_kv(2147483647, 1 << 20); });
  CHECK(contains(error, "there is no room for 2147483647 KV blocks of 1048576 tokens"));
}

TEST_CASE("other weights, another tokenizer or other arithmetic change the model's digest") {
  const TemporaryDirectory directory;
  RandomModel model = model_of("llama");
  const auto digest = [&] { return Runner(*as_gguf(directory, model), 1).model().info().digest; };
  const auto original = digest();
  CHECK(digest() == original);
  model.tensors.at("norm")[5] += 0.5F;
  CHECK(digest() != original);
  model.tensors.at("norm")[5] -= 0.5F;
  CHECK(digest() == original);
  model.rope_base = 20000.0;
  CHECK(digest() != original);
}

}  // namespace
}  // namespace incipit::test
