// Blocks of features that this gateway does not have. Their outer shape is checked, so that a
// broken one is told what is broken, and a whole one what is missing here.
#include "gateway/api/anthropic_content.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace incipit::gateway {
namespace {

enum class Kind : std::uint8_t { text, boolean, object, anything };

struct Member {
  std::string_view name;
  Kind kind = Kind::anything;
  bool required = true;
};

struct Shape {
  std::string_view tag;
  std::string_view why;
  std::array<Member, 4> members;
  bool markable = true;
};

constexpr std::string_view no_server_tools =
    "this gateway has no server tools; give what the block says in a `text` block";
constexpr std::string_view no_mcp = "this gateway connects to no MCP servers";
constexpr std::string_view fixed_tools =
    "the set of tools is fixed for a conversation here; change `tools` instead, or mark tools with "
    "defer_loading and name them in a `tool_reference`";

constexpr Member caller{"caller", Kind::anything, false};
constexpr Member tool_use_id{"tool_use_id", Kind::text};
constexpr std::array<Member, 4> result{tool_use_id, Member{"content", Kind::object}, caller};

constexpr std::array shapes = {
    Shape{"bash_code_execution_tool_result", no_server_tools, result},
    Shape{"browser_state", "this gateway has no browser toolset", {}},
    Shape{"code_execution_tool_result", no_server_tools, result},
    Shape{"compaction",
          "this gateway does not compact conversations; send the messages themselves",
          {Member{"content"},
           {"signature", Kind::anything, false},
           {"encrypted_content", Kind::anything, false},
           {"tool_changes", Kind::anything, false}}},
    Shape{"container_upload",
          "this gateway has no code execution containers",
          {Member{"file_id", Kind::text}}},
    Shape{"fallback",
          "this gateway has no fallback models",
          {Member{"from", Kind::object}, {"to", Kind::object}, {"trigger", Kind::anything, false}},
          false},
    Shape{"mcp_tool_result",
          no_mcp,
          {tool_use_id, {"content", Kind::anything, false}, {"is_error", Kind::boolean, false}}},
    Shape{"mcp_tool_use",
          no_mcp,
          {Member{"id", Kind::text},
           {"name", Kind::text},
           {"server_name", Kind::text},
           {"input", Kind::object}}},
    Shape{"server_tool_use",
          no_server_tools,
          {Member{"id", Kind::text}, {"name", Kind::text}, {"input", Kind::object}, caller}},
    Shape{"text_editor_code_execution_tool_result", no_server_tools, result},
    Shape{"tool_addition", fixed_tools, {Member{"tool", Kind::object}}},
    Shape{"tool_removal", fixed_tools, {Member{"tool", Kind::object}}},
    Shape{"tool_search_tool_result", no_server_tools, result},
    Shape{"web_fetch_tool_result", no_server_tools, result},
    // Its content is a list of results, or one object that is an error.
    Shape{"web_search_tool_result", no_server_tools, {tool_use_id, Member{"content"}, caller}},
};

void read_member(Fields& fields, const Member& member) {
  const JsonValue* value =
      member.required ? &fields.required(member.name) : fields.unless_null(member.name);
  if (value == nullptr) return;
  const std::string path = fields.at(member.name);
  switch (member.kind) {
    case Kind::text:
      (void)read_string(*value, path);
      break;
    case Kind::boolean:
      (void)read_boolean(*value, path);
      break;
    case Kind::object:
      (void)read_object(*value, path);
      break;
    case Kind::anything:
      break;
  }
}

}  // namespace

ContentBlock read_unserved(const JsonValue& value, std::string_view tag, const std::string& base,
                           Reading& reading) {
  const auto shape = std::ranges::find(shapes, tag, &Shape::tag);
  if (shape == shapes.end()) throw std::logic_error("a block type has no shape");
  Fields fields(value, base + "." + std::string(tag));
  (void)fields.required("type");
  for (const Member& member : shape->members) {
    if (!member.name.empty()) read_member(fields, member);
  }
  UnknownBlock block{std::string(tag)};
  if (shape->markable) block.cache_control = read_cache_control(fields, reading);
  // What a browser state holds is no part of the documented API.
  if (tag != "browser_state") fields.reject_others();
  reading.refuse(base,
                 "`" + std::string(tag) + "` blocks are not supported: " + std::string(shape->why));
  return block;
}

}  // namespace incipit::gateway
