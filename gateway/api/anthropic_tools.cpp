// Tool definitions. Source: anthropic-wire sections 6.1 and 6.2.
#include "gateway/api/anthropic_body.h"
#include "gateway/api/anthropic_client_tools.h"

#include <algorithm>
#include <array>
#include <utility>

namespace incipit::gateway {
namespace {

// Every tool type of a request, alphabetically. Types with a beta are unknown without it.
struct ToolType {
  std::string_view tag;
  std::string_view beta;
  std::string_view name = {};  // of a server tool, which has to give it
};

constexpr std::array tool_types = {
    ToolType{"advisor_20260301", "advisor-tool-", "advisor"},
    ToolType{"bash_20250124", ""},
    ToolType{"browser_toolset_20260801", ""},
    ToolType{"code_execution_20250522", "", "code_execution"},
    ToolType{"code_execution_20250825", "", "code_execution"},
    ToolType{"code_execution_20260120", "", "code_execution"},
    ToolType{"code_execution_20260521", "", "code_execution"},
    ToolType{"computer_toolset_20260801", ""},
    ToolType{"custom", ""},
    ToolType{"mcp_toolset", "mcp-client-"},
    ToolType{"memory_20250818", ""},
    ToolType{"text_editor_20250124", ""},
    ToolType{"text_editor_20250429", ""},
    ToolType{"text_editor_20250728", ""},
    ToolType{"tool_search_tool_bm25", "", "tool_search_tool_bm25"},
    ToolType{"tool_search_tool_bm25_20251119", "", "tool_search_tool_bm25"},
    ToolType{"tool_search_tool_regex", "", "tool_search_tool_regex"},
    ToolType{"tool_search_tool_regex_20251119", "", "tool_search_tool_regex"},
    ToolType{"web_fetch_20250910", "", "web_fetch"},
    ToolType{"web_fetch_20260209", "", "web_fetch"},
    ToolType{"web_fetch_20260309", "", "web_fetch"},
    ToolType{"web_fetch_20260318", "", "web_fetch"},
    ToolType{"web_search_20250305", "", "web_search"},
    ToolType{"web_search_20260209", "", "web_search"},
    ToolType{"web_search_20260318", "", "web_search"},
};

const ToolType& find_type(const std::string& tag, const std::string& path, const Reading& reading) {
  std::vector<std::string_view> expected;
  for (const ToolType& type : tool_types) {
    if (!type.beta.empty() && !reading.has_beta(type.beta)) continue;
    if (type.tag == tag) return type;
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

// What every tool that the caller runs may have.
void read_common(Fields& fields, Tool& tool, Reading& reading) {
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
  if (const JsonValue* strict = fields.optional("strict")) {
    tool.strict = read_boolean(*strict, fields.at("strict"));
  }
  read_callers(fields, reading);
  tool.cache_control = read_cache_control(fields, reading);
  fields.reject_others();
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
  if (const JsonValue* eager = fields.unless_null("eager_input_streaming")) {
    // Nothing is held back here anyway.
    tool.eager_input_streaming = read_boolean(*eager, fields.at("eager_input_streaming"));
  }
  read_common(fields, tool, reading);
  return tool;
}

Tool read_client_tool(const JsonValue& value, const ClientTool& known, const std::string& path,
                      Reading& reading) {
  Fields fields(value, path);
  (void)fields.required("type");
  (void)fields.choice("name", {known.name});
  Tool tool;
  tool.type = known.type;
  tool.name = known.name;
  tool.description = known.description;
  tool.input_schema = JsonText::trusted(std::string(known.input_schema));
  if (known.has_max_characters && fields.unless_null("max_characters") != nullptr) {
    const std::string limit = fields.at("max_characters");
    const std::int64_t most = read_integer(fields.required("max_characters"), limit);
    if (most < 1) throw invalid_request(limit + ": Input should be greater than or equal to 1");
    *tool.description += " view shows at most " + std::to_string(most) + " characters.";
  }
  read_common(fields, tool, reading);
  return tool;
}

// A tool that runs at the provider, or a toolset. Of its own settings none is looked at.
Tool read_unserved_tool(const JsonValue& value, const ToolType& type, const std::string& path,
                        Reading& reading) {
  Fields fields(value, path);
  Tool tool;
  tool.type = tool.name = type.tag;
  if (!type.name.empty()) {
    (void)fields.choice("name", {type.name});
    tool.name = type.name;
  } else if (type.tag == "mcp_toolset") {
    const char* const server = "mcp_server_name";
    tool.name = read_string(fields.required(server), fields.at(server));
  }
  if (const JsonValue* defer = fields.unless_null("defer_loading")) {
    tool.defer_loading = read_boolean(*defer, fields.at("defer_loading"));
  }
  tool.cache_control = read_cache_control(fields, reading);
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
    const ToolType& known = find_type(tag, path, reading);
    if (tag == "custom") {
      result.push_back(read_custom(list[i], path + ".custom", reading));
      continue;
    }
    if (const ClientTool* tool = find_client_tool(tag)) {
      result.push_back(read_client_tool(list[i], *tool, head.at(tag), reading));
      continue;
    }
    result.push_back(read_unserved_tool(list[i], known, head.at(tag), reading));
    if (!reading.refusal) {
      reading.refusal = invalid_request(
          "'" + shown(model) + "' does not support tool types: " + tag
          + ". This gateway has no server tools and no toolsets: give a tool of your own a name and "
            "an input_schema, or use bash, text_editor or memory.");
    }
  }
  return result;
}

}  // namespace incipit::gateway
