// A Hugging Face directory (config.json, tokenizer.json, *.safetensors) as a Checkpoint.
#include "gateway/model/architecture.h"
#include "gateway/model/hf_config.h"
#include "gateway/model/hf_tokenizer.h"
#include "gateway/model/json_object.h"
#include "gateway/model/safetensors_file.h"

#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace incipit::gateway {
namespace {

namespace fs = std::filesystem;
using kernels::DType;
using kernels::HostTensor;

bool take_prefix(std::string_view& name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) != prefix) return false;
  name.remove_prefix(prefix.size());
  return true;
}

// The part of a layer's tensor name after "model.layers.N."; empty when unknown.
std::string_view layer_tensor(std::string_view module, bool gemma) {
  struct Pair {
    std::string_view theirs, ours;
  };

  static constexpr Pair pairs[] = {
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
  };
  // The same name, two places: before the feed-forward network, or after the attention.
  if (module == "post_attention_layernorm") return gemma ? "post_attention_norm" : "ffn_norm";
  for (const Pair& pair : pairs) {
    if (pair.theirs == module) return pair.ours;
  }
  return {};
}

// What is not weights of the language model: image towers, and buffers that old files carry.
bool is_ignored(std::string_view name) {
  return name.find("vision_tower.") != std::string_view::npos
         || name.find("multi_modal_projector.") != std::string_view::npos
         || name.find(".rotary_emb.inv_freq") != std::string_view::npos;
}

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; empty when unknown.
std::optional<std::string> canonical_name(std::string_view name, bool gemma) {
  take_prefix(name, "language_model.");
  take_prefix(name, "model.");
  take_prefix(name, "language_model.");
  if (name == "embed_tokens.weight") return "token_embd.weight";
  if (name == "norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  if (!take_prefix(name, "layers.")) return std::nullopt;
  const std::size_t dot = name.find('.');
  const std::size_t last_dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == last_dot) return std::nullopt;
  const std::string_view layer = name.substr(0, dot);
  const std::string_view suffix = name.substr(last_dot);  // ".weight" or ".bias"
  const std::string_view ours = layer_tensor(name.substr(dot + 1, last_dot - dot - 1), gemma);
  if (ours.empty() || layer.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return "blk." + std::string(layer) + "." + std::string(ours) + std::string(suffix);
}

std::optional<DType> dtype_of(std::string_view spelling) {
  if (spelling == "F32") return DType::f32;
  if (spelling == "F16") return DType::f16;
  if (spelling == "BF16") return DType::bf16;
  return std::nullopt;
}

HostTensor make_tensor(const std::string& origin, const std::string& name,
                       const SafetensorsEntry& entry, CheckpointParts& parts) {
  const auto fail = [&](const std::string& problem) {
    throw std::runtime_error(origin + ": at byte " + std::to_string(entry.file_offset) + ": tensor "
                             + name + " " + problem);
  };
  const std::optional<DType> dtype = dtype_of(entry.dtype);
  if (!dtype)
    fail("has type " + entry.dtype + ", which is not supported; supported are F32, F16, BF16");
  if (entry.shape.empty() || entry.shape.size() > 2) {
    fail("has " + std::to_string(entry.shape.size()) + " dimensions, not 1 or 2");
  }
  HostTensor tensor{entry.bytes.data(), *dtype, entry.shape.size() == 2 ? entry.shape[0] : 1,
                    entry.shape.back()};
  const auto element = static_cast<std::uint64_t>(kernels::info(*dtype).block_bytes);
  const unsigned __int128 expected = static_cast<unsigned __int128>(tensor.rows)
                                     * static_cast<std::uint64_t>(tensor.cols) * element;
  if (expected != entry.bytes.size() || expected == 0) {
    fail("of " + std::to_string(tensor.rows) + " x " + std::to_string(tensor.cols) + " "
         + entry.dtype + " elements cannot have " + std::to_string(entry.bytes.size()) + " bytes");
  }
  // The format does not promise alignment.
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % element != 0) {
    parts.copies.emplace_back(entry.bytes.begin(), entry.bytes.end());
    tensor.data = parts.copies.back().data();
  }
  return tensor;
}

// Gemma's checkpoints store norm weights w for a multiplication by 1 + w.
HostTensor with_one_added(const HostTensor& tensor, CheckpointParts& parts) {
  std::vector<float> values(static_cast<std::size_t>(tensor.cols));
  kernels::dequantize_row(tensor.dtype, tensor.data, values.data(), tensor.cols);
  for (float& value : values)
    value += 1.0F;
  parts.copies.emplace_back(values.size() * sizeof(float));
  std::memcpy(parts.copies.back().data(), values.data(), parts.copies.back().size());
  return {parts.copies.back().data(), DType::f32, 1, tensor.cols};
}

