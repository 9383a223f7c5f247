// Which loader a path asks for.
#include "gateway/model/checkpoint.h"

#include <stdexcept>
#include <system_error>

namespace incipit::gateway {

std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path) {
  if (path == "tiny") return make_tiny_checkpoint();
  if (path == "tiny-thinking") return make_tiny_checkpoint(1, true);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw std::runtime_error(path.string()
                             + ": there is no such file or directory; a model is a .gguf file, a"
                               " directory with config.json, tokenizer.json and safetensors,"
                               " \"tiny\" or \"tiny-thinking\"");
  }
  if (std::filesystem::is_directory(status)) return open_safetensors(path);
  if (path.extension() == ".safetensors") {
    throw std::runtime_error(path.string()
                             + ": name the directory of this file, which also has config.json and"
                               " tokenizer.json");
  }
  return open_gguf(path);
}

}  // namespace incipit::gateway
