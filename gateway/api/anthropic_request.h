// The Messages API request: JSON text in, `Conversation` out, or an `ApiError` in the provider's
// own words. Source: anthropic-wire sections 4-8, anthropic-cache-semantics sections 2, 3, 5.
#pragma once

#include "gateway/cache/prefix_key.h"
#include "gateway/prompt/conversation.h"
#include "incipit/anthropic.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// An uploaded file.
struct FoundFile {
  std::string mime_type;
  std::string bytes;
};

// What of the HTTP head and the server matters to the meaning of a body.
struct RequestContext {
  bool version_2026_10_21 = false;  // anthropic-version (W-3, W-4)
  std::vector<std::string> betas;   // anthropic-beta values
  std::string local_model;          // the loaded model's own id, accepted besides claude-* names
  bool keep_billing_line = false;   // --keep-billing-line
  // Thinking and effort are in front of the tools instead of the messages (C-53).
  bool settings_before_tools = false;
  bool detailed_diagnostics = false;  // incipit-diagnostics: detail
  // The prompt tokens of a conversation: what context_management's triggers are measured in.
  std::function<int(const Conversation&)> count_tokens;
  // The file of an id; none: there is no such file for this caller, or no function, no files at
  // all.
  std::function<std::optional<FoundFile>(std::string_view id)> find_file = {};
};

struct MessagesRequest {
  Conversation conversation;
  MessageRequest values;           // as read, for comparing requests
  std::vector<std::string> betas;  // for the same
  bool detailed_diagnostics = false;
  std::string model;  // canonical id to echo
  bool stream = false;
  int dropped_billing_lines = 0;  // x-anthropic-billing-header system texts left out, for the log
  // Of the content as sent, which the reply follows: what its thoughts are signed for. Thoughts and
  // settings are not part of it.
  PrefixKey content_key;
  // JSON of the members of the answer with these names; empty where the answer has none.
  std::string context_management;
  std::string input_transformations;
};

[[nodiscard]] MessagesRequest parse_messages(std::string_view body, const RequestContext& context);
// The body of /v1/messages/count_tokens: no max_tokens and the fields of section 13 only.
[[nodiscard]] MessagesRequest parse_count_tokens(std::string_view body,
                                                 const RequestContext& context);

// One row of the model table that GET /v1/models serves. Source: anthropic-wire section 14.
struct ModelRow {
  std::string_view id;     // canonical
  std::string_view alias;  // the other spelling, or empty
  std::string_view display_name;
  std::string_view created_at;  // RFC 3339
  std::string_view line;        // "haiku", "sonnet", "opus", "fable", "mythos"
  std::string_view lifecycle;   // "active", "deprecated", "retired"
  int max_output_tokens;        // what max_tokens may be at most
  std::string_view retires_at;  // RFC 3339, or empty
};

[[nodiscard]] const std::vector<ModelRow>& model_table();  // newest first
// The canonical id of a name the gateway answers to: a table row, its alias, any other claude-*
// name, or the local model's id. Empty for unknown names (404).
[[nodiscard]] std::optional<std::string> resolve_model(std::string_view name,
                                                       std::string_view local_model);

}  // namespace incipit::gateway
