#include "incipit/prompt.h"

#include "checks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace incipit {
namespace {

using Messages = std::vector<MessageParam>;

[[noreturn]] void refuse_order(const Path& path, const std::string& part,
                               const std::string& later) {
  refuse("C-1", path,
         part + " cannot be added after " + later
             + ": a prompt is rendered in the order tools, system, messages");
}

// Where the third turn from the end begins: a result needs the calls before it, and what is added
// last can end the results of the turn before.
std::size_t third_last_turn(const Messages& messages) {
  std::size_t first = messages.size();
  for (int turns = 0; first > 0; --first) {
    const bool begins =
        first == messages.size() || messages[first - 1].role != messages[first].role;
    if (begins && ++turns > 3) break;
  }
  return first;
}

bool has_call(const Messages& messages, std::string_view id) {
  return std::ranges::any_of(messages, [&](const MessageParam& message) {
    return std::ranges::any_of(message.content, [&](const ContentBlock& block) {
      const auto* call = block.get_if<ToolUseBlock>();
      return call != nullptr && call->id == id;
    });
  });
}

enum class Joining { same_role, never };

// Adds blocks at the end, in the last message or a new one, or throws with the request as it was.
void append(MessageRequest& request, MessageRole role, std::vector<ContentBlock> blocks,
            Joining joining = Joining::same_role) {
  Messages& messages = request.messages;
  const bool joins =
      joining == Joining::same_role && !messages.empty() && messages.back().role == role;
  const std::size_t index = messages.size() - (joins ? 1 : 0);
  const std::size_t held = joins ? messages.back().content.size() : 0;
  const Path path("messages");
  const Path message(path, index);
  const Path content(message, "content");
  if (blocks.empty()) refuse("W-4.1", message, "all messages must have non-empty content");
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Path place(content, held + i);
    // Which version it will be sent with is for the client to know: the older one takes more.
    check_block(place, blocks[i], role, WireVersion::of_2023);
    const auto* call = blocks[i].get_if<ToolUseBlock>();
    if (call != nullptr && has_call(messages, call->id)) {
      refuse("W-4.2", place,
             "`tool_use` ids must be unique; '" + shown(call->id) + "' was there before");
    }
  }
  const bool marked =
      request.cache_control || std::ranges::any_of(blocks, [](const ContentBlock& block) {
        return marker_of(block).has_value();
      });
  if (!joins) messages.push_back({role, {}});
  std::vector<ContentBlock>& last = messages.back().content;
  try {
    last.insert(last.end(), std::make_move_iterator(blocks.begin()),
                std::make_move_iterator(blocks.end()));
    check_turns(messages, {.first = third_last_turn(messages), .open = true});
    if (marked) check_markers(request);
  } catch (...) {
    last.erase(last.begin() + static_cast<std::ptrdiff_t>(held), last.end());
    if (!joins) messages.pop_back();
    throw;
  }
}

std::vector<ContentBlock> one(ContentBlock block) {
  std::vector<ContentBlock> blocks;
  blocks.push_back(std::move(block));
  return blocks;
}

// Sets a marker by `set`, or throws with the marker as it was.
template <class Set>
void mark(const MessageRequest& request, std::optional<CacheControl> before, Ttl ttl,
          const Set& set) {
  set(CacheControl{ttl});
  try {
    check_markers(request);
  } catch (...) {
    set(before);
    throw;
  }
}

}  // namespace

Prompt::Prompt(std::string model) {
  check_utf8(Path("model"), model);
  request_.model = std::move(model);
}

Prompt& Prompt::tool(Tool tool) {
  const Path tools("tools");
  const Path path(tools, request_.tools.size());
  if (!request_.messages.empty()) refuse_order(path, "a tool", "a message");
  if (!request_.system.empty()) refuse_order(path, "a tool", "a system text");
  check_tool(path, tool);
  if (!tool.name.empty()
      && std::ranges::find(request_.tools, tool.name, &Tool::name) != request_.tools.end()) {
    refuse("W-6.1", Path(path, "name"),
           "tool names must be unique; '" + shown(tool.name) + "' was there before");
  }
  request_.tools.push_back(std::move(tool));
  try {
    check_markers(request_);
  } catch (...) {
    request_.tools.pop_back();
    throw;
  }
  return *this;
}

