// config.json of a Hugging Face checkpoint as a ModelConfig.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/model/json_object.h"

namespace incipit::gateway {

// Throws std::runtime_error for what is not supported, and says what is. vocab_size is left 0: it
// comes from the embedding table.
[[nodiscard]] ModelConfig read_hf_config(const JsonObject& root);

// Frequency divisors of the "llama3" RoPE scaling, [head_dim / 2].
struct Llama3Scaling {
  double factor = 8.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  double original_context = 8192.0;
};

[[nodiscard]] std::vector<float> llama3_rope_factors(const Llama3Scaling& scaling, double base,
                                                     int head_dim);

}  // namespace incipit::gateway