using Entries = std::map<std::string, SafetensorsEntry>;

Entries add_file(const fs::path& path, CheckpointParts& parts) {
  parts.files.emplace_back(path);
  Entries entries = read_safetensors_header(parts.files.back().bytes(), path.string());
  const bool gemma = parts.config.architecture == "gemma3";
  for (const auto& [name, entry] : entries) {
    if (is_ignored(name)) continue;
    const std::optional<std::string> ours = canonical_name(name, gemma);
    if (!ours) {
      throw std::runtime_error(path.string() + ": tensor " + name + " does not belong to the "
                               + parts.config.architecture
                               + " architecture as this program runs it");
    }
    if (*ours == "output.weight" && parts.config.tied_embeddings) continue;
    HostTensor tensor = make_tensor(path.string(), name, entry, parts);
    if (gemma && ours->size() > 11 && ours->substr(ours->size() - 11) == "norm.weight") {
      if (tensor.rows != 1)
        throw std::runtime_error(path.string() + ": tensor " + name + " is no vector");
      tensor = with_one_added(tensor, parts);
    }
    if (!parts.tensors.emplace(*ours, tensor).second) {
      throw std::runtime_error(path.string() + ": tensor " + name + " occurs in several shards");
    }
  }
  return entries;
}

// Shards in the index, each opened once; every tensor must be where the index says.
void add_shards(const fs::path& directory, const fs::path& index, CheckpointParts& parts) {
  const JsonDocument document(index);
  const auto weight_map = document.root().object("weight_map");
  if (!weight_map) document.root().fail("weight_map", "is missing");
  std::map<std::string, Entries> shards;
  for (const auto& member : weight_map->members()) {
    std::string_view shard;
    if (member.value.get(shard) != simdjson::SUCCESS)
      weight_map->fail(member.key, "is not a string");
    if (fs::path(shard).filename() != shard || shard.empty() || shard == "." || shard == "..") {
      weight_map->fail(member.key,
                       "names \"" + std::string(shard) + "\", which is no plain file name");
    }
    const std::string key(shard);
    auto found = shards.find(key);
    if (found == shards.end()) {
      if (!fs::exists(directory / key)) {
        throw std::runtime_error((directory / key).string() + ": this shard is missing; "
                                 + index.filename().string() + " names it");
      }
      found = shards.emplace(key, add_file(directory / key, parts)).first;
    }
    if (found->second.count(std::string(member.key)) == 0) {
      throw std::runtime_error((directory / key).string() + ": tensor " + std::string(member.key)
                               + " is missing; " + index.filename().string() + " says it is here");
    }
  }
}

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const fs::path& directory) {
  CheckpointParts parts;
  parts.origin = directory.string();
  const fs::path config_path = directory / "config.json";
  const fs::path whole = directory / "model.safetensors";
  const fs::path index = directory / "model.safetensors.index.json";
  for (const fs::path& path : {config_path, directory / "tokenizer.json"}) {
    if (!fs::exists(path)) {
      throw std::runtime_error(directory.string() + ": the directory has no "
                               + path.filename().string()
                               + "; a safetensors model needs config.json, tokenizer.json and"
                                 " model.safetensors (or model.safetensors.index.json and its shards)");
    }
  }
  const JsonDocument config(config_path);
  parts.config = read_hf_config(config.root());
  if (parts.config.name.empty()) {
    parts.config.name = fs::absolute(directory / ".").parent_path().filename().string();
  }
  const bool tied = parts.config.tied_embeddings;
  if (fs::exists(whole)) {
    add_file(whole, parts);
  } else if (fs::exists(index)) {
    add_shards(directory, index, parts);
  } else {
    throw std::runtime_error(directory.string()
                             + ": the directory has neither model.safetensors nor"
                               " model.safetensors.index.json");
  }
  if (!tied && parts.tensors.count("output.weight") == 0) {
    throw std::runtime_error(directory.string()
                             + ": tensor lm_head.weight is missing, and config.json does not say"
                               " tie_word_embeddings");
  }
  const auto embedding = parts.tensors.find("token_embd.weight");
  if (embedding == parts.tensors.end()) {
    throw std::runtime_error(directory.string() + ": tensor model.embed_tokens.weight is missing");
  }
  parts.tokenizer = read_hf_tokenizer(directory, config.root(), embedding->second.rows);
  return make_checkpoint(std::move(parts));
}

}  // namespace incipit::gateway
