// The contract between the model and the machine: what a forward pass needs, and nothing else.
//
// Shapes. T = rows (tokens) in this call, d = hidden size, H = query heads, G = key/value heads,
// D = head size, F = feed-forward size, V = vocabulary, P = tokens per KV block. Activations are
// float32, row-major. Pointers named "device" are memory made by this backend's `allocate`.
//
// Numerics. Every output row is a pure function of its input row, the weights, the KV prefix and
// the position: it does not depend on T, on the other rows, on how a prompt was cut into calls, on
// which physical KV blocks are used, or on the number of threads. Tests compare with memcmp.
//
// Threads. One thread at a time may call a backend. Calls are synchronous on `cpu`.
// Errors. Impossible shapes are programming errors (assert). Running out of memory throws
// std::bad_alloc.
#pragma once

#include "kernels/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::kernels {

// A packed weight matrix in the backend's own layout, made once at load by `Backend::pack`.
class Weight {
 public:
  virtual ~Weight() = default;
  [[nodiscard]] virtual int rows() const = 0;           // outputs (N)
  [[nodiscard]] virtual int cols() const = 0;           // inputs (K)
  [[nodiscard]] virtual std::size_t bytes() const = 0;  // memory held
};

// Device memory, freed with the object.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual void* data() = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
};

// A device matrix of float32 activations, row-major and dense.
struct Rows {
  float* data = nullptr;
  int rows = 0;
  int cols = 0;
};

// Where keys and values live: blocks[block][layer][K|V][kv head][token in block][D], bf16.
// One block is one contiguous extent over all layers.
struct KvLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int block_tokens = 64;

  [[nodiscard]] std::size_t block_bytes() const {
    return std::size_t{2} * 2 * layers * kv_heads * head_dim * block_tokens;
  }
};

struct KvPool {
  void* data = nullptr;  // device, layout.block_bytes() per block
  KvLayout layout;
  int blocks = 0;
};

// A run of consecutive rows of one sequence. Row i of the run is the token at position
// `context + i`; positions [0, context) are already in the pool. `block_table[p / P]` is the block
// that holds position p; it covers `context + rows` positions. Host memory, alive during the call.
struct SequenceSpan {
  int row_begin = 0;
  int rows = 0;
  int context = 0;
  const std::int32_t* block_table = nullptr;
};

enum class RopePairing : std::uint8_t {
  halves,       // (x[i], x[i + D/2]): NeoX style, used by HF checkpoints, Qwen, Gemma
  interleaved,  // (x[2i], x[2i+1]): used by GGUF files of the llama architecture
};

// Rotary tables for every position: cos and sin [max_position][D/2] float32 in device memory.
// Computed by the model on the host in double precision.
struct Rope {
  const float* cos = nullptr;
  const float* sin = nullptr;
  RopePairing pairing = RopePairing::halves;
};

struct QkvArguments {
  Rows qkv;                       // [T][(H + 2G) * D]: q heads, then k heads, then v heads
  const float* q_norm = nullptr;  // [D] RMSNorm weight applied per head before rotation, or null
  const float* k_norm = nullptr;  // [D], or null
  float norm_epsilon = 0;
  Rope rope;
  Rows q_out;  // [T][H * D], rotated queries
};

struct AttentionArguments {
  Rows q;           // [T][H * D]
  float scale = 0;  // multiplies q·k
  int window = 0;   // a row at position p sees positions > p - window; 0 = all
  Rows out;         // [T][H * D]
};

enum class Activation : std::uint8_t { silu, gelu_tanh };

// How `linear` rounds the inputs of a weight: to one bf16 number, or to the sum of two (16 bits of
// mantissa for twice the arithmetic), for models whose activations have outliers.
enum class InputPrecision : std::uint8_t { bf16, two_bf16 };

class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu (AVX-512 BF16, 2 threads)": for people.
  [[nodiscard]] virtual std::string description() const = 0;
  // Names the arithmetic: two backends with the same profile give the same bits. Goes into the
  // root of the KV hash chain.
  [[nodiscard]] virtual std::string numerics_profile() const = 0;

  [[nodiscard]] virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;  // zeroed
  virtual void upload(const void* host, void* device, std::size_t bytes) = 0;
  virtual void download(const void* device, void* host, std::size_t bytes) = 0;

  // Repacks a matrix for `linear` and `embed`. Several tensors with equal `cols` may be stacked by
  // rows (q, k, v or gate, up) into one weight, each with its own dtype. The source may be unmapped
  // afterwards.
  [[nodiscard]] virtual std::unique_ptr<Weight> pack(
      std::span<const HostTensor> stacked, InputPrecision inputs = InputPrecision::bf16) = 0;

  // x[t] = float(table row ids[t]) * scale. ids: host memory.
  virtual void embed(std::span<const std::int32_t> ids, const Weight& table, float scale,
                     Rows x) = 0;

  // y = x / sqrt(mean(x²) + epsilon) * weight, per row. weight: [cols] device. y may be x.
  virtual void rms_norm(Rows x, const float* weight, float epsilon, Rows y) = 0;

  // y = x · Wᵀ (+ bias), or y += x · Wᵀ (+ bias) when `accumulate`. x [T][K], y [T][N],
  // bias [N] device or null. Inputs are rounded as the weight was packed for; weights are exact
  // (bf16 for f32 and f16 sources); sums are float32. |error| against float64 on the same weights
  // is at most 2^-8 · Σ|x·w|, for two_bf16 inputs 2^-15 · Σ|x·w|.
  virtual void linear(Rows x, const Weight& weight, const float* bias, bool accumulate, Rows y) = 0;

  // y[t][j] = activation(x[t][j]) * x[t][F + j]. x [T][2F], y [T][F].
  virtual void gated_activation(Rows x, Activation activation, Rows y) = 0;

  // x += y. Same shape.
  virtual void add(Rows x, Rows y) = 0;

  // y[i] = x[rows[i]]. rows: host memory. y must not overlap x.
  virtual void gather_rows(Rows x, std::span<const std::int32_t> rows, Rows y) = 0;

  // Normalises (if asked) and rotates q and k, writes k and v of `layer` to the pool as bf16, and
  // leaves rotated q in q_out.
  virtual void append_kv(const QkvArguments& arguments, const KvPool& pool, int layer,
                         std::span<const SequenceSpan> spans) = 0;

  // Causal attention of each row over its sequence, up to and including its own position, which
  // `append_kv` has already written. Fixed 64-position tiles, online softmax.
  virtual void attention(const AttentionArguments& arguments, const KvPool& pool, int layer,
                         std::span<const SequenceSpan> spans) = 0;

  // Copies the first `tokens` positions of every layer from one block to another.
  virtual void copy_block(const KvPool& pool, int from, int to, int tokens) = 0;
};

struct BackendOptions {
  int threads = 0;  // 0 = one per core this process may use
  // Cpu only: use nothing above this level ("avx512", "avx2", "plain"); empty = the best there is.
  std::string max_isa;
};

// `name` is "auto", "cpu" or "cuda". Throws std::runtime_error that lists what this machine has
// when the named one is not available.
[[nodiscard]] std::unique_ptr<Backend> make_backend(std::string_view name,
                                                    const BackendOptions& options);

// The instruction-set levels of the cpu backend usable on this machine, best first.
[[nodiscard]] std::vector<std::string> cpu_isa_levels();

}  // namespace incipit::kernels
