#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"

#include <stdexcept>
#include <string>

namespace incipit::kernels {

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (name == "auto" || name == "cpu") return make_cpu_backend(options);
  std::string levels;
  for (const std::string& level : cpu_isa_levels()) {
    levels += (levels.empty() ? "" : ", ") + level;
  }
  const std::string available = "available here: cpu (" + levels + ")";
  if (name == "cuda") {
    throw std::runtime_error("backend \"cuda\": this build has no CUDA support; " + available);
  }
  throw std::runtime_error("backend \"" + std::string(name)
                           + "\": no such backend, use auto, cpu or cuda; " + available);
}

}  // namespace incipit::kernels
