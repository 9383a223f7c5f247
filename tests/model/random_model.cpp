#include "random_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace incipit::test {
namespace {

std::string layer_name(int layer, const std::string& module) {
  return "layers." + std::to_string(layer) + "." + module;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_norm(const std::string& name) {
  return ends_with(name, "norm");
}

std::string gguf_name(const std::string& name, bool gemma) {
  if (name == "embed_tokens") return "token_embd.weight";
  if (name == "norm") return "output_norm.weight";
  if (name == "lm_head") return "output.weight";
  const std::map<std::string, std::string> modules = {
      {"input_layernorm", "attn_norm.weight"},
      {"self_attn.q_proj", "attn_q.weight"},
      {"self_attn.k_proj", "attn_k.weight"},
      {"self_attn.v_proj", "attn_v.weight"},
      {"self_attn.q_proj.bias", "attn_q.bias"},
      {"self_attn.k_proj.bias", "attn_k.bias"},
      {"self_attn.v_proj.bias", "attn_v.bias"},
      {"self_attn.o_proj", "attn_output.weight"},
      {"self_attn.q_norm", "attn_q_norm.weight"},
      {"self_attn.k_norm", "attn_k_norm.weight"},
      {"post_attention_layernorm", gemma ? "post_attention_norm.weight" : "ffn_norm.weight"},
      {"pre_feedforward_layernorm", "ffn_norm.weight"},
      {"post_feedforward_layernorm", "post_ffw_norm.weight"},
      {"mlp.gate_proj", "ffn_gate.weight"},
      {"mlp.up_proj", "ffn_up.weight"},
      {"mlp.down_proj", "ffn_down.weight"},
  };
  const std::size_t dot = name.find('.', 7);
  return "blk." + name.substr(7, dot - 7) + "." + modules.at(name.substr(dot + 1));
}

std::string hf_name(const std::string& name) {
  if (name == "lm_head") return "lm_head.weight";
  return "model." + name + (ends_with(name, ".bias") ? "" : ".weight");
}

// Row i of half h of a head becomes row 2i + h: how converters store llama's q and k.
std::vector<float> permuted(const std::vector<float>& rows, int heads, int head_dim) {
  std::vector<float> result(rows.size());
  const std::size_t cols = rows.size() / static_cast<std::size_t>(heads * head_dim);
  for (int head = 0; head < heads; ++head) {
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < head_dim / 2; ++i) {
        const std::size_t from =
            static_cast<std::size_t>(head * head_dim + half * head_dim / 2 + i);
        const std::size_t to = static_cast<std::size_t>(head * head_dim + 2 * i + half);
        std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(from * cols), cols,
                    result.begin() + static_cast<std::ptrdiff_t>(to * cols));
      }
    }
  }
  return result;
}

}  // namespace

std::vector<std::uint64_t> RandomModel::shape(const std::string& name) const {
  const auto size = [](int value) { return static_cast<std::uint64_t>(value); };
  if (name == "embed_tokens" || name == "lm_head") return {size(vocab), size(hidden)};
  if (ends_with(name, "q_norm") || ends_with(name, "k_norm")) return {size(head_dim)};
  if (is_norm(name)) return {size(hidden)};
  if (ends_with(name, "q_proj.bias")) return {size(heads * head_dim)};
  if (ends_with(name, ".bias")) return {size(kv_heads * head_dim)};
  if (ends_with(name, "q_proj")) return {size(heads * head_dim), size(hidden)};
  if (ends_with(name, "o_proj")) return {size(hidden), size(heads * head_dim)};
  if (ends_with(name, "down_proj")) return {size(hidden), size(feed_forward)};
  if (ends_with(name, "gate_proj") || ends_with(name, "up_proj")) {
    return {size(feed_forward), size(hidden)};
  }
  return {size(kv_heads * head_dim), size(hidden)};
}

