#include "tests/prompt/model_files.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>

namespace incipit::gateway {

namespace {

std::filesystem::path models_folder() {
  if (const char* named = std::getenv("INCIPIT_MODELS")) return named;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) {
    return std::filesystem::path(cache) / "incipit/models";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / ".cache/incipit/models";
}

}  // namespace

const Checkpoint& model_file(std::string_view name) {
  static std::map<std::string, std::unique_ptr<Checkpoint>, std::less<>> opened;
  const auto found = opened.find(name);
  if (found != opened.end()) return *found->second;
  const std::filesystem::path path = models_folder() / name;
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error("this test needs " + path.string() +
                             ": run `./incipit test`, which downloads it, or name the folder in "
                             "INCIPIT_MODELS");
  }
  return *opened.emplace(name, open_gguf(path)).first->second;
}

}  // namespace incipit::gateway
