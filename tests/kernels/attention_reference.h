// A small sequence with its cache, and what attention over it gives in float64.
#pragma once

#include "tests/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace incipit::kernels::test {

struct Shape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int block_tokens = 64;
  int window = 0;
};

// Inputs of one sequence, fixed by the seed: a row of qkv per position.
struct Sequence {
  Shape shape;
  int length = 0;
  std::vector<float> qkv;
  std::vector<float> cos;
  std::vector<float> sin;
  std::vector<float> q_norm;
  std::vector<float> k_norm;
  RopePairing pairing = RopePairing::halves;

  Sequence(Shape of, int tokens, unsigned seed) : shape(of), length(tokens) {
    qkv = random_floats(static_cast<std::size_t>(tokens) * width(), seed, 1.5F);
    const int half = of.head_dim / 2;
    for (int p = 0; p < tokens; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000.0, -static_cast<double>(i) / half);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }

  [[nodiscard]] int width() const { return (shape.heads + 2 * shape.kv_heads) * shape.head_dim; }

  [[nodiscard]] int out_width() const { return shape.heads * shape.head_dim; }

  [[nodiscard]] float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }
};

// A pool whose unwritten slots hold NaN, and a block table in shuffled order.
struct Cache {
  KvLayout layout;
  std::vector<std::uint16_t> memory;
  std::vector<std::int32_t> table;
  KvPool pool;

  Cache(const Shape& shape, int tokens, unsigned seed, int layers = 2) {
    layout = {layers, shape.kv_heads, shape.head_dim, shape.block_tokens};
    const int used = (tokens + shape.block_tokens - 1) / shape.block_tokens;
    const int blocks = used + 3;
    memory.assign(layout.block_bytes() / 2 * blocks, 0x7fc0);
    std::vector<std::int32_t> order(static_cast<std::size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    table.assign(order.begin(), order.begin() + used);
    pool = {memory.data(), layout, blocks};
  }

  [[nodiscard]] const std::uint16_t* at(int layer, bool value, int head, int position) const {
    const auto block = static_cast<std::size_t>(table[position / layout.block_tokens]);
    const std::size_t row =
        ((static_cast<std::size_t>(layer) * 2 + (value ? 1 : 0)) * layout.kv_heads + head)
            * layout.block_tokens
        + position % layout.block_tokens;
    return memory.data() + block * layout.block_bytes() / 2 + row * layout.head_dim;
  }
};

// Appends and attends rows [begin, end) of the sequence; writes their outputs into `out`.
inline void run_rows(Backend& backend, Sequence& sequence, Cache& cache, int layer, int begin,
                     int end, std::vector<float>& q, std::vector<float>& out) {
  const int rows = end - begin;
  const Shape& shape = sequence.shape;
  QkvArguments append;
  append.qkv = {sequence.qkv.data() + static_cast<std::size_t>(begin) * sequence.width(), rows,
                sequence.width()};
  append.q_norm = sequence.q_norm.empty() ? nullptr : sequence.q_norm.data();
  append.k_norm = sequence.k_norm.empty() ? nullptr : sequence.k_norm.data();
  append.norm_epsilon = 1e-6F;
  append.rope = {sequence.cos.data(), sequence.sin.data(), sequence.pairing};
  const std::size_t first = static_cast<std::size_t>(begin) * sequence.out_width();
  append.q_out = {q.data() + first, rows, sequence.out_width()};
  const SequenceSpan spans[] = {{0, rows, begin, cache.table.data()}};
  backend.append_kv(append, cache.pool, layer, spans);
  AttentionArguments attend;
  attend.q = append.q_out;
  attend.scale = sequence.scale();
  attend.window = shape.window;
  attend.out = {out.data() + first, rows, sequence.out_width()};
  backend.attention(attend, cache.pool, layer, spans);
}

// Attention of the row at `position` for `head`, over the keys and values in the cache.
inline std::vector<double> reference_attention(const Sequence& sequence, const Cache& cache,
                                               int layer, const float* q, int position, int head) {
  const Shape& shape = sequence.shape;
  const int kv_head = head / (shape.heads / shape.kv_heads);
  const int first = shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
  std::vector<double> weights;
  double largest = -std::numeric_limits<double>::infinity();
  for (int p = first; p <= position; ++p) {
    const std::uint16_t* key = cache.at(layer, false, kv_head, p);
    double score = 0;
    for (int d = 0; d < shape.head_dim; ++d) {
      score += static_cast<double>(rounded_to_bf16(q[d])) * bf16_value(key[d]);
    }
    weights.push_back(score * sequence.scale());
    largest = std::max(largest, weights.back());
  }
  double total = 0;
  for (double& weight : weights)
    total += weight = std::exp(weight - largest);
  std::vector<double> out(static_cast<std::size_t>(shape.head_dim));
  for (int p = first; p <= position; ++p) {
    const std::uint16_t* value = cache.at(layer, true, kv_head, p);
    for (int d = 0; d < shape.head_dim; ++d) {
      out[d] += weights[p - first] / total * bf16_value(value[d]);
    }
  }
  return out;
}

}  // namespace incipit::kernels::test
