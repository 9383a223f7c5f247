// Tool definitions. Source: anthropic-wire sections 6.1 and 6.2.
#include "gateway/api/anthropic_body.h"

#include <algorithm>
#include <array>
#include <utility>

namespace incipit::gateway {
namespace {

// Every tool type of a request, alphabetically. Types with a beta are unknown without it.
struct ToolType {
  std::string_view tag;
  std::string_view beta;
};

constexpr std::array tool_types = {
    ToolType{"advisor_20260301", "advisor-tool-"},
    ToolType{"bash_20250124", ""},
    ToolType{"browser_toolset_20260801", ""},
    ToolType{"code_execution_20250522", ""},
    ToolType{"code_execution_20250825", ""},
    ToolType{"code_execution_20260120", ""},
    ToolType{"code_execution_20260521", ""},
    ToolType{"computer_toolset_20260801", ""},
    ToolType{"custom", ""},
    ToolType{"mcp_toolset", "mcp-client-"},
    ToolType{"memory_20250818", ""},
    ToolType{"text_editor_20250124", ""},
    ToolType{"text_editor_20250429", ""},
    ToolType{"text_editor_20250728", ""},
    ToolType{"tool_search_tool_bm25", ""},
    ToolType{"tool_search_tool_bm25_20251119", ""},
    ToolType{"tool_search_tool_regex", ""},
    ToolType{"tool_search_tool_regex_20251119", ""},
    ToolType{"web_fetch_20250910", ""},
    ToolType{"web_fetch_20260209", ""},
    ToolType{"web_fetch_20260309", ""},
    ToolType{"web_fetch_20260318", ""},
    ToolType{"web_search_20250305", ""},
    ToolType{"web_search_20260209", ""},
    ToolType{"web_search_20260318", ""},
};

void check_type(const std::string& tag, const std::string& path, const Reading& reading) {
  std::vector<std::string_view> expected;
  for (const ToolType& type : tool_types) {
    if (!type.beta.empty() && !reading.has_beta(type.beta)) continue;
    if (type.tag == tag) return;
    expected.push_back(type.tag);
  }
  reject_tag(path, tag, expected);
}

JsonValue read_schema(const JsonValue& value, const std::string& path) {
  Fields schema(value, path);
  (void)schema.choice("type", {"object"});
  return value;
}

void read_callers(Fields& fields, Reading& reading) {
  const JsonValue* value = fields.optional("allowed_callers");
  if (value == nullptr) return;
  const std::string path = fields.at("allowed_callers");
  const JsonValue::Array& callers = read_list(*value, path);
  for (std::size_t i = 0; i < callers.size(); ++i) {
    const std::string& caller = read_string(callers[i], element(path, i));
    if (caller == "direct") continue;
    if (caller != "code_execution_20250825" && caller != "code_execution_20260120"
        && caller != "code_execution_20260521") {
      throw invalid_request(element(path, i)
                            + ": Input should be 'direct', 'code_execution_20250825', "
                              "'code_execution_20260120' or 'code_execution_20260521'");
    }
    reading.refuse(element(path, i), "this gateway has no code execution; use \"direct\"");
  }
}

Tool read_custom(const JsonValue& value, const std::string& path, Reading& reading) {
  Fields fields(value, path);
  (void)fields.optional("type");
  Tool tool;
  tool.name = read_identifier(fields.required("name"), fields.at("name"), 128);
  if (const JsonValue* description = fields.optional("description")) {
    tool.description = read_string(*description, fields.at("description"));
  }
  tool.input_schema = read_schema(fields.required("input_schema"), fields.at("input_schema"));
  if (const JsonValue* examples = fields.optional("input_examples")) {
    const std::string examples_path = fields.at("input_examples");
    for (const JsonValue& example : read_list(*examples, examples_path)) {
      tool.input_examples.push_back(
          read_object(example, element(examples_path, tool.input_examples.size())));
    }
  }
  if (const JsonValue* defer = fields.optional("defer_loading")) {
    tool.defer_loading = read_boolean(*defer, fields.at("defer_loading"));
  }
  if (const JsonValue* eager = fields.unless_null("eager_input_streaming")) {
    // Nothing is held back here anyway.
    (void)read_boolean(*eager, fields.at("eager_input_streaming"));
  }
  const JsonValue* strict = fields.optional("strict");
  if (strict != nullptr && read_boolean(*strict, fields.at("strict"))) {
    reading.refuse(fields.at("strict"), "strict tools are not supported yet by this gateway");
  }
  read_callers(fields, reading);
  tool.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
  return tool;
}

}  // namespace

std::vector<Tool> read_tools(const JsonValue& tools, const std::string& model, Reading& reading) {
  std::vector<Tool> result;
  const JsonValue::Array& list = read_list(tools, "tools");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = element("tools", i);
    Fields head(list[i], path);
    const JsonValue* type = head.unless_null("type");
    const std::string tag = type == nullptr ? "custom" : read_string(*type, head.at("type"));
    check_type(tag, path, reading);
    if (tag == "custom") {
      result.push_back(read_custom(list[i], path + ".custom", reading));
      continue;
    }
    Fields fields(list[i], head.at(tag));
    (void)read_cache_control(fields, reading);
    if (!reading.refusal) {
      reading.refusal = invalid_request(
          "'" + shown(model) + "' does not support tool types: " + tag
          + ". This gateway serves custom tools only: give the tool a name and an input_schema.");
    }
  }
  return result;
}

}  // namespace incipit::gateway
