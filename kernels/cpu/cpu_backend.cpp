#include "kernels/cpu/cpu_backend.h"

#include "kernels/cpu/aligned_memory.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/linear_plan.h"
#include "kernels/cpu/packed_weight.h"
#include "kernels/cpu/worker_pool.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace incipit::kernels {
namespace {

// Row operations below this many floats are done by the caller: waking a worker costs more.
constexpr std::size_t floats_worth_sharing = 16384;

class CpuBuffer : public Buffer {
 public:
  explicit CpuBuffer(std::size_t bytes) : memory_(std::max<std::size_t>(bytes, 1)), size_(bytes) {
    std::memset(memory_.data(), 0, memory_.size());
  }

  [[nodiscard]] void* data() override { return memory_.data(); }

  [[nodiscard]] std::size_t size() const override { return size_; }

 private:
  AlignedMemory memory_;
  std::size_t size_;
};

// Every level there is, best first.
constexpr std::array<std::string_view, 4> level_names{"amx", "avx512", "avx2", "plain"};

// The best usable level that is not above the named one.
const KernelTable& choose_level(const std::string& highest) {
  const auto* const limit =
      highest.empty() ? level_names.begin() : std::ranges::find(level_names, highest);
  if (limit == level_names.end()) {
    throw std::runtime_error("backend \"cpu\": unknown instruction set \"" + highest
                             + "\", use amx, avx512, avx2 or plain");
  }
  for (const KernelTable* level : usable_levels()) {
    if (std::ranges::find(level_names, level->level) >= limit) return *level;
  }
  return plain_kernels;
}

std::string level_title(std::string_view level) {
  if (level == "amx") return "AMX BF16";
  if (level == "avx512") return "AVX-512";
  if (level == "avx2") return "AVX2";
  return "no vector extensions";
}

int thread_count(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options)
      : kernels_(choose_level(options.max_isa)),
        pool_(thread_count(options.threads)),
        linear_(kernels_, pool_),
        attention_(kernels_, pool_) {}

  [[nodiscard]] std::string description() const override {
    const int threads = pool_.threads();
    return "cpu (" + level_title(kernels_.level) + ", " + std::to_string(threads)
           + (threads == 1 ? " thread)" : " threads)");
  }

  // All levels add in one order with the same roundings, see linear_kernels.h.
  [[nodiscard]] std::string numerics_profile() const override { return "cpu-f32-g32-1"; }

