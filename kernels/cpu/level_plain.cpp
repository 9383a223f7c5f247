#define INCIPIT_LEVEL plain
#include "kernels/cpu/vector_level.h"

namespace incipit::kernels {

constinit const KernelTable plain_kernels = plain::vector_table("plain");

}  // namespace incipit::kernels
