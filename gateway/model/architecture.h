// The transformer variants that we run: which tensors each consists of, and of what shape.
#pragma once

#include "gateway/model/loaded_checkpoint.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

[[nodiscard]] bool is_supported_architecture(std::string_view name) noexcept;
// "llama, qwen2, qwen3, gemma3", for error messages.
[[nodiscard]] std::string_view supported_architectures() noexcept;
// "F32, F16, BF16, Q8_0, …", for error messages.
[[nodiscard]] std::string supported_dtypes();

struct TensorShape {
  std::string name;
  std::int64_t rows = 0;  // 1 for a vector
  std::int64_t cols = 0;
  bool required = true;
};

// Every tensor that the architecture may have, in the order of the forward pass.
[[nodiscard]] std::vector<TensorShape> tensors_of(const ModelConfig& config);

// Takes vocab_size and tied_embeddings from the tensors, pads the tokenizer up to vocab_size with
// unused pieces, and checks hyper-parameters, tensors and tokenizer against each other. Throws
// std::runtime_error that names the origin, what is wrong and what was expected.
void check_model(CheckpointParts& parts);

}  // namespace incipit::gateway
