// Operations on single rows: norm, activation, rotation, writing keys and values.
#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lanes.h"

namespace incipit::kernels::INCIPIT_LEVEL {

constexpr int max_head_dim = 1024;

// The first `count` lanes from memory, the others zero.
INCIPIT_INLINE Lanes load_first(const float* p, int count) {
  if (count >= lane_count) return load(p);
  float buffer[lane_count] = {};
  for (int i = 0; i < count; ++i)
    buffer[i] = p[i];
  return load(buffer);
}

INCIPIT_INLINE void store_first(float* p, int count, Lanes a) {
  if (count >= lane_count) {
    store(p, a);
    return;
  }
  float buffer[lane_count];
  store(buffer, a);
  for (int i = 0; i < count; ++i)
    p[i] = buffer[i];
}

// e^x to two units in the last place; exactly 1 at 0, exactly 0 below -87.3, finite above 88.
INCIPIT_INLINE Lanes exponential(Lanes x) {
  const Lanes lowest = broadcast(-87.3F);
  const Lanes clamped = min(broadcast(88.0F), max(lowest, x));
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
  const Lanes shift = broadcast(12582912.0F);
  const Lanes shifted = clamped * broadcast(1.44269504F) + shift;
  const Lanes n = shifted - shift;
  const Lanes r = clamped - n * broadcast(0.693359375F) - n * broadcast(-2.12194440e-4F);
  Lanes p = broadcast(1.9875691500e-4F) * r + broadcast(1.3981999507e-3F);
  p = p * r + broadcast(8.3334519073e-3F);
  p = p * r + broadcast(4.1665795894e-2F);
  p = p * r + broadcast(1.6666665459e-1F);
  p = p * r + broadcast(5.0000001201e-1F);
  p = p * (r * r) + r + broadcast(1.0F);
  return where_le(x, lowest, zero(), p * power_of_two(shifted));
}

// 1 / sqrt(mean(x²) + epsilon)
inline float inverse_rms(const float* x, int cols, float epsilon) {
  Lanes squares = zero();
  for (int i = 0; i < cols; i += lane_count) {
    const Lanes v = load_first(x + i, cols - i);
    squares = squares + v * v;
  }
  return 1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(cols) + epsilon);
}

inline void rms_norm(const float* x, const float* weight, float epsilon, int cols, float* y) {
  const Lanes inverse = broadcast(inverse_rms(x, cols, epsilon));
  for (int i = 0; i < cols; i += lane_count) {
    const Lanes v = load_first(x + i, cols - i) * inverse * load_first(weight + i, cols - i);
    store_first(y + i, cols - i, v);
  }
}

inline void gated_activation(const float* x, Activation activation, int cols, float* y) {
  const Lanes one = broadcast(1);
  for (int i = 0; i < cols; i += lane_count) {
    const Lanes gate = load_first(x + i, cols - i);
    // 0.5 (1 + tanh u) = 1 / (1 + e^-2u), so both activations are gate * logistic(u).
    Lanes u = gate;
    if (activation == Activation::gelu_tanh) {
      const Lanes cubic = gate * gate * gate;
      u = broadcast(1.5957691216F) * (gate + broadcast(0.044715F) * cubic);
    }
    const Lanes activated = gate / (one + exponential(zero() - u));
    store_first(y + i, cols - i, activated * load_first(x + cols + i, cols - i));
  }
}

inline void add(float* x, const float* y, std::size_t count) {
  std::size_t i = 0;
  for (; i + lane_count <= count; i += lane_count)
    store(x + i, load(x + i) + load(y + i));
  for (; i < count; ++i)
    x[i] += y[i];
}

// Normalises (if asked) and rotates one head into `out`.
inline void rotate_head(const float* x, const float* norm, const AppendRow& row, float* out) {
  const int dim = row.geometry.head_dim;
  const int half = dim / 2;
  float normalised[max_head_dim];
  if (norm != nullptr) {
    rms_norm(x, norm, row.epsilon, dim, normalised);
    x = normalised;
  }
  if (row.pairing == RopePairing::halves) {
    for (int i = 0; i < half; ++i) {
      const float a = x[i];
      const float b = x[i + half];
      out[i] = a * row.cos[i] - b * row.sin[i];
      out[i + half] = b * row.cos[i] + a * row.sin[i];
    }
  } else {
    for (int i = 0; i < half; ++i) {
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      out[2 * i] = a * row.cos[i] - b * row.sin[i];
      out[2 * i + 1] = b * row.cos[i] + a * row.sin[i];
    }
  }
}

inline void store_row_bf16(const float* x, int count, std::uint16_t* out) {
  for (int i = 0; i < count; i += lane_count) {
    const Lanes rounded = round_to_bf16(load_first(x + i, count - i));
    if (count - i >= lane_count) {
      store_bf16(out + i, rounded);
    } else {
      std::uint16_t buffer[lane_count];
      store_bf16(buffer, rounded);
      for (int j = 0; j < count - i; ++j)
        out[i + j] = buffer[j];
    }
  }
}

inline void append_row(const AppendRow& row) {
  const HeadGeometry& geometry = row.geometry;
  const auto dim = static_cast<std::size_t>(geometry.head_dim);
  const float* x = row.qkv;
  for (int head = 0; head < geometry.heads; ++head, x += dim) {
    rotate_head(x, row.q_norm, row, row.q_out + head * dim);
  }
  float rotated[max_head_dim];
  for (int head = 0; head < geometry.kv_heads; ++head, x += dim) {
    rotate_head(x, row.k_norm, row, rotated);
    store_row_bf16(rotated, geometry.head_dim, row.keys + head * row.head_stride);
  }
  for (int head = 0; head < geometry.kv_heads; ++head, x += dim) {
    store_row_bf16(x, geometry.head_dim, row.values + head * row.head_stride);
  }
}

}  // namespace incipit::kernels::INCIPIT_LEVEL
