// The real models that the tests compare with, and the golden files.
#pragma once

#include "gateway/model/checkpoint.h"

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

inline constexpr std::string_view smollm_file = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr std::string_view gemma_file = "gemma-3-270m-q4_k_m.gguf";

// Opened once per test program. Throws with a sentence how to get the file when it is missing.
const Checkpoint& model_file(std::string_view name);

inline std::string read_data(const std::string& name) {
  std::ifstream file(std::string(INCIPIT_TEST_DATA) + "/tokenizer/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace incipit::gateway
