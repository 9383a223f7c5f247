#include "kernels/cpu/attention_plan.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace incipit::kernels {
namespace {

// Query columns that share one pass over the keys and values of a tile.
constexpr int columns_per_item = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

constexpr int states_of(int columns) {
  return (columns + panel_rows - 1) / panel_rows;
}

}  // namespace

void AttentionPlan::run(const AttentionArguments& arguments, const KvPool& pool, int layer,
                        std::span<const SequenceSpan> spans) {
  plan(arguments, pool, layer, spans);
  const std::size_t states =
      attention_state_floats(head_dim_) * sizeof(float) * states_of(most_columns_);
  thread_bytes_ = round_up(2 * states + kernels_.attention_scratch(head_dim_, most_columns_), 64);
  scratch_.require(thread_bytes_ * pool_.threads());
  const auto items = static_cast<int>(items_.size());
  const bool has_splits =
      std::any_of(items_.begin(), items_.end(), [](const Item& item) { return item.splits > 1; });
  if (items < 4 * pool_.threads() && has_splits && pool_.threads() > 1) {
    attend_apart();
    return;
  }
  pool_.run(items, [&](int item, int thread) {
    // The last rows see most: they go first, so that no thread is left with the longest item.
    attend_in_order(items_[static_cast<std::size_t>(items - 1 - item)], thread);
  });
}

void AttentionPlan::plan(const AttentionArguments& arguments, const KvPool& pool, int layer,
                         std::span<const SequenceSpan> spans) {
  const KvLayout& layout = pool.layout;
  const PoolView view(pool, layer);
  head_dim_ = layout.head_dim;
  assert(head_dim_ % 2 == 0 && head_dim_ <= 1024);
  assert(arguments.q.cols % (head_dim_ * layout.kv_heads) == 0);
  const int query_heads = arguments.q.cols / head_dim_ / layout.kv_heads;
  const int rows_per_item = std::max(1, columns_per_item / query_heads);
  most_columns_ = rows_per_item * query_heads;
  items_.clear();
  for (const SequenceSpan& span : spans) {
    assert(span.row_begin + span.rows <= arguments.q.rows);
    for (int row = 0; row < span.rows; row += rows_per_item) {
      for (int head = 0; head < layout.kv_heads; ++head) {
        Item item;
        AttentionBlock& block = item.block;
        const std::size_t first = static_cast<std::size_t>(span.row_begin) * arguments.q.cols
                                  + static_cast<std::size_t>(head) * query_heads * head_dim_;
        block.q = arguments.q.data + first;
        block.out = arguments.out.data + first;
        block.row_stride = static_cast<std::size_t>(arguments.q.cols);
        block.row_begin = row;
        block.row_end = std::min(row + rows_per_item, span.rows);
        block.context = span.context;
        block.query_heads = query_heads;
        block.head_dim = head_dim_;
        block.scale = arguments.scale;
        block.window = arguments.window;
        block.pool = view.block(0);
        block.block_bytes = layout.block_bytes();
        block.key_offset = view.key_offset(head);
        block.value_offset = view.value_offset(head);
        block.block_tokens = layout.block_tokens;
        block.block_table = span.block_table;
        const int oldest =
            arguments.window > 0 ? std::max(0, span.context + row - arguments.window + 1) : 0;
        const int newest = span.context + block.row_end - 1;
        item.first_split = oldest / attention_split;
        item.splits = newest / attention_split - item.first_split + 1;
        item.states = states_of((block.row_end - row) * query_heads);
        items_.push_back(item);
      }
    }
  }
}

bool AttentionPlan::attend_rows(const AttentionBlock& block, int first_split, int splits,
                                int thread) {
  const std::size_t state_floats = attention_state_floats(head_dim_);
  const int states = states_of((block.row_end - block.row_begin) * block.query_heads);
  auto* total = reinterpret_cast<float*>(scratch_.data() + thread_bytes_ * thread);
  float* part = total + state_floats * states_of(most_columns_);
  void* kernel_scratch = part + state_floats * states_of(most_columns_);
  for (int split = 0; split < splits; ++split) {
    float* into = split == 0 ? total : part;
    if (!kernels_.attend(block, first_split + split, into, kernel_scratch)) return false;
    if (split == 0) continue;
    for (int i = 0; i < states; ++i) {
      kernels_.merge(total + i * state_floats, part + i * state_floats, head_dim_);
    }
  }
  kernels_.write_attention(block, total);
  return true;
}

void AttentionPlan::attend_in_order(const Item& item, int thread) {
  if (attend_rows(item.block, item.first_split, item.splits, thread)) return;
  // A value that some of the rows must not see is infinite or NaN, and zero times it would be NaN.
  AttentionBlock one = item.block;
  for (int row = item.block.row_begin; row < item.block.row_end; ++row) {
    one.row_begin = row;
    one.row_end = row + 1;
    [[maybe_unused]] const bool done = attend_rows(one, item.first_split, item.splits, thread);
    assert(done);
  }
}

// Few rows over a long context: every split is an item of its own, merged afterwards.
void AttentionPlan::attend_apart() {
  struct Part {
    const Item* item;
    int split;
    float* state;
    bool clean;
  };

  const std::size_t state_floats = attention_state_floats(head_dim_);
  std::vector<Part> parts;
  std::size_t floats = 0;
  int parts_in_all = 0;
  for (Item& item : items_) {
    item.first_part = parts_in_all;
    parts_in_all += item.splits;
    floats += state_floats * item.states * item.splits;
  }
  parts_.require(floats * sizeof(float));
  auto* next = reinterpret_cast<float*>(parts_.data());
  for (const Item& item : items_) {
    for (int split = 0; split < item.splits; ++split) {
      parts.push_back({&item, item.first_split + split, next, true});
      next += state_floats * item.states;
    }
  }
  const std::size_t state_bytes = state_floats * sizeof(float) * states_of(most_columns_);
  pool_.run(static_cast<int>(parts.size()), [&](int index, int thread) {
    Part& part = parts[static_cast<std::size_t>(index)];
    void* kernel_scratch = scratch_.data() + thread_bytes_ * thread + 2 * state_bytes;
    part.clean = kernels_.attend(part.item->block, part.split, part.state, kernel_scratch);
  });
  pool_.run(static_cast<int>(items_.size()), [&](int index, int thread) {
    const Item& item = items_[static_cast<std::size_t>(index)];
    const Part* first = parts.data() + item.first_part;
    const Part* end = first + item.splits;
    if (!std::all_of(first, end, [](const Part& part) { return part.clean; })) {
      attend_in_order(item, thread);
      return;
    }
    for (const Part* part = first + 1; part < end; ++part) {
      for (int i = 0; i < item.states; ++i) {
        kernels_.merge(first->state + i * state_floats, part->state + i * state_floats, head_dim_);
      }
    }
    kernels_.write_attention(item.block, first->state);
  });
}

}  // namespace incipit::kernels
