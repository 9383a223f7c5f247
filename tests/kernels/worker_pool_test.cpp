#include "kernels/cpu/worker_pool.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace incipit::kernels {

TEST_CASE("every item of every job runs once, on a thread of the pool") {
  for (const int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    REQUIRE(pool.threads() == threads);
    for (int job = 0; job < 3000; ++job) {
      const int items = job % 37;
      std::vector<int> runs(static_cast<std::size_t>(items));
      std::vector<int> by_thread(static_cast<std::size_t>(threads));
      pool.run(items, [&](int item, int thread) {
        ++runs[static_cast<std::size_t>(item)];
        ++by_thread[static_cast<std::size_t>(thread)];
      });
      int total = 0;
      for (const int count : by_thread)
        total += count;
      REQUIRE(total == items);
      for (const int count : runs)
        REQUIRE(count == 1);
    }
  }
}

TEST_CASE("workers that went to sleep wake for the next job") {
  WorkerPool pool(3);
  for (int job = 0; job < 20; ++job) {
    // Long enough on one thread for idle workers to stop spinning.
    std::uint32_t state = 1;
    for (int i = 0; i < 2'000'000; ++i)
      state = state * 1664525U + 1013904223U;
    CHECK(state == 13949057U);
    int sum = 0;
    std::vector<int> values(100);
    pool.run(100, [&](int item, int) { values[static_cast<std::size_t>(item)] = item; });
    for (const int value : values)
      sum += value;
    CHECK(sum == 4950);
  }
}

}  // namespace incipit::kernels
