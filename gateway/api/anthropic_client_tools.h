// Tools that the provider defines and the caller runs: bash, the text editor, memory. Hosted models
// know them by name; a local one has to be told what they take. Source: anthropic-wire section 6.2.
#pragma once

#include <string>
#include <string_view>

namespace incipit::gateway {

struct ClientTool {
  std::string_view type;
  std::string_view name;
  std::string_view description;
  std::string_view input_schema;  // JSON
  bool has_max_characters = false;
};

// Null for any other type.
[[nodiscard]] const ClientTool* find_client_tool(std::string_view type);

}  // namespace incipit::gateway
