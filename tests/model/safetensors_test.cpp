#include "gateway/model/checkpoint.h"
#include "random_model.h"

#include <doctest/doctest.h>

namespace incipit::test {
namespace {

using gateway::open_safetensors;
using gateway::TokenizerSpec;

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

std::string error_in(const TemporaryDirectory& directory) {
  return error_of([&] { (void)open_safetensors(directory.path()); });
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// One file of the smallest model replaced.
std::string error_with(std::string_view file, std::string_view bytes) {
  const TemporaryDirectory directory;
  smallest().write_safetensors(directory);
  directory.write(file, bytes);
  return error_in(directory);
}

std::string error_with_config(std::string_view from, std::string_view to) {
  return error_with("config.json", replaced(smallest().config_json(), from, to));
}

std::vector<std::string> names_of(const RandomModel& model) {
  std::vector<std::string> names;
  for (const auto& [name, values] : model.tensors)
    names.push_back(name);
  return names;
}

std::string tensor_file(std::string_view header, std::string_view data) {
  std::string file;
  put(file, std::uint64_t{header.size()});
  return file.append(header).append(data);
}

TEST_CASE("a safetensors directory gives hyper-parameters, tokenizer and tensors by GGUF names") {
  const TemporaryDirectory directory;
  const RandomModel model = smallest();
  model.write_safetensors(directory);
  const auto checkpoint = gateway::open_checkpoint(directory.path());
  const gateway::ModelConfig& config = checkpoint->config();
  CHECK(config.architecture == "llama");
  CHECK(config.layers == 1);
  CHECK(config.hidden == 4);
  CHECK(config.head_dim == 4);
  CHECK(config.feed_forward == 2);
  CHECK(config.vocab_size == 3);
  CHECK(config.context == 2048);
  CHECK(config.rope_pairing == kernels::RopePairing::halves);
  CHECK(config.sliding_window == 0);
  CHECK(checkpoint->tokenizer().pre == "smollm");
  CHECK(checkpoint->tokenizer().pieces == std::vector<std::string>{"t0", "t1", "t2"});
  CHECK(checkpoint->tokenizer().types[1] == TokenizerSpec::TokenType::normal);
  CHECK(checkpoint->tokenizer().types[2] == TokenizerSpec::TokenType::control);
  CHECK(checkpoint->tokenizer().eos == 2);

  const kernels::HostTensor* down = checkpoint->tensor("blk.0.ffn_down.weight");
  REQUIRE(down != nullptr);
  CHECK(down->rows == 4);
  CHECK(down->cols == 2);
  CHECK(std::vector<float>(static_cast<const float*>(down->data),
                           static_cast<const float*>(down->data) + 8)
        == model.tensors.at("layers.0.mlp.down_proj"));
}

TEST_CASE("shards named by an index give the same model as one file") {
  const TemporaryDirectory whole;
  const TemporaryDirectory sharded;
  smallest().write_safetensors(whole);
  smallest().write_safetensors(sharded, 3);
  CHECK(open_safetensors(whole.path())->digest() == open_safetensors(sharded.path())->digest());
}

TEST_CASE("an index that does not match its shards is refused") {
  const TemporaryDirectory directory;
  smallest().write_safetensors(directory, 3);
  std::filesystem::remove(directory.path() / "part-1.safetensors");
  CHECK(contains(error_in(directory), "part-1.safetensors: this shard is missing"));

  smallest().write_safetensors(directory, 3);
  directory.write("model.safetensors.index.json",
                  R"({"weight_map": {"model.norm.weight": "../elsewhere.safetensors"}})");
  CHECK(contains(error_in(directory), "which is no plain file name"));
  directory.write("model.safetensors.index.json",
                  R"({"weight_map": {"model.other.weight": "part-0.safetensors"}})");
  CHECK(contains(error_in(directory), "tensor model.other.weight is missing"));
  directory.write("model.safetensors.index.json", R"({"weight_map": 3})");
  CHECK(contains(error_in(directory), "\"weight_map\" is not an object"));
  directory.write("model.safetensors.index.json", "{");
  CHECK(contains(error_in(directory), "not valid JSON"));
}

TEST_CASE("a tensor in two shards is refused") {
  const TemporaryDirectory directory;
  smallest().write_safetensors(directory, 2);
  directory.write("part-1.safetensors", safetensors_bytes(smallest(), names_of(smallest())));
  CHECK(contains(error_in(directory), "occurs in several shards"));
}

TEST_CASE("a safetensors file cut at any length is refused by name") {
  const TemporaryDirectory directory;
  const RandomModel model = smallest();
  model.write_safetensors(directory);
  REQUIRE(error_in(directory).empty());
  const std::string whole = safetensors_bytes(model, names_of(model));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    directory.write("model.safetensors", std::string_view(whole).substr(0, length));
    const std::string error = error_in(directory);
    CAPTURE(length);
    CAPTURE(error);
    REQUIRE(contains(error, "model.safetensors: at byte "));
  }
}

TEST_CASE("config.json and tokenizer.json cut at any length are refused by name") {
  const TemporaryDirectory directory;
  smallest().write_safetensors(directory);
  const auto cut_everywhere = [&](std::string_view file, const std::string& whole) {
    const std::size_t last = whole.rfind('}');
    for (std::size_t length = 0; length <= last; ++length) {
      directory.write(file, std::string_view(whole).substr(0, length));
      const std::string error = error_in(directory);
      CAPTURE(length);
      CAPTURE(error);
      REQUIRE(contains(error, std::string(file) + ": not valid JSON"));
    }
    directory.write(file, whole);
  };
  cut_everywhere("config.json", smallest().config_json());
  cut_everywhere("tokenizer.json", smallest().tokenizer_json());
  CHECK(error_in(directory).empty());
}

TEST_CASE("safetensors headers that lie are refused") {
  const auto with = [](std::string_view header, std::string_view data = "12345678") {
    return error_with("model.safetensors", tensor_file(header, data));
  };
  const auto entry = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return std::string(R"({"model.norm.weight": {"dtype": ")")
        .append(dtype)
        .append(R"(", "shape": )")
        .append(shape)
        .append(R"(, "data_offsets": )")
        .append(offsets)
        .append("}}");
  };
  CHECK(contains(with(entry("F32", "[4]", "[0, 16]")), "is it truncated?"));
  CHECK(contains(with(entry("F32", "[4]", "[0, 8]")), "cannot have 8 bytes"));
  CHECK(contains(with(entry("F32", "[4611686018427387904, 4]", "[0, 0]")), "cannot have 0 bytes"));
  CHECK(contains(with(entry("F32", "[2]", "[8, 0]")), "not a pair of offsets in order"));
  CHECK(contains(with(entry("F32", "[2]", "[-8, 0]")), "not a pair of offsets in order"));
  CHECK(contains(with(entry("F32", "[2]", "[0]")), "not a pair of offsets in order"));
  CHECK(contains(with(entry("F32", "[-2]", "[0, 8]")), "something other than a size"));
  CHECK(contains(with(entry("F32", "[1, 1, 2]", "[0, 8]")), "3 dimensions"));
  CHECK(contains(with(entry("F32", "[]", "[0, 4]")), "0 dimensions"));
  CHECK(contains(with(entry("F8_E4M3", "[8]", "[0, 8]")), "supported are F32, F16, BF16"));
  CHECK(contains(with("[]"), "not an object"));
  CHECK(contains(with("{"), "not valid JSON"));
  CHECK(contains(with(R"({"x": 1})"), "is not an object"));
  CHECK(
      contains(with(R"({"model.norm.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                         "lm_head.weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})"),
               "overlaps"));
  CHECK(contains(with(R"({"model.extra.weight": {"dtype": "F32", "shape": [1],
                         "data_offsets": [0, 4]}})"),
                 "model.extra.weight does not belong to the llama architecture"));
  std::string huge;
  put(huge, ~std::uint64_t{0});
  CHECK(contains(error_with("model.safetensors", huge + "{}"), "no safetensors file"));
}

