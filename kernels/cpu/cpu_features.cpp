#include "kernels/cpu/cpu_features.h"

#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace incipit::kernels {
namespace {

#if defined(__x86_64__)

bool has_avx2() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return f16c && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0
         && __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0
         && __builtin_cpu_supports("avx512vl") != 0;
}

// Linux gives the 8 KiB of tile registers only to processes that ask.
bool has_amx() {
#if defined(__linux__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (!has_avx512() || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned amx_bf16 = 1U << 22;
  constexpr unsigned amx_tile = 1U << 24;
  if ((d & amx_bf16) == 0 || (d & amx_tile) == 0) return false;
  constexpr long request_permission = 0x1023;
  constexpr long tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

#endif

std::vector<const KernelTable*> find_levels() {
  std::vector<const KernelTable*> levels;
#if defined(__x86_64__)
  if (has_amx()) levels.push_back(&amx_kernels);
  if (has_avx512()) levels.push_back(&avx512_kernels);
  if (has_avx2()) levels.push_back(&avx2_kernels);
#endif
  levels.push_back(&plain_kernels);
  return levels;
}

}  // namespace

std::span<const KernelTable* const> usable_levels() {
  static const std::vector<const KernelTable*> levels = find_levels();
  return levels;
}

}  // namespace incipit::kernels
