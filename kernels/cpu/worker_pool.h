// Worker threads that share the items of one job at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace incipit::kernels {

// One thread at a time may call `run`. Workers spin for some ten microseconds after a job, since a
// forward pass is hundreds of short ones, and then sleep.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);  // including the caller's
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(item, thread) for every item in [0, items), thread in [0, threads()), and returns
  // when all are done. The body must not throw. Subnormal floats are flushed to zero meanwhile.
  template <class Body>
  void run(int items, Body&& body) {
    run_job(items, const_cast<void*>(static_cast<const void*>(&body)),
            [](void* context, int item, int thread) {
              (*static_cast<std::remove_reference_t<Body>*>(context))(item, thread);
            });
  }

 private:
  using Function = void (*)(void* context, int item, int thread);

  void run_job(int items, void* context, Function function);
  void work_loop(int thread);
  void take_items(int thread);

  // Job number, item count and next item in one word: a claim is one compare-exchange, so a worker
  // that wakes late finds nothing to claim and nobody waits for it.
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<std::uint32_t> job_number_{0};
  std::atomic<int> finished_{0};
  std::atomic<bool> stopping_{false};
  void* context_ = nullptr;
  Function function_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace incipit::kernels