TEST_CASE("tensors are checked against config.json when the directory is opened") {
  RandomModel model = smallest();
  model.tensors.erase("layers.0.mlp.up_proj");
  const TemporaryDirectory directory;
  model.write_safetensors(directory);
  CHECK(contains(error_in(directory), "tensor blk.0.ffn_up.weight is missing"));
  RandomModel headless = smallest();
  headless.tensors.erase("lm_head");
  headless.write_safetensors(directory);
  CHECK(contains(error_in(directory), "lm_head.weight is missing"));
  headless.tied = true;
  headless.write_safetensors(directory);
  CHECK(error_in(directory).empty());
  CHECK(open_safetensors(directory.path())->config().tied_embeddings);
  CHECK(contains(error_with_config("\"intermediate_size\": 2", "\"intermediate_size\": 3"),
                 "the hyper-parameters ask for 3 x 4"));
}

TEST_CASE("missing files are named, with what a directory needs") {
  const TemporaryDirectory directory;
  smallest().write_safetensors(directory);
  std::filesystem::remove(directory.path() / "model.safetensors");
  CHECK(contains(error_in(directory), "neither model.safetensors nor"));
  std::filesystem::remove(directory.path() / "tokenizer.json");
  CHECK(contains(error_in(directory), "has no tokenizer.json"));
}

