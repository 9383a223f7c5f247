// A request body to typed values: shape, types and names only, in the provider's words. What the
// values mean together is `anthropic_rules.h`'s matter.
#pragma once

#include "gateway/api/anthropic_edits.h"
#include "gateway/api/anthropic_fields.h"
#include "gateway/api/anthropic_request.h"
#include "gateway/api/error.h"
#include "incipit/anthropic.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

enum class Endpoint : std::uint8_t { messages, count_tokens };

// What accompanies the reading of one body.
struct Reading {
  const RequestContext& context;
  // The first valid thing that this gateway cannot do. Kept until the whole body has been read, so
  // that a body the hosted API would refuse gets the hosted API's error.
  std::optional<ApiError> refusal = {};
  // Values of betas that MessageRequest has no member for.
  std::optional<ContextEdits> context_management = {};
  bool drops_unbound_thoughts = false;  // block_binding.prefix_mismatch_behavior

  // A beta of that name, dates and versions aside.
  [[nodiscard]] bool has_beta(std::string_view prefix) const;
  void refuse(const std::string& path, const std::string& why);
};

// Throws ApiError for a malformed body. `reading.refusal` says what cannot be served; the values
// are then incomplete.
[[nodiscard]] MessageRequest read_body(const JsonValue& document, Endpoint endpoint,
                                       Reading& reading);

// The parts of a body that have files of their own.
[[nodiscard]] std::optional<CacheControl> read_cache_control(Fields& owner, const Reading& reading);
[[nodiscard]] std::vector<TextBlock> read_system(const JsonValue& system, Reading& reading);
[[nodiscard]] std::vector<MessageParam> read_messages(const JsonValue& messages, Reading& reading);
[[nodiscard]] std::vector<Tool> read_tools(const JsonValue& tools, const std::string& model,
                                           Reading& reading);

}  // namespace incipit::gateway
