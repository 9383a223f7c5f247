// What the program was asked to do: flags, a TOML file with the same names, defaults.
#pragma once

#include "gateway/api/rate_limits.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

struct Config {
  std::string model = "default";
  std::string host = "127.0.0.1";
  int port = 8787;
  std::string backend = "auto";
  int threads = 0;            // of the backend; 0 = one per core
  int context = 0;            // 0 = the model's own
  std::size_t kv_memory = 0;  // bytes; 0 = enough for two full contexts
  int max_queue = 256;
  int max_connections = 1024;
  int request_timeout = 3600;                         // seconds
  std::size_t body_limit = std::size_t{32} << 20;     // bytes
  std::size_t files_memory = std::size_t{1} << 30;    // bytes
  std::size_t batches_memory = std::size_t{1} << 30;  // bytes
  int batch_concurrency = 2;
  std::string public_url;  // empty: as the Host header says
  LimitRates limits;
  std::string keys;  // file, or empty
  std::string log;   // file, or empty = standard error
  bool virtual_clock = false;
  bool keep_billing_line = false;
  bool settings_before_tools = false;
  bool strict_betas = false;
};

// Arguments behind the program's name. Flags win over the file that `--config` names. Empty when
// help was asked for. Throws std::runtime_error: one sentence that names flag (or file and line),
// value and what is possible; an unknown name with the nearest known one.
[[nodiscard]] std::optional<Config> read_config(const std::vector<std::string>& arguments);

// Fits a screen of 24 lines of 80 characters.
[[nodiscard]] std::string_view help_text();

// "512M", "2GiB", "1000000": bytes, with binary units. Empty when it is not a size.
[[nodiscard]] std::optional<std::size_t> parse_size(std::string_view text);

// The file or directory of a model name ("default", "gemma3-270m", "tiny", "tiny-thinking" or a
// path). Throws std::runtime_error, with how to get it, when it does not exist.
[[nodiscard]] std::filesystem::path model_path(const std::string& name);

// What clients may call the loaded model: the given name, or the file's or folder's own without
// ".gguf", blanks made into hyphens.
[[nodiscard]] std::string model_id(const std::string& name);

}  // namespace incipit::gateway