TEST_CASE("config.json that asks for what we lack is refused with what is supported") {
  CHECK(contains(error_with_config("\"llama\"", "\"mixtral\""),
                 "\"mixtral\", which is not supported; supported are llama, mistral, qwen2"));
  CHECK(contains(error_with_config("{\n", "{\n \"hidden_act\": \"relu\","), "supported is silu"));
  CHECK(contains(error_with_config("{\n", "{\n \"quantization_config\": {},"),
                 "F32, F16 and BF16 only"));
  CHECK(contains(error_with_config("{\n", "{\n \"rope_scaling\": {\"rope_type\": \"yarn\"},"),
                 "supported are default, linear, llama3"));
  CHECK(contains(error_with_config("\"num_hidden_layers\": 1", "\"num_hidden_layers\": \"1\""),
                 "config.json: member \"num_hidden_layers\" is not an integer"));
  CHECK(contains(error_with_config("\"num_hidden_layers\": 1", "\"num_hidden_layers\": -1"),
                 "out of range"));
  CHECK(contains(error_with_config("\"hidden_size\": 4", "\"hidden_sizes\": 4"),
                 "\"hidden_size\" is missing"));
}

TEST_CASE("Mistral runs as llama with a window on every layer") {
  const TemporaryDirectory directory;
  RandomModel model = smallest();
  model.sliding_window = 5;
  model.write_safetensors(directory);
  directory.write("config.json", replaced(model.config_json(), "\"llama\"", "\"mistral\""));
  const auto checkpoint = open_safetensors(directory.path());
  CHECK(checkpoint->config().architecture == "llama");
  CHECK(checkpoint->config().sliding_window == 5);
  CHECK(checkpoint->config().sliding_pattern == 0);
}

TEST_CASE("gemma3 configurations may be nested, and newer ones describe RoPE per layer type") {
  const TemporaryDirectory directory;
  RandomModel model = smallest();
  model.architecture = "gemma3";
  model.tied = true;
  model.sliding_window = 512;
  model.sliding_pattern = 6;
  model.tensors.clear();
  model.randomise(1);
  model.write_safetensors(directory);
  directory.write("config.json", R"({"model_type": "gemma3", "text_config": {
      "model_type": "gemma3_text", "num_hidden_layers": 1, "hidden_size": 4,
      "intermediate_size": 2, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 4,
      "sliding_window": 512, "query_pre_attn_scalar": 16, "layer_types": ["sliding_attention"],
      "sliding_window_pattern": 6,
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0,
                                             "rope_theta": 1000000.0},
                          "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}}})");
  const auto checkpoint = open_safetensors(directory.path());
  const gateway::ModelConfig& config = checkpoint->config();
  CHECK(config.architecture == "gemma3");
  CHECK(config.context == 131072);  // the family's default
  CHECK(config.rope_base == 1e6);
  CHECK(config.rope_base_local == 2e4);
  CHECK(config.rope_linear_factor == 8.0);
  CHECK(config.attention_scale == 0.25F);
  CHECK(config.embedding_scale == 2.0F);
  CHECK(config.sliding_window == 512);
  CHECK(config.sliding_pattern == 6);
  CHECK(config.tied_embeddings);
}

