// A model double whose KV says what it is of. Each KV cell holds a token and a hash of the whole
// prefix up to it, so that `forward` can prove that a block table leads to exactly the KV of the
// tokens before: any mistake of pool, index or scheduler throws here or changes an output. Logits
// are a pure function of the prefix, so the right output of every request can be computed apart.
#pragma once

#include "gateway/engine/generation.h"
#include "gateway/engine/sampler.h"
#include "gateway/model/model.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace incipit::gateway {

// splitmix64's finaliser.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

inline std::uint64_t extend_prefix(std::uint64_t prefix, std::int32_t token) {
  return mix(prefix ^ mix(static_cast<std::uint64_t>(token) + 1));
}

inline void scripted_logits(std::uint64_t prefix, std::span<float> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(mix(prefix + i) >> 40) * 0x1p-21F;  // 0 to 8
  }
}

class ScriptedModel : public Model {
 public:
  ScriptedModel(int context, int vocab_size) {
    info_.name = "scripted";
    info_.context = context;
    info_.vocab_size = vocab_size;
  }

  [[nodiscard]] const ModelInfo& info() const override { return info_; }

  [[nodiscard]] std::size_t kv_block_bytes(int block_tokens) const override {
    return 100 * static_cast<std::size_t>(block_tokens);
  }

  void allocate_kv(int blocks, int block_tokens) override {
    block_tokens_ = block_tokens;
    cells_.assign(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(block_tokens), {});
  }

  void forward(const Batch& batch, std::span<float> logits) override {
    if (before_forward) before_forward(batch);
    std::vector<std::uint64_t> prefixes;
    std::set<const Cell*> written;
    for (const kernels::SequenceSpan& span : batch.spans) {
      require(span.row_begin == static_cast<int>(prefixes.size()), "spans leave a gap");
      std::uint64_t prefix = 0;
      for (int p = 0; p < span.context; ++p) {
        const Cell& cell = at(span, p);
        prefix = extend_prefix(prefix, cell.token);
        require(cell.prefix == prefix, "wrong KV at position " + std::to_string(p));
      }
      for (int i = 0; i < span.rows; ++i) {
        const std::int32_t token = batch.tokens.at(prefixes.size());
        prefix = extend_prefix(prefix, token);
        Cell& cell = at(span, span.context + i);
        require(written.insert(&cell).second, "two rows write one cell");
        cell = {token, prefix};
        prefixes.push_back(prefix);
      }
    }
    require(prefixes.size() == batch.tokens.size(), "spans do not cover the rows");
    const auto vocab = static_cast<std::size_t>(info_.vocab_size);
    require(logits.size() == batch.logits_rows.size() * vocab, "wrong size of logits");
    for (std::size_t i = 0; i < batch.logits_rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(batch.logits_rows[i]);
      scripted_logits(prefixes.at(row), logits.subspan(i * vocab, vocab));
      if (batch.tokens[row] == poison_token) {
        logits[i * vocab] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    rows += static_cast<std::int64_t>(batch.tokens.size());
  }

  void copy_block(int from, int to, int tokens) override {
    require(from != to && tokens > 0 && tokens < block_tokens_, "a senseless copy");
    for (int i = 0; i < tokens; ++i)
      cell(to, i) = cell(from, i);
    ++copies;
  }

  std::function<void(const Batch&)> before_forward;
  std::int32_t poison_token = -2;  // a row with this token yields logits that are no numbers
  std::int64_t rows = 0;
  std::int64_t copies = 0;

 private:
  struct Cell {
    std::int32_t token = -1;
    std::uint64_t prefix = 0;
  };

  static void require(bool condition, const std::string& what) {
    if (!condition) throw std::logic_error("scripted model: " + what);
  }

  Cell& cell(int block, int slot) {
    return cells_.at(static_cast<std::size_t>(block) * static_cast<std::size_t>(block_tokens_)
                     + static_cast<std::size_t>(slot));
  }

  Cell& at(const kernels::SequenceSpan& span, int position) {
    return cell(span.block_table[position / block_tokens_], position % block_tokens_);
  }

  ModelInfo info_;
  int block_tokens_ = 0;
  std::vector<Cell> cells_;
};

struct Output {
  std::vector<std::int32_t> tokens;
  FinishReason reason = FinishReason::cancelled;
};

// What a request must yield if nothing interrupts it: computed from its tokens alone.
inline Output scripted_output(const GenerationRequest& request, int context, int vocab_size) {
  Output output;
  Sampler sampler;
  std::vector<float> logits(static_cast<std::size_t>(vocab_size));
  std::uint64_t prefix = 0;
  for (const std::int32_t token : request.tokens)
    prefix = extend_prefix(prefix, token);
  for (int length = static_cast<int>(request.tokens.size());; ++length) {
    if (static_cast<int>(output.tokens.size()) == request.max_tokens) {
      output.reason = FinishReason::max_tokens;
      return output;
    }
    if (length == context) {
      output.reason = FinishReason::context_full;
      return output;
    }
    scripted_logits(prefix, logits);
    const std::int32_t token =
        sampler.sample(logits, request.sampling, static_cast<std::uint64_t>(length)).value();
    for (const std::int32_t stop : request.stop_tokens) {
      if (token != stop) continue;
      output.reason = FinishReason::stop_token;
      return output;
    }
    output.tokens.push_back(token);
    prefix = extend_prefix(prefix, token);
  }
}

}  // namespace incipit::gateway
