// Which instruction-set levels this machine and its kernel let us use.
#pragma once

#include "kernels/cpu/kernel_table.h"

#include <span>

namespace incipit::kernels {

// Best first; the last one is always "plain". Asks the system once for the matrix registers.
[[nodiscard]] std::span<const KernelTable* const> usable_levels();

}  // namespace incipit::kernels
