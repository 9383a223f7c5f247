// The text of uploaded files that a request names. Source: anthropic-wire sections 5 and 16.
#pragma once

#include "gateway/api/anthropic_body.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

namespace incipit::gateway {

class FileTexts {
 public:
  explicit FileTexts(Reading& reading) : reading_(reading) {}

  // The text of a file; `path` leads to the block that names it. Throws ApiError: 404 for an
  // unknown id, 400 for a file without text. A PDF is noted as a refusal and reads as nothing.
  [[nodiscard]] std::string_view text(const std::string& id, const std::string& path);

 private:
  Reading& reading_;
  std::unordered_map<std::string, std::string> texts_;  // each file is fetched once
  std::size_t used_ = 0;
};

}  // namespace incipit::gateway
