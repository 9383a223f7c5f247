#include "gateway/model/transformer.h"

#include "gateway/model/architecture.h"
#include "gateway/model/digest.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>

namespace incipit::gateway {
namespace {

using kernels::Rows;
using kernels::SequenceSpan;

// Rows that one pass takes; a larger batch is cut. Results do not depend on it.
constexpr int max_rows = 512;
// Rows of logits held at a time: for a vocabulary of 262,144 a row is a megabyte.
constexpr int max_head_rows = 64;

// The parts of `spans` that lie in rows [begin, end), with rows counted from `begin`.
std::vector<SequenceSpan> cut(std::span<const SequenceSpan> spans, int begin, int end) {
  std::vector<SequenceSpan> part;
  for (const SequenceSpan& span : spans) {
    const int from = std::max(span.row_begin, begin);
    const int to = std::min(span.row_begin + span.rows, end);
    if (from >= to) continue;
    part.push_back(
        {from - begin, to - from, span.context + (from - span.row_begin), span.block_table});
  }
  return part;
}

std::int64_t count_parameters(const Checkpoint& checkpoint) {
  std::int64_t count = 0;
  for (const TensorShape& shape : tensors_of(checkpoint.config())) {
    if (checkpoint.tensor(shape.name) != nullptr) count += shape.rows * shape.cols;
  }
  return count;
}

// Two models with the same digest may exchange KV bytes.
Digest kv_digest(const Checkpoint& checkpoint, const kernels::Backend& backend) {
  constexpr std::string_view layout = "block,layer,kv,head,token,bf16";
  DigestBuilder builder;
  const Digest content = checkpoint.digest();
  builder.bytes(content.data(), content.size());
  builder.text(backend.numerics_profile());
  builder.text(layout);
  return builder.finish();
}

std::string mebibytes(std::size_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

}  // namespace

Transformer::Transformer(const Checkpoint& checkpoint, kernels::Backend& backend, int context)
    : backend_(backend),
      config_(checkpoint.config()),
      info_{config_.name,
            config_.architecture,
            count_parameters(checkpoint),
            config_.vocab_size,
            context,
            kv_digest(checkpoint, backend)},
      weights_(load_weights(checkpoint, backend, context)) {
  if (config_.attention_scale == 0) {
    config_.attention_scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
  }
  allocate_scratch();
}

void Transformer::allocate_scratch() {
  const std::size_t d = config_.hidden;
  const std::size_t q = std::size_t(config_.heads) * config_.head_dim;
  const std::size_t kv = std::size_t(config_.kv_heads) * config_.head_dim;
  const std::size_t f = config_.feed_forward;
  // Whole cache lines apart, so that every matrix begins on one.
  const auto floats = [](std::size_t rows, std::size_t cols) {
    return (rows * cols + 15) / 16 * 16;
  };

  struct Part {
    float** place;
    std::size_t size;
  };

  const Part parts[] = {
      {&scratch_.hidden, floats(max_rows, d)},
      {&scratch_.normed, floats(max_rows, d)},
      {&scratch_.qkv, floats(max_rows, q + 2 * kv)},
      {&scratch_.queries, floats(max_rows, q)},
      {&scratch_.mixed, floats(max_rows, q)},
      {&scratch_.gate_up, floats(max_rows, 2 * f)},
      {&scratch_.gated, floats(max_rows, f)},
      {&scratch_.logits, floats(max_head_rows, config_.vocab_size)},
  };
  std::size_t total = 0;
  for (const Part& part : parts)
    total += part.size;
  scratch_.memory = backend_.allocate(total * sizeof(float));
  auto* next = static_cast<float*>(scratch_.memory->data());
  for (const Part& part : parts) {
    *part.place = next;
    next += part.size;
  }
}

kernels::KvLayout Transformer::layout(int block_tokens) const {
  return {config_.layers, config_.kv_heads, config_.head_dim, block_tokens};
}

std::size_t Transformer::kv_block_bytes(int block_tokens) const {
  return layout(block_tokens).block_bytes();
}

void Transformer::allocate_kv(int blocks, int block_tokens) {
  const std::size_t block_bytes = kv_block_bytes(block_tokens);
  const std::size_t bytes = block_bytes * static_cast<std::size_t>(blocks);
  try {
    kv_memory_ = backend_.allocate(bytes);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error("there is no room for " + std::to_string(blocks) + " KV blocks of "
                             + std::to_string(block_tokens) + " tokens (" + mebibytes(block_bytes)
                             + " each, " + mebibytes(bytes)
                             + " together); ask for less KV memory or a shorter context");
  }
  pool_ = {kv_memory_->data(), layout(block_tokens), blocks};
}

void Transformer::check(const Batch& batch, std::size_t logits) const {
  for (const std::int32_t token : batch.tokens) {
    if (token < 0 || token >= info_.vocab_size) {
      throw std::invalid_argument("token id " + std::to_string(token)
                                  + " is outside the vocabulary of "
                                  + std::to_string(info_.vocab_size));
    }
  }
  const int rows = static_cast<int>(batch.tokens.size());
  int next_row = 0;
  for (const SequenceSpan& span : batch.spans) {
    if (span.row_begin != next_row || span.rows < 1) {
      throw std::invalid_argument("the spans of a batch must cover its rows in order");
    }
    if (span.context < 0 || span.context > info_.context - span.rows) {
      throw std::invalid_argument("position " + std::to_string(span.context + span.rows - 1)
                                  + " is beyond the context of " + std::to_string(info_.context));
    }
    next_row += span.rows;
  }
  if (next_row != rows) {
    throw std::invalid_argument("the spans of a batch must cover its rows in order");
  }
  int previous = -1;
  for (const std::int32_t row : batch.logits_rows) {
    if (row <= previous || row >= rows) {
      throw std::invalid_argument("logits rows must ascend and lie within the batch");
    }
    previous = row;
  }
  if (logits != batch.logits_rows.size() * static_cast<std::size_t>(info_.vocab_size)) {
    throw std::invalid_argument("the logits of a batch need rows x vocabulary floats");
  }
}

void Transformer::forward(const Batch& batch, std::span<float> logits) {
  check(batch, logits.size());
  const std::span<const std::int32_t> tokens(batch.tokens);
  const auto total = static_cast<int>(tokens.size());
  auto wanted = batch.logits_rows.begin();
  float* out = logits.data();
  for (int begin = 0; begin < total; begin += max_rows) {
    const int end = std::min(begin + max_rows, total);
    run_rows(tokens.subspan(begin, end - begin), cut(batch.spans, begin, end));

    std::vector<std::int32_t> rows;
    for (; wanted != batch.logits_rows.end() && *wanted < end; ++wanted) {
      rows.push_back(*wanted - begin);
    }
    head(end - begin, rows, out);
    out += rows.size() * static_cast<std::size_t>(info_.vocab_size);
  }
}

void Transformer::run_rows(std::span<const std::int32_t> tokens,
                           std::span<const SequenceSpan> spans) {
  const Rows hidden{scratch_.hidden, static_cast<int>(tokens.size()), config_.hidden};
  backend_.embed(tokens, *weights_.embedding, config_.embedding_scale, hidden);
  for (int layer = 0; layer < config_.layers; ++layer) {
    attend(layer, hidden, spans);
    feed_forward(weights_.layers[layer], hidden);
  }
}

void Transformer::attend(int index, Rows hidden, std::span<const SequenceSpan> spans) {
  const LayerWeights& layer = weights_.layers[index];
  const bool sliding = is_sliding(index);
  const DeviceRope& rope =
      sliding && weights_.local_rope.cos.memory ? weights_.local_rope : weights_.global_rope;
  const int q_cols = config_.heads * config_.head_dim;
  const int kv_cols = config_.kv_heads * config_.head_dim;
  const Rows normed{scratch_.normed, hidden.rows, hidden.cols};
  const Rows qkv{scratch_.qkv, hidden.rows, q_cols + 2 * kv_cols};
  const Rows queries{scratch_.queries, hidden.rows, q_cols};
  const Rows mixed{scratch_.mixed, hidden.rows, q_cols};

  backend_.rms_norm(hidden, layer.attention_norm.data(), config_.norm_epsilon, normed);
  backend_.linear(normed, *layer.qkv, layer.qkv_bias.data(), false, qkv);
  backend_.append_kv({qkv,
                      layer.q_norm.data(),
                      layer.k_norm.data(),
                      config_.norm_epsilon,
                      {rope.cos.data(), rope.sin.data(), config_.rope_pairing},
                      queries},
                     pool_, index, spans);
  backend_.attention(
      {queries, config_.attention_scale, sliding ? config_.sliding_window : 0, mixed}, pool_, index,
      spans);
  if (layer.post_attention_norm.memory) {
    backend_.linear(mixed, *layer.attention_output, nullptr, false, normed);
    backend_.rms_norm(normed, layer.post_attention_norm.data(), config_.norm_epsilon, normed);
    backend_.add(hidden, normed);
  } else {
    backend_.linear(mixed, *layer.attention_output, layer.attention_output_bias.data(), true,
                    hidden);
  }
}

void Transformer::feed_forward(const LayerWeights& layer, Rows hidden) {
  const Rows normed{scratch_.normed, hidden.rows, hidden.cols};
  const Rows gate_up{scratch_.gate_up, hidden.rows, 2 * config_.feed_forward};
  const Rows gated{scratch_.gated, hidden.rows, config_.feed_forward};

  backend_.rms_norm(hidden, layer.feed_forward_norm.data(), config_.norm_epsilon, normed);
  backend_.linear(normed, *layer.gate_up, nullptr, false, gate_up);
  backend_.gated_activation(gate_up, config_.activation, gated);
  if (layer.post_feed_forward_norm.memory) {
    backend_.linear(gated, *layer.down, nullptr, false, normed);
    backend_.rms_norm(normed, layer.post_feed_forward_norm.data(), config_.norm_epsilon, normed);
    backend_.add(hidden, normed);
  } else {
    backend_.linear(gated, *layer.down, nullptr, true, hidden);
  }
}

void Transformer::head(int rows, std::span<const std::int32_t> wanted, float* logits) {
  const Rows hidden{scratch_.hidden, rows, config_.hidden};
  while (!wanted.empty()) {
    const int count = std::min(static_cast<int>(wanted.size()), max_head_rows);
    const Rows picked{scratch_.normed, count, config_.hidden};
    const Rows device{scratch_.logits, count, config_.vocab_size};
    backend_.gather_rows(hidden, wanted.first(count), picked);
    backend_.rms_norm(picked, weights_.output_norm.data(), config_.norm_epsilon, picked);
    backend_.linear(picked, weights_.head(), nullptr, false, device);
    const std::size_t floats = static_cast<std::size_t>(count) * config_.vocab_size;
    backend_.download(device.data, logits, floats * sizeof(float));
    logits += floats;
    wanted = wanted.subspan(count);
  }
}

void Transformer::copy_block(int from, int to, int tokens) {
  backend_.copy_block(pool_, from, to, tokens);
}

bool Transformer::is_sliding(int layer) const {
  if (config_.sliding_window == 0) return false;
  return config_.sliding_pattern == 0 || (layer + 1) % config_.sliding_pattern != 0;
}

std::unique_ptr<Model> load_model(const Checkpoint& checkpoint, kernels::Backend& backend,
                                  int context) {
  const int own = checkpoint.config().context;
  if (context < 0 || context > own) {
    throw std::runtime_error("a context of " + std::to_string(context)
                             + " tokens was asked for, but the model was made for "
                             + std::to_string(own));
  }
  if (context == 0) context = own;
  try {
    return std::make_unique<Transformer>(checkpoint, backend, context);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error("there is not enough memory to load " + checkpoint.config().name
                             + " with a context of " + std::to_string(context)
                             + " tokens; try a smaller context or a smaller model");
  }
}

}  // namespace incipit::gateway