TEST_CASE("added tokens beyond the embedding table are left out, other pieces are refused") {
  const std::string json = smallest().tokenizer_json();
  CHECK(
      error_with("tokenizer.json",
                 replaced(json, "\"added_tokens\": [",
                          R"("added_tokens": [{"id": 3, "content": "<image>", "special": true}, )"))
          .empty());
  CHECK(contains(error_with("tokenizer.json", replaced(json, "\"t1\": 1", "\"t1\": 7")),
                 "\"t1\" has no id within the embedding table of 3 rows"));
}

TEST_CASE("the split pattern names the pre-tokenizer, and an unknown one is refused") {
  const auto pre_of = [](std::string_view regex) {
    const TemporaryDirectory directory;
    smallest().write_safetensors(directory);
    std::string json =
        replaced(smallest().tokenizer_json(), "\"use_regex\": true", "\"use_regex\": false");
    json =
        replaced(json, R"({"type": "Digits", "individual_digits": true})",
                 std::string(R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": ")")
                     .append(regex)
                     .append("\"}}"));
    directory.write("tokenizer.json", json);
    return open_safetensors(directory.path())->tokenizer().pre;
  };
  // As in the published tokenizer.json files, JSON escapes included.
  CHECK(pre_of(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|)"
               R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)")
        == "llama-bpe");
  CHECK(pre_of(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|)"
               R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)")
        == "qwen2");
  CHECK(contains(error_of([&] { (void)pre_of("x+"); }), "supported are those of Llama 3, Qwen"));
}

TEST_CASE("BPE with byte fallback becomes a SentencePiece tokenizer") {
  const TemporaryDirectory directory;
  RandomModel model = smallest();
  model.vocab = 6;
  model.tensors.clear();
  model.randomise(1);
  model.write_safetensors(directory);
  directory.write("tokenizer.json", R"({
      "added_tokens": [{"id": 0, "content": "<unk>", "special": true},
                       {"id": 5, "content": "<bos>", "special": true}],
      "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
      "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"},
      "post_processor": {"type": "TemplateProcessing",
                         "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}},
                                    {"Sequence": {"id": "A", "type_id": 0}}]},
      "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true,
                "vocab": {"<unk>": 0, "<0x0A>": 1, "a": 2, "▁a": 3, "▁": 4, "<bos>": 5},
                "merges": [["▁", "a"]]}})");
  directory.write("tokenizer_config.json",
                  R"({"bos_token": {"content": "<bos>"}, "chat_template": [
                      {"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
  const auto checkpoint = open_safetensors(directory.path());
  const TokenizerSpec& tokenizer = checkpoint->tokenizer();
  CHECK(tokenizer.kind == TokenizerSpec::Kind::sentencepiece);
  CHECK(tokenizer.types[0] == TokenizerSpec::TokenType::unknown);
  CHECK(tokenizer.types[1] == TokenizerSpec::TokenType::byte);
  CHECK(tokenizer.types[5] == TokenizerSpec::TokenType::control);
  CHECK(tokenizer.merges == std::vector<std::string>{"▁ a"});
  REQUIRE(tokenizer.scores.size() == 6);
  CHECK(tokenizer.scores[3] > tokenizer.scores[2]);  // what a merge makes outranks what none makes
  CHECK(tokenizer.bos == 5);
  CHECK(tokenizer.add_bos);
  CHECK_FALSE(tokenizer.add_space_prefix);
  CHECK(tokenizer.chat_template == "D");
}

TEST_CASE("tokenizers that we lack are refused with what is supported") {
  const std::string json = smallest().tokenizer_json();
  CHECK(contains(error_with("tokenizer.json", replaced(json, "\"BPE\"", "\"Unigram\"")),
                 "\"Unigram\", which is not supported; supported is BPE"));
  CHECK(contains(error_with("tokenizer.json", replaced(json, "\"normalizer\": null",
                                                       R"("normalizer": {"type": "Lowercase"})")),
                 "\"Lowercase\", which is not supported"));
  CHECK(contains(error_with("tokenizer.json", replaced(json, "\"t 1\"", "\"t 1 2\"")),
                 "is not two pieces"));
  CHECK(contains(error_with("tokenizer.json", "{}"), "\"model\" is missing"));
}

}  // namespace
}  // namespace incipit::test