void RandomModel::randomise(std::uint32_t seed) {
  std::vector<std::string> names = {"embed_tokens", "norm"};
  if (!tied) names.emplace_back("lm_head");
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<std::string> modules = {
        "input_layernorm",  "self_attn.q_proj", "self_attn.k_proj",
        "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    if (has_head_norms()) modules.insert(modules.end(), {"self_attn.q_norm", "self_attn.k_norm"});
    if (is_gemma()) {
      modules.insert(modules.end(), {"pre_feedforward_layernorm", "post_feedforward_layernorm"});
    }
    if (qkv_bias) {
      modules.insert(modules.end(),
                     {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"});
    }
    for (const std::string& module : modules)
      names.push_back(layer_name(layer, module));
  }
  std::mt19937 generator(seed);
  for (const std::string& name : names) {
    std::size_t count = 1;
    for (const std::uint64_t dimension : shape(name))
      count *= dimension;
    std::vector<float>& values = tensors[name];
    for (std::size_t i = 0; i < count; ++i) {
      // Eight significant bits: exact in bf16, so that rounding weights plays no part.
      const int integer = static_cast<int>(generator() >> 24) - 128;
      float value = static_cast<float>(integer) / 512.0F;
      if (is_norm(name)) value += is_gemma() ? 0.0F : 1.0F;
      values.push_back(value);
    }
  }
}

GgufBuilder RandomModel::gguf() const {
  GgufBuilder builder;
  const std::string& a = architecture;
  const auto u32 = [&](const std::string& key, int value) {
    builder.u32(a + "." + key, static_cast<std::uint32_t>(value));
  };
  builder.text("general.architecture", a);
  builder.text("general.name", "random");
  u32("block_count", layers);
  u32("context_length", context);
  u32("embedding_length", hidden);
  u32("feed_forward_length", feed_forward);
  u32("attention.head_count", heads);
  u32("attention.head_count_kv", kv_heads);
  u32("attention.key_length", head_dim);
  u32("attention.value_length", head_dim);
  builder.f32(a + ".attention.layer_norm_rms_epsilon", 1e-5F);
  builder.f32(a + ".rope.freq_base", static_cast<float>(rope_base));
  if (is_gemma()) builder.f32(a + ".rope.freq_base_swa", static_cast<float>(rope_base_local));
  if (sliding_window > 0) u32("attention.sliding_window", sliding_window);
  if (sliding_pattern > 0) u32("attention.sliding_window_pattern", sliding_pattern);
  builder.text("tokenizer.ggml.model", "gpt2");
  builder.text("tokenizer.ggml.pre", "smollm");
  std::vector<std::string> pieces;
  for (int i = 0; i < vocab; ++i)
    pieces.push_back(std::string("t").append(std::to_string(i)));
  builder.texts("tokenizer.ggml.tokens", pieces);
  builder.i32s("tokenizer.ggml.token_type", std::vector<std::int32_t>(pieces.size(), 1));
  builder.texts("tokenizer.ggml.merges", {"t 1"});
  builder.u32("tokenizer.ggml.eos_token_id", 2);

  for (const auto& [name, values] : tensors) {
    std::vector<float> stored = values;
    if (is_gemma() && is_norm(name)) {
      for (float& value : stored)
        value += 1.0F;
    }
    if (a == "llama" && name.find("q_proj") != std::string::npos) {
      stored = permuted(values, heads, head_dim);
    }
    if (a == "llama" && name.find("k_proj") != std::string::npos) {
      stored = permuted(values, kv_heads, head_dim);
    }
    std::vector<std::uint64_t> dimensions = shape(name);
    std::reverse(dimensions.begin(), dimensions.end());
    builder.floats(gguf_name(name, is_gemma()), dimensions, stored);
  }
  return builder;
}

std::string RandomModel::config_json() const {
  const auto member = [](const std::string& key, const std::string& value) {
    return ",\n  \"" + key + "\": " + value;
  };
  std::string json = "{\n  \"model_type\": \"" + (is_gemma() ? "gemma3_text" : architecture) + "\"";
  json += member("num_hidden_layers", std::to_string(layers));
  json += member("hidden_size", std::to_string(hidden));
  json += member("intermediate_size", std::to_string(feed_forward));
  json += member("num_attention_heads", std::to_string(heads));
  json += member("num_key_value_heads", std::to_string(kv_heads));
  json += member("head_dim", std::to_string(head_dim));
  json += member("max_position_embeddings", std::to_string(context));
  json += member("rms_norm_eps", "1e-5");
  json += member("rope_theta", std::to_string(rope_base));
  json += member("tie_word_embeddings", tied ? "true" : "false");
  json += member("eos_token_id", "2");
  if (is_gemma()) {
    json += member("rope_local_base_freq", std::to_string(rope_base_local));
    json += member("query_pre_attn_scalar", std::to_string(head_dim));
    json += member("sliding_window_pattern", std::to_string(sliding_pattern));
  }
  json += member("sliding_window", sliding_window > 0 ? std::to_string(sliding_window) : "null");
  if (llama3_scaling) {
    json += member("rope_scaling",
                   R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,)"
                   R"( "high_freq_factor": 4.0, "original_max_position_embeddings": 64})");
  }
  return json + "\n}\n";
}

std::string RandomModel::tokenizer_json() const {
  std::string vocabulary;
  for (int i = 0; i < vocab; ++i) {
    vocabulary += std::string(i == 0 ? "\"t" : ", \"t").append(std::to_string(i))
                  + "\": " + std::to_string(i);
  }
  return R"({"added_tokens": [{"id": 2, "content": "t2", "special": true}],)"
         R"( "normalizer": null, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)"
         R"({"type": "Digits", "individual_digits": true}, {"type": "ByteLevel",)"
         R"( "add_prefix_space": false, "use_regex": true}]}, "model": {"type": "BPE",)"
         R"( "vocab": {)"
         + vocabulary + R"(}, "merges": ["t 1"]}})";
}

std::string safetensors_bytes(const RandomModel& model, const std::vector<std::string>& names) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}";
  std::string data;
  for (const std::string& name : names) {
    const std::vector<float>& values = model.tensors.at(name);
    const std::size_t bytes = values.size() * sizeof(float);
    header += ", \"" + hf_name(name) + "\": {\"dtype\": \"F32\", \"shape\": [";
    const std::vector<std::uint64_t> shape = model.shape(name);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      header += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    }
    header += "], \"data_offsets\": [" + std::to_string(data.size()) + ", "
              + std::to_string(data.size() + bytes) + "]}";
    data.append(reinterpret_cast<const char*>(values.data()), bytes);
  }
  header += "}";
  std::string file;
  put(file, std::uint64_t{header.size()});  // unpadded: data may be unaligned
  return file + header + data;
}

void RandomModel::write_safetensors(const TemporaryDirectory& directory, int shards) const {
  directory.write("config.json", config_json());
  directory.write("tokenizer.json", tokenizer_json());
  std::vector<std::string> names;
  for (const auto& [name, values] : tensors)
    names.push_back(name);
  if (shards == 0) {
    directory.write("model.safetensors", safetensors_bytes(*this, names));
    return;
  }
  std::string map;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string file = "part-" + std::to_string(shard) + ".safetensors";
    std::vector<std::string> mine;
    for (std::size_t i = static_cast<std::size_t>(shard); i < names.size();
         i += static_cast<std::size_t>(shards)) {
      mine.push_back(names[i]);
      map += (map.empty() ? "\"" : ", \"") + hf_name(names[i]) + "\": \"" + file + "\"";
    }
    directory.write(file, safetensors_bytes(*this, mine));
  }
  directory.write("model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
}

}  // namespace incipit::test