  [[nodiscard]] std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<CpuBuffer>(bytes);
  }

  void upload(const void* host, void* device, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }

  void download(const void* device, void* host, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }

  [[nodiscard]] std::unique_ptr<Weight> pack(std::span<const HostTensor> stacked,
                                             InputPrecision inputs) override {
    return std::make_unique<PackedWeight>(stacked, inputs, pool_);
  }

  void embed(std::span<const std::int32_t> ids, const Weight& table, float scale, Rows x) override {
    const auto& weight = dynamic_cast<const PackedWeight&>(table);
    assert(x.cols == weight.cols() && x.rows == static_cast<int>(ids.size()));
    each_row(x.rows, x.cols, [&](int row) {
      float* out = row_of(x, row);
      assert(ids[row] >= 0 && ids[row] < weight.rows());
      weight.read_row(ids[row], out);
      for (int i = 0; i < x.cols; ++i)
        out[i] *= scale;
    });
  }

  void rms_norm(Rows x, const float* weight, float epsilon, Rows y) override {
    assert(x.rows == y.rows && x.cols == y.cols);
    each_row(x.rows, x.cols, [&](int row) {
      kernels_.rms_norm(row_of(x, row), weight, epsilon, x.cols, row_of(y, row));
    });
  }

  void linear(Rows x, const Weight& weight, const float* bias, bool accumulate, Rows y) override {
    linear_.run(x, dynamic_cast<const PackedWeight&>(weight), bias, accumulate, y);
  }

  void gated_activation(Rows x, Activation activation, Rows y) override {
    assert(x.rows == y.rows && x.cols == 2 * y.cols);
    each_row(x.rows, x.cols, [&](int row) {
      kernels_.gated_activation(row_of(x, row), activation, y.cols, row_of(y, row));
    });
  }

  void add(Rows x, Rows y) override {
    assert(x.rows == y.rows && x.cols == y.cols);
    each_row(x.rows, x.cols, [&](int row) {
      kernels_.add(row_of(x, row), row_of(y, row), static_cast<std::size_t>(x.cols));
    });
  }

  void gather_rows(Rows x, std::span<const std::int32_t> rows, Rows y) override {
    assert(x.cols == y.cols && y.rows == static_cast<int>(rows.size()));
    for (int row = 0; row < y.rows; ++row) {
      assert(rows[row] >= 0 && rows[row] < x.rows);
      std::memcpy(row_of(y, row), row_of(x, rows[row]),
                  static_cast<std::size_t>(x.cols) * sizeof(float));
    }
  }

  void append_kv(const QkvArguments& arguments, const KvPool& pool, int layer,
                 std::span<const SequenceSpan> spans) override {
    const PoolView view(pool, layer);
    const KvLayout& layout = pool.layout;
    AppendRow shared;
    shared.geometry = {arguments.q_out.cols / layout.head_dim, layout.kv_heads, layout.head_dim};
    assert(layout.head_dim % 2 == 0 && layout.head_dim <= 1024);
    assert(arguments.qkv.cols == (shared.geometry.heads + 2 * layout.kv_heads) * layout.head_dim);
    shared.q_norm = arguments.q_norm;
    shared.k_norm = arguments.k_norm;
    shared.epsilon = arguments.norm_epsilon;
    shared.pairing = arguments.rope.pairing;
    shared.head_stride = view.head_bytes() / sizeof(std::uint16_t);
    for (const SequenceSpan& span : spans) {
      assert(span.row_begin + span.rows <= arguments.qkv.rows);
      each_row(span.rows, arguments.qkv.cols, [&](int i) {
        AppendRow row = shared;
        const int position = span.context + i;
        row.qkv = row_of(arguments.qkv, span.row_begin + i);
        row.q_out = row_of(arguments.q_out, span.row_begin + i);
        const std::size_t table_row = static_cast<std::size_t>(position) * (layout.head_dim / 2);
        row.cos = arguments.rope.cos + table_row;
        row.sin = arguments.rope.sin + table_row;
        std::uint8_t* block = view.block(span.block_table[position / layout.block_tokens]);
        const std::size_t within = static_cast<std::size_t>(position % layout.block_tokens)
                                   * layout.head_dim * sizeof(std::uint16_t);
        row.keys = reinterpret_cast<std::uint16_t*>(block + view.key_offset(0) + within);
        row.values = reinterpret_cast<std::uint16_t*>(block + view.value_offset(0) + within);
        kernels_.append_row(row);
      });
    }
  }

  void attention(const AttentionArguments& arguments, const KvPool& pool, int layer,
                 std::span<const SequenceSpan> spans) override {
    attention_.run(arguments, pool, layer, spans);
  }

  void copy_block(const KvPool& pool, int from, int to, int tokens) override {
    const KvLayout& layout = pool.layout;
    assert(tokens >= 0 && tokens <= layout.block_tokens);
    const std::size_t token_bytes = std::size_t{2} * layout.head_dim;
    const std::size_t run_bytes = token_bytes * layout.block_tokens;
    auto* base = static_cast<std::byte*>(pool.data);
    const std::byte* source = base + from * layout.block_bytes();
    std::byte* target = base + to * layout.block_bytes();
    for (int run = 0; run < layout.layers * 2 * layout.kv_heads; ++run) {
      std::memcpy(target + run * run_bytes, source + run * run_bytes, tokens * token_bytes);
    }
  }

 private:
  static float* row_of(const Rows& rows, int row) {
    return rows.data + static_cast<std::size_t>(row) * rows.cols;
  }

  template <class Body>
  void each_row(int rows, int cols, Body&& body) {
    const std::size_t floats = static_cast<std::size_t>(rows) * cols;
    const int wanted = floats < floats_worth_sharing ? 1 : pool_.threads() * 4;
    const int rows_per_item = std::max(1, (rows + wanted - 1) / wanted);
    pool_.run((rows + rows_per_item - 1) / rows_per_item, [&](int item, int) {
      const int end = std::min(rows, (item + 1) * rows_per_item);
      for (int row = item * rows_per_item; row < end; ++row)
        body(row);
    });
  }

  const KernelTable& kernels_;
  WorkerPool pool_;
  LinearPlan linear_;
  AttentionPlan attention_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

std::vector<std::string> cpu_isa_levels() {
  std::vector<std::string> names;
  for (const KernelTable* level : usable_levels())
    names.emplace_back(level->level);
  return names;
}

}  // namespace incipit::kernels
