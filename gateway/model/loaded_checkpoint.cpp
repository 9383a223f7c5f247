#include "gateway/model/loaded_checkpoint.h"

#include "gateway/model/architecture.h"
#include "gateway/model/digest.h"

#include <utility>

namespace incipit::gateway {
namespace {

void add_config(DigestBuilder& builder, const ModelConfig& config) {
  builder.text(config.architecture);  // not the name: a renamed file keeps its digest
  for (const int value :
       {config.layers, config.hidden, config.heads, config.kv_heads, config.head_dim,
        config.feed_forward, config.vocab_size, config.sliding_window, config.sliding_pattern}) {
    builder.value(value);
  }
  builder.value(config.norm_epsilon);
  builder.value(config.rope_base);
  builder.value(config.rope_base_local);
  builder.value(config.rope_linear_factor);
  builder.bytes(config.rope_factors.data(), config.rope_factors.size() * sizeof(float));
  builder.value(config.rope_pairing);
  builder.value(config.embedding_scale);
  builder.value(config.attention_scale);
  builder.value(config.activation);
  builder.value(config.tied_embeddings);
}

void add_tokenizer(DigestBuilder& builder, const TokenizerSpec& spec) {
  builder.value(spec.kind);
  builder.text(spec.pre);
  builder.value(std::uint64_t{spec.pieces.size()});
  for (const std::string& piece : spec.pieces)
    builder.text(piece);
  builder.bytes(spec.types.data(), spec.types.size() * sizeof spec.types[0]);
  builder.bytes(spec.scores.data(), spec.scores.size() * sizeof(float));
  builder.value(std::uint64_t{spec.merges.size()});
  for (const std::string& merge : spec.merges)
    builder.text(merge);
  for (const std::int32_t id : {spec.bos, spec.eos, spec.unknown})
    builder.value(id);
  builder.value(spec.add_bos);
  builder.value(spec.add_space_prefix);
  builder.text(spec.chat_template);
}

class LoadedCheckpoint final : public Checkpoint {
 public:
  explicit LoadedCheckpoint(CheckpointParts parts) : parts_(std::move(parts)) {}

  const ModelConfig& config() const override { return parts_.config; }

  const TokenizerSpec& tokenizer() const override { return parts_.tokenizer; }

  const kernels::HostTensor* tensor(std::string_view name) const override {
    const auto found = parts_.tensors.find(name);
    return found == parts_.tensors.end() ? nullptr : &found->second;
  }

  // Reads every weight once; later calls are free.
  Digest digest() const override {
    std::call_once(digest_once_, [this] {
      DigestBuilder builder;
      add_config(builder, parts_.config);
      add_tokenizer(builder, parts_.tokenizer);
      for (const auto& [name, tensor] : parts_.tensors) {
        builder.text(name);
        builder.value(tensor.dtype);
        builder.value(tensor.rows);
        builder.value(tensor.cols);
        builder.bytes(tensor.data, kernels::row_bytes(tensor.dtype, tensor.cols) * tensor.rows);
      }
      digest_ = builder.finish();
    });
    return digest_;
  }

 private:
  CheckpointParts parts_;
  mutable std::once_flag digest_once_;
  mutable Digest digest_{};
};

}  // namespace

std::unique_ptr<Checkpoint> make_checkpoint(CheckpointParts parts) {
  check_model(parts);
  return std::make_unique<LoadedCheckpoint>(std::move(parts));
}

}  // namespace incipit::gateway
