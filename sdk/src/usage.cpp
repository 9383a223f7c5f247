#include "incipit/usage.h"

#include <string>

namespace incipit {

Usage& Usage::operator+=(const Usage& other) {
  const bool fresh = *this == Usage{};
  input_tokens += other.input_tokens;
  cache_creation_5m += other.cache_creation_5m;
  cache_creation_1h += other.cache_creation_1h;
  cache_read_input_tokens += other.cache_read_input_tokens;
  output_tokens += other.output_tokens;
  thinking_tokens += other.thinking_tokens;
  web_search_requests += other.web_search_requests;
  web_fetch_requests += other.web_fetch_requests;
  const auto agree = [fresh](std::string& mine, const std::string& theirs) {
    if (fresh) {
      mine = theirs;
    } else if (mine != theirs) {
      mine.clear();
    }
  };
  agree(service_tier, other.service_tier);
  agree(inference_geo, other.inference_geo);
  agree(speed, other.speed);
  return *this;
}

}  // namespace incipit
