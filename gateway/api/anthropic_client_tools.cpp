#include "gateway/api/anthropic_client_tools.h"

#include <algorithm>
#include <array>

namespace incipit::gateway {
namespace {

constexpr std::string_view bash_schema =
    R"({"type":"object","properties":{)"
    R"("command":{"type":"string","description":"The command line to run"},)"
    R"("restart":{"type":"boolean","description":"true: start a fresh shell instead of running a command"}},)"
    R"("additionalProperties":false})";

#define INCIPIT_EDITOR_FIELDS(commands, inserted)                                             \
  R"({"type":"object","properties":{)"                                                        \
  R"("command":{"type":"string","enum":[)" commands R"(]},)"                                  \
  R"("path":{"type":"string","description":"The file; for view also a directory"},)"          \
  R"("view_range":{"type":"array","items":{"type":"integer"},)"                               \
  R"("description":"view: first and last line, counted from 1; -1 is the end of the file"},)" \
  R"("file_text":{"type":"string","description":"create: all of the file's text"},)"          \
  R"("old_str":{"type":"string",)"                                                            \
  R"("description":"str_replace: the text to replace, exactly as it is in the file, once"},)" \
  R"("new_str":{"type":"string","description":")" inserted R"("},)"                           \
  R"("insert_line":{"type":"integer","description":"insert: the line to insert after; 0 is the top"})"

#define INCIPIT_INSERT_TEXT \
  R"(,"insert_text":{"type":"string","description":"insert: the new text"})"

constexpr std::string_view early_editor_schema = INCIPIT_EDITOR_FIELDS(
    R"("view","create","str_replace","insert","undo_edit")",
    "str_replace: the text to put there; insert: the "
    "new text") R"(},"required":["command","path"],"additionalProperties":false})";

constexpr std::string_view editor_schema = INCIPIT_EDITOR_FIELDS(
    R"("view","create","str_replace","insert")", "str_replace: the text to put there")
    INCIPIT_INSERT_TEXT R"(},"required":["command","path"],"additionalProperties":false})";

constexpr std::string_view memory_schema =
    INCIPIT_EDITOR_FIELDS(R"("view","create","str_replace","insert","delete","rename")",
                          "str_replace: the text to put there") INCIPIT_INSERT_TEXT
    R"(,"old_path":{"type":"string","description":"rename: the path now"},)"
    R"("new_path":{"type":"string","description":"rename: the path then"}},)"
    R"("required":["command"],"additionalProperties":false})";

#undef INCIPIT_EDITOR_FIELDS
#undef INCIPIT_INSERT_TEXT

constexpr std::string_view bash_text =
    "Runs a command in a bash shell that stays open between calls, with its working directory and "
    "variables, and returns what the command prints.";
constexpr std::string_view editor_text =
    "Views and edits text files: view shows a file with line numbers or lists a directory, create "
    "writes a file, str_replace replaces one piece of text, insert adds text after a line.";
constexpr std::string_view early_editor_text =
    "Views and edits text files: view shows a file with line numbers or lists a directory, create "
    "writes a file, str_replace replaces one piece of text, insert adds text after a line, "
    "undo_edit "
    "takes the last edit of a file back.";
constexpr std::string_view memory_text =
    "Keeps notes in text files below /memories that outlast this conversation. View /memories "
    "before "
    "starting on a task and write down what will be needed later. Commands: view, create, "
    "str_replace, insert, delete, rename.";

constexpr std::array client_tools = {
    ClientTool{"bash_20250124", "bash", bash_text, bash_schema},
    ClientTool{"memory_20250818", "memory", memory_text, memory_schema},
    ClientTool{"text_editor_20250124", "str_replace_editor", early_editor_text,
               early_editor_schema},
    ClientTool{"text_editor_20250429", "str_replace_based_edit_tool", editor_text, editor_schema},
    ClientTool{"text_editor_20250728", "str_replace_based_edit_tool", editor_text, editor_schema,
               true},
};

}  // namespace

const ClientTool* find_client_tool(std::string_view type) {
  const auto found = std::ranges::find(client_tools, type, &ClientTool::type);
  return found == client_tools.end() ? nullptr : &*found;
}

}  // namespace incipit::gateway
