#include "gateway/model/checkpoint.h"
#include "random_model.h"

#include <doctest/doctest.h>

namespace incipit::test {
namespace {

using gateway::open_checkpoint;
using gateway::open_gguf;

// As small as a model can be, so that every length and every byte can be tried.
RandomModel smallest() {
  RandomModel model;
  model.layers = 1;
  model.hidden = 4;
  model.heads = 1;
  model.kv_heads = 1;
  model.head_dim = 4;
  model.feed_forward = 2;
  model.vocab = 3;
  model.randomise(1);
  return model;
}

std::string error_for(const TemporaryDirectory& directory, std::string_view bytes) {
  const auto path = directory.write("m.gguf", bytes);
  return error_of([&] { (void)open_gguf(path); });
}

// The smallest model with one thing changed by `change`.
template <typename Change>
std::string error_with(Change&& change) {
  const TemporaryDirectory directory;
  GgufBuilder builder = smallest().gguf();
  change(builder);
  return error_for(directory, builder.build());
}

TEST_CASE("a GGUF file gives its hyper-parameters, tokenizer and tensors") {
  const TemporaryDirectory directory;
  RandomModel model = smallest();
  model.sliding_window = 7;
  const auto path = directory.write("m.gguf", model.gguf().build());
  const auto checkpoint = open_checkpoint(path);
  const gateway::ModelConfig& config = checkpoint->config();
  CHECK(config.architecture == "llama");
  CHECK(config.name == "random");
  CHECK(config.layers == 1);
  CHECK(config.hidden == 4);
  CHECK(config.heads == 1);
  CHECK(config.kv_heads == 1);
  CHECK(config.head_dim == 4);
  CHECK(config.feed_forward == 2);
  CHECK(config.vocab_size == 3);
  CHECK(config.context == 2048);
  CHECK(config.norm_epsilon == 1e-5F);
  CHECK(config.rope_base == 10000.0);
  CHECK(config.rope_pairing == kernels::RopePairing::interleaved);
  CHECK(config.sliding_window == 7);
  CHECK_FALSE(config.tied_embeddings);
  CHECK(checkpoint->tokenizer().kind == gateway::TokenizerSpec::Kind::byte_bpe);
  CHECK(checkpoint->tokenizer().pre == "smollm");
  CHECK(checkpoint->tokenizer().pieces == std::vector<std::string>{"t0", "t1", "t2"});
  CHECK(checkpoint->tokenizer().merges == std::vector<std::string>{"t 1"});
  CHECK(checkpoint->tokenizer().eos == 2);
  CHECK(checkpoint->tokenizer().bos == -1);
  CHECK_FALSE(checkpoint->tokenizer().add_bos);

  const kernels::HostTensor* down = checkpoint->tensor("blk.0.ffn_down.weight");
  REQUIRE(down != nullptr);
  CHECK(down->rows == 4);
  CHECK(down->cols == 2);
  const auto& expected = model.tensors.at("layers.0.mlp.down_proj");
  CHECK(std::vector<float>(static_cast<const float*>(down->data),
                           static_cast<const float*>(down->data) + 8)
        == expected);
  CHECK(checkpoint->tensor("blk.1.ffn_down.weight") == nullptr);
}

TEST_CASE("version 2 is read like version 3, and other versions are refused") {
  CHECK(error_with([](GgufBuilder& b) { b.version = 2; }).empty());
  CHECK(contains(error_with([](GgufBuilder& b) { b.version = 1; }), "version 1 is not supported"));
  CHECK(contains(error_with([](GgufBuilder& b) { b.version = 4; }), "supported are 2 and 3"));
  CHECK(contains(error_with([](GgufBuilder& b) { b.version = 0x03000000; }), "big-endian"));
}

TEST_CASE("a GGUF file cut at any length is refused with file and byte offset") {
  const TemporaryDirectory directory;
  const std::string whole = smallest().gguf().build();
  REQUIRE(error_for(directory, whole).empty());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string error = error_for(directory, whole.substr(0, length));
    CAPTURE(length);
    CAPTURE(error);
    REQUIRE(contains(error, "m.gguf: at byte "));
  }
}

TEST_CASE("a GGUF file with any byte changed is read or refused, never more") {
  const TemporaryDirectory directory;
  const GgufBuilder builder = smallest().gguf();
  const std::string whole = builder.build();
  int refused = 0;
  for (std::size_t i = 0; i < builder.header_bytes(); ++i) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[i] = value;
      const auto path = directory.write("m.gguf", bytes);
      const std::string error = error_of([&] { (void)open_gguf(path)->digest(); });
      if (!error.empty()) ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("what is not a GGUF file is named as such") {
  const TemporaryDirectory directory;
  CHECK(contains(error_for(directory, "PK\x03\x04 something else"), "not a GGUF file"));
  CHECK(contains(error_for(directory, ""), "the file ends inside the magic number"));
  CHECK(contains(error_of([&] { (void)open_gguf(directory.path() / "absent.gguf"); }),
                 "absent.gguf: cannot be opened"));
  CHECK(contains(error_of([&] { (void)open_gguf(directory.path()); }), "not a regular file"));
}

TEST_CASE("counts that the file cannot hold are refused before anything is allocated") {
  CHECK(contains(error_with([](GgufBuilder& b) { b.extra_tensors = 1ULL << 60; }),
                 "the number of tensors is 11529215046068469"));
  CHECK(contains(error_with([](GgufBuilder& b) { b.extra_metadata = ~0ULL >> 2; }),
                 "the number of metadata entries"));
  std::string array;
  put(array, std::uint32_t{4});
  put(array, std::uint64_t{1} << 62);  // times four bytes: wraps around to 0
  CHECK(contains(error_with([&](GgufBuilder& b) { b.raw("x", 9, array); }), "the array length"));
  std::string text;
  put(text, ~std::uint64_t{0});
  CHECK(contains(error_with([&](GgufBuilder& b) { b.raw("x", 8, text); }),
                 "claims 18446744073709551615 bytes"));
}

TEST_CASE("metadata of an unknown type, nested arrays and repeated keys are refused") {
  CHECK(contains(error_with([](GgufBuilder& b) { b.raw("x", 13, ""); }), "unknown value type 13"));
  std::string nested;
  put(nested, std::uint32_t{9});
  put(nested, std::uint64_t{1});
  CHECK(
      contains(error_with([&](GgufBuilder& b) { b.raw("x", 9, nested); }), "unknown value type 9"));
  CHECK(contains(error_with([](GgufBuilder& b) { b.u32("llama.block_count", 1); }),
                 "\"llama.block_count\" occurs twice"));
}

TEST_CASE("tensor headers that lie are refused") {
  const auto with = [](std::vector<std::uint64_t> dimensions, std::uint32_t type,
                       std::uint64_t offset) {
    return error_with([&](GgufBuilder& b) { b.describe("x", dimensions, type, offset); });
  };
  CHECK(contains(with({1ULL << 40}, 0, 0), "is it truncated?"));
  CHECK(contains(with({4}, 0, 1ULL << 40), "is it truncated?"));
  CHECK(contains(with({4}, 0, ~0ULL - 31), "larger than any file"));
  CHECK(contains(with({1ULL << 32, 1ULL << 32}, 0, 0), "larger than any file"));
  CHECK(contains(with({2, 1ULL << 63, 1ULL << 63, 4}, 0, 0), "impossible shape"));
  CHECK(contains(with({0}, 0, 0), "impossible shape"));
  CHECK(contains(with({4, 0}, 0, 0), "impossible shape"));
  CHECK(contains(with({}, 0, 0), "0 dimensions"));
  CHECK(contains(with({1, 1, 1, 1, 1}, 0, 0), "5 dimensions"));
  CHECK(contains(with({4}, 0, 4), "not a multiple of the alignment 32"));
  CHECK(contains(with({4}, 0, 0), "overlaps"));
  CHECK(contains(with({33}, 8, 0), "no whole number of Q8_0 blocks"));
}

TEST_CASE("an unsupported tensor type lists the supported ones") {
  const std::string error =
      error_with([](GgufBuilder& b) { b.describe("x", {256}, 16, 0); });  // IQ2_XXS
  CHECK(contains(error, "tensor \"x\" has the tensor type number 16"));
  CHECK(contains(error,
                 "supported are F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K"));
}

TEST_CASE("an unsupported architecture or tokenizer lists the supported ones") {
  const TemporaryDirectory directory;
  GgufBuilder mamba;
  mamba.text("general.architecture", "mamba");
  CHECK(contains(error_for(directory, mamba.build()),
                 "\"mamba\", which is not supported; supported are llama, qwen2, qwen3, gemma3"));
  std::string bytes = smallest().gguf().build();
  bytes.replace(bytes.find("gpt2"), 4, "bert");
  const std::string error = error_for(directory, bytes);
  CHECK(contains(error, "\"bert\", which is not supported"));
  CHECK(contains(error, "gpt2 (byte-level BPE) and llama (SentencePiece)"));
}

TEST_CASE("tensors are checked against the hyper-parameters when the file is opened") {
  const TemporaryDirectory directory;
  RandomModel missing = smallest();
  missing.tensors.erase("layers.0.mlp.up_proj");
  CHECK(contains(error_for(directory, missing.gguf().build()),
                 "tensor blk.0.ffn_up.weight is missing; the llama architecture needs it (2 x 4)"));

  RandomModel wrong = smallest();
  GgufBuilder builder = wrong.gguf();
  std::string bytes = builder.build();
  const std::size_t at = bytes.find("llama.feed_forward_length");
  bytes[at + 25 + 4] = 3;  // the key's 25 characters, then the type
  CHECK(contains(error_for(directory, bytes), "is 2 x 4, but the hyper-parameters ask for 3 x 4"));

  GgufBuilder surplus = smallest().gguf();
  surplus.floats("blk.0.ffn_gate.bias", {2}, {1, 2});
  CHECK(contains(error_for(directory, surplus.build()),
                 "tensor blk.0.ffn_gate.bias does not belong to the llama architecture"));

  GgufBuilder half_biased = smallest().gguf();
  half_biased.floats("blk.0.attn_q.bias", {4}, {1, 2, 3, 4});
  CHECK(contains(error_for(directory, half_biased.build()), "biases for some of"));
}

TEST_CASE("hyper-parameters out of range are refused by name") {
  const auto changed = [](const std::string& key, std::uint32_t value) {
    const TemporaryDirectory directory;
    std::string bytes = smallest().gguf().build();
    std::memcpy(&bytes[bytes.find(key) + key.size() + 4], &value, sizeof value);
    return error_for(directory, bytes);
  };
  CHECK(contains(changed("llama.block_count", 0), "the number of layers is 0"));
  CHECK(contains(changed("llama.block_count", 0xFFFFFFFF), "llama.block_count"));
  CHECK(contains(changed("llama.attention.head_count", 0), "attention heads is 0"));
  CHECK(contains(changed("llama.attention.key_length", 3), "llama.attention.value_length"));
  CHECK(contains(changed("llama.context_length", 0), "the context length is 0"));
  CHECK(contains(changed("llama.rope.freq_base", 0xFF800000), "RoPE base"));  // -infinity
  CHECK(contains(changed("tokenizer.ggml.eos_token_id", 3), "special token id 3 is outside"));
}

TEST_CASE("scaling that asks for arithmetic that we lack is refused") {
  CHECK(contains(error_with([](GgufBuilder& b) { b.text("llama.rope.scaling.type", "yarn"); }),
                 "is \"yarn\"; supported are"));
  CHECK(
      contains(error_with([](GgufBuilder& b) { b.u32("llama.expert_count", 8); }), "expert_count"));
  CHECK(contains(error_with([](GgufBuilder& b) { b.u32("llama.rope.dimension_count", 2); }),
                 "rope.dimension_count\" is 2; supported is 4"));
}

TEST_CASE("a tensor of RoPE frequency factors becomes part of the hyper-parameters") {
  const TemporaryDirectory directory;
  GgufBuilder builder = smallest().gguf();
  builder.floats("rope_freqs.weight", {2}, {1.0F, 8.0F});
  const auto checkpoint = open_gguf(directory.write("m.gguf", builder.build()));
  CHECK(checkpoint->config().rope_factors == std::vector<float>{1.0F, 8.0F});
  CHECK(checkpoint->tensor("rope_freqs.weight") == nullptr);

  GgufBuilder wrong = smallest().gguf();
  wrong.floats("rope_freqs.weight", {3}, {1.0F, 8.0F, 8.0F});
  CHECK(contains(error_for(directory, wrong.build()), "rope_freqs.weight is 1 x 3"));
}

TEST_CASE("the digest covers weights, hyper-parameters and tokenizer, and nothing else") {
  const TemporaryDirectory directory;
  const auto digest = [&](std::string_view bytes) {
    return open_gguf(directory.write("m.gguf", bytes))->digest();
  };
  const GgufBuilder builder = smallest().gguf();
  const std::string bytes = builder.build();
  const auto original = digest(bytes);
  CHECK(digest(bytes) == original);

  std::string weight = bytes;
  weight.back() = static_cast<char>(weight.back() ^ 1);
  CHECK(digest(weight) != original);
  std::string window = bytes;
  window.replace(window.find("t 1"), 3, "t 2");
  CHECK(digest(window) != original);
  GgufBuilder noted = smallest().gguf();
  noted.text("general.note", "other metadata moves the data, not the digest");
  CHECK(digest(noted.build()) == original);
  RandomModel sliding = smallest();
  sliding.sliding_window = 7;
  CHECK(digest(sliding.gguf().build()) != original);
}

TEST_CASE("gemma3 files bring the family's own constants") {
  const TemporaryDirectory directory;
  RandomModel model = smallest();
  model.architecture = "gemma3";
  model.tied = true;
  model.tensors.clear();
  model.randomise(1);
  model.sliding_window = 512;
  const auto checkpoint = open_gguf(directory.write("m.gguf", model.gguf().build()));
  const gateway::ModelConfig& config = checkpoint->config();
  CHECK(config.embedding_scale == 2.0F);  // sqrt(4)
  CHECK(config.activation == kernels::Activation::gelu_tanh);
  CHECK(config.sliding_window == 512);
  CHECK(config.sliding_pattern == 6);
  CHECK(config.rope_base_local == 10000.0);
  CHECK(config.rope_pairing == kernels::RopePairing::halves);
  CHECK(config.tied_embeddings);
}

TEST_CASE("a path that is no model says what would be one") {
  CHECK(contains(error_of([] { (void)open_checkpoint("/nonexistent/model"); }),
                 "there is no such file or directory; a model is a .gguf file, a directory"));
  const TemporaryDirectory directory;
  CHECK(contains(error_of([&] { (void)open_checkpoint(directory.path()); }), "has no config.json"));
  const auto lone = directory.write("model.safetensors", "x");
  CHECK(contains(error_of([&] { (void)open_checkpoint(lone); }), "name the directory"));
}

}  // namespace
}  // namespace incipit::test
