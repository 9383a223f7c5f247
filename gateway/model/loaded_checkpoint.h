// The one Checkpoint class: what every file format is turned into.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/model/mapped_file.h"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

using TensorMap = std::map<std::string, kernels::HostTensor, std::less<>>;

// What a loader collects. Views in `tensors` point into `files` or `copies`.
struct CheckpointParts {
  std::string origin;  // path, for error messages
  ModelConfig config;
  TokenizerSpec tokenizer;
  TensorMap tensors;
  std::vector<MappedFile> files;
  std::deque<std::vector<std::byte>> copies;  // tensors that could not be used where they lie
};

// Checks the parts (see architecture.h) and seals them. Throws std::runtime_error.
[[nodiscard]] std::unique_ptr<Checkpoint> make_checkpoint(CheckpointParts parts);

}  // namespace incipit::gateway