Prompt& Prompt::system(std::string text) {
  const Path system("system");
  const Path path(system, request_.system.size());
  if (!request_.messages.empty()) refuse_order(path, "a system text", "a message");
  TextBlock block{.text = std::move(text)};
  check_system_block(path, block);
  request_.system.push_back(std::move(block));
  return *this;
}

Prompt& Prompt::user(std::string text) {
  return user(ContentBlock(TextBlock{.text = std::move(text)}));
}

Prompt& Prompt::user(ContentBlock block) {
  append(request_, MessageRole::user, one(std::move(block)));
  return *this;
}

Prompt& Prompt::assistant(const Message& reply) {
  append(request_, MessageRole::assistant, reply.content);
  return *this;
}

Prompt& Prompt::assistant(std::string text) {
  return assistant(ContentBlock(TextBlock{.text = std::move(text)}));
}

Prompt& Prompt::assistant(ContentBlock block) {
  append(request_, MessageRole::assistant, one(std::move(block)));
  return *this;
}

Prompt& Prompt::tool_result(std::string tool_use_id, std::string text, bool is_error) {
  ToolResultBlock result{
      .tool_use_id = std::move(tool_use_id), .content = {}, .is_error = is_error};
  if (!text.empty()) result.content.emplace_back(TextBlock{.text = std::move(text)});
  return user(ContentBlock(std::move(result)));
}

Prompt& Prompt::system_message(std::string text) {
  append(request_, MessageRole::system, one(TextBlock{.text = std::move(text)}));
  return *this;
}

Prompt& Prompt::message(MessageParam message) {
  append(request_, message.role, std::move(message.content), Joining::never);
  return *this;
}

Prompt& Prompt::breakpoint(Ttl ttl) {
  if (!request_.messages.empty()) {
    ContentBlock& block = request_.messages.back().content.back();
    if (block.is<ThinkingBlock>() || block.is<RedactedThinkingBlock>()) {
      const Path messages("messages");
      const Path message(messages, request_.messages.size() - 1);
      const Path content(message, "content");
      refuse("E-6", Path(content, request_.messages.back().content.size() - 1),
             "thinking cannot carry cache_control; it is cached with the block after it");
    }
    mark(request_, block.cache_control(), ttl, [&](auto marker) { block.mark(marker); });
  } else if (!request_.system.empty()) {
    auto& slot = request_.system.back().cache_control;
    mark(request_, slot, ttl, [&](auto marker) { slot = marker; });
  } else if (!request_.tools.empty()) {
    Tool marked = request_.tools.back();
    marked.cache_control = CacheControl{ttl};
    const Path tools("tools");
    check_tool(Path(tools, request_.tools.size() - 1), marked);
    auto& slot = request_.tools.back().cache_control;
    mark(request_, slot, ttl, [&](auto marker) { slot = marker; });
  } else {
    refuse("C-31", Path(""),
           "there is nothing to mark yet: add a tool, system text or message first");
  }
  return *this;
}

Prompt& Prompt::automatic_caching(Ttl ttl) {
  mark(request_, request_.cache_control, ttl,
       [&](auto marker) { request_.cache_control = marker; });
  return *this;
}

Prompt& Prompt::auto_breakpoints(std::optional<Ttl> prefix, std::optional<Ttl> conversation) {
  incipit::auto_breakpoints(request_, prefix, conversation);
  return *this;
}

Prompt& Prompt::clear_breakpoints() {
  clear_markers(request_);
  return *this;
}

MessageRequest Prompt::request(const Parameters& parameters) const {
  MessageRequest request = request_;
  request.max_tokens = parameters.max_tokens;
  request.tool_choice = parameters.tool_choice;
  request.thinking = parameters.thinking;
  request.effort = parameters.effort;
  request.output_format = parameters.output_format;
  request.stop_sequences = parameters.stop_sequences;
  request.temperature = parameters.temperature;
  request.top_p = parameters.top_p;
  request.top_k = parameters.top_k;
  request.user_id = parameters.user_id;
  request.service_tier = parameters.service_tier;
  request.inference_geo = parameters.inference_geo;
  request.speed = parameters.speed;
  request.container = parameters.container;
  request.diagnostics = parameters.diagnostics;
  request.extra = parameters.extra;
  check_request(request, WireVersion::of_2023, false);
  return request;
}

int Prompt::breakpoints() const {
  return check_markers(request_);
}

}  // namespace incipit
