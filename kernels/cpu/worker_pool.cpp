#include "kernels/cpu/worker_pool.h"

#include <cassert>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace incipit::kernels {
namespace {

constexpr int item_bits = 20;
constexpr std::uint64_t item_mask = (std::uint64_t{1} << item_bits) - 1;
constexpr int spins_before_sleep = 4000;

void pause_briefly() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Matrix units flush subnormals whatever the control register says; vector code must do the same
// to give the same bits.
class FlushSubnormals {
 public:
#if defined(__x86_64__)
  FlushSubnormals() noexcept : saved_(_mm_getcsr()) {
    _mm_setcsr(saved_ | 0x8040U);
  }

  ~FlushSubnormals() {
    _mm_setcsr(saved_);
  }
#else
  FlushSubnormals() noexcept {}

  ~FlushSubnormals() {}
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#endif
};

}  // namespace

WorkerPool::WorkerPool(int threads) {
  for (int thread = 1; thread < threads; ++thread) {
    try {
      workers_.emplace_back([this, thread] { work_loop(thread); });
    } catch (const std::system_error&) {
      break;  // the system grants no more threads; the work is done by those there are
    }
  }
}

WorkerPool::~WorkerPool() {
  stopping_.store(true, std::memory_order_relaxed);
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  for (std::thread& worker : workers_)
    worker.join();
}

void WorkerPool::run_job(int items, void* context, Function function) {
  assert(items >= 0 && static_cast<std::uint64_t>(items) <= item_mask);
  const FlushSubnormals flush;
  if (items <= 1 || workers_.empty()) {
    for (int item = 0; item < items; ++item)
      function(context, item, 0);
    return;
  }
  context_ = context;
  function_ = function;
  finished_.store(0, std::memory_order_relaxed);
  const std::uint32_t number = job_number_.load(std::memory_order_relaxed) + 1;
  ticket_.store((static_cast<std::uint64_t>(number) << (2 * item_bits))
                    | (static_cast<std::uint64_t>(items) << item_bits),
                std::memory_order_release);
  job_number_.store(number, std::memory_order_release);
  job_number_.notify_all();
  take_items(0);
  for (int spins = 0;; ++spins) {
    const int finished = finished_.load(std::memory_order_acquire);
    if (finished == items) return;
    if (spins < spins_before_sleep) {
      pause_briefly();
    } else {
      finished_.wait(finished, std::memory_order_acquire);
    }
  }
}

void WorkerPool::take_items(int thread) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t items = (ticket >> item_bits) & item_mask;
    const std::uint64_t item = ticket & item_mask;
    if (item >= items) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    // The job cannot end, nor the next one begin, before this item is counted below.
    function_(context_, static_cast<int>(item), thread);
    const auto finished =
        static_cast<std::uint64_t>(finished_.fetch_add(1, std::memory_order_acq_rel) + 1);
    if (finished == items) finished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void WorkerPool::work_loop(int thread) {
  const FlushSubnormals flush;
  std::uint32_t seen = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    std::uint32_t number = job_number_.load(std::memory_order_acquire);
    for (int spins = 0; number == seen && spins < spins_before_sleep; ++spins) {
      pause_briefly();
      number = job_number_.load(std::memory_order_acquire);
    }
    if (number == seen) {
      job_number_.wait(seen, std::memory_order_acquire);
      continue;
    }
    seen = number;
    take_items(thread);
  }
}

}  // namespace incipit::kernels
