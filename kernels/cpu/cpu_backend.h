// The backend on processor cores.
#pragma once

#include "kernels/backend.h"

#include <memory>

namespace incipit::kernels {

// Throws std::runtime_error when `options.max_isa` names no level we know.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

}  // namespace incipit::kernels
