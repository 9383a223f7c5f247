#define INCIPIT_LEVEL avx512
#include "kernels/cpu/vector_level.h"

namespace incipit::kernels {

constinit const KernelTable avx512_kernels = avx512::vector_table("avx512");

}  // namespace incipit::kernels
