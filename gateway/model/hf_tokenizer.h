// tokenizer.json (with tokenizer_config.json and config.json) as a TokenizerSpec.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/model/json_object.h"

#include <cstdint>
#include <filesystem>

namespace incipit::gateway {

// `rows` is the height of the embedding table: added tokens beyond it (Gemma's text-only models
// list an image token) are left out, since the model cannot embed them. Throws std::runtime_error;
// for an unsupported tokenizer it says what is supported.
[[nodiscard]] TokenizerSpec read_hf_tokenizer(const std::filesystem::path& directory,
                                              const JsonObject& config, std::int64_t rows);

}  // namespace incipit::gateway
