#define INCIPIT_LEVEL avx2
#include "kernels/cpu/vector_level.h"

namespace incipit::kernels {

constinit const KernelTable avx2_kernels = avx2::vector_table("avx2");

}  // namespace incipit::kernels
