#include "incipit/tools.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace incipit {
namespace {

// A definition as it is sent, but for its marker.
std::string as_sent(Tool tool) {
  tool.cache_control.reset();
  MessageRequest request;
  request.tools.push_back(std::move(tool));
  return to_json(request);
}

void add_definition(Prompt& prompt, const Tool& tool) {
  const auto there = std::ranges::find(prompt.tools(), tool.name, &Tool::name);
  if (there == prompt.tools().end()) {
    prompt.tool(tool);
  } else if (as_sent(*there) != as_sent(tool)) {
    throw PromptError(
        {}, "tools." + std::to_string(there - prompt.tools().begin()),
        "the prompt has another tool of the name '" + tool.name
            + "': give the prompt the definition of the runnable tool, or leave it to the runner");
  }
}

void check_tools(const std::vector<RunnableTool>& tools) {
  for (auto tool = tools.begin(); tool != tools.end(); ++tool) {
    const std::string& name = tool->definition.name;
    if (!tool->run) throw PromptError({}, {}, "the tool '" + name + "' has no function to run");
    const bool repeated = std::any_of(tools.begin(), tool, [&](const RunnableTool& earlier) {
      return earlier.definition.name == name;
    });
    if (repeated) throw PromptError({}, {}, "two runnable tools have the name '" + name + "'");
  }
}

ToolResultBlock failure(const std::string& id, std::string_view message) {
  // What an exception says need not be UTF-8: the writer mends it.
  std::string json;
  JsonWriter(json).string("Error: " + std::string(message));
  ToolResultBlock result{.tool_use_id = id, .content = {}, .is_error = true};
  result.content.emplace_back(TextBlock{.text = JsonValue::parse(json).as_string()});
  return result;
}

std::vector<const ToolUseBlock*> calls_in(const Message& reply) {
  std::vector<const ToolUseBlock*> calls;
  for (const ContentBlock& block : reply.content) {
    if (const auto* call = block.get_if<ToolUseBlock>()) calls.push_back(call);
  }
  return calls;
}

// The server has not finished and wants its turn back as it is.
bool wants_resending(const Message& reply) {
  return reply.stop_reason == StopReason::pause_turn || reply.stop_reason == StopReason::compaction;
}

}  // namespace

ToolRunner::ToolRunner(const Client& client, Prompt prompt, std::vector<RunnableTool> tools,
                       RunnerOptions options)
    : client_(client),
      prompt_(std::move(prompt)),
      tools_(std::move(tools)),
      options_(std::move(options)) {
  check_tools(tools_);
  for (const RunnableTool& tool : tools_)
    add_definition(prompt_, tool.definition);
}

std::optional<Message> ToolRunner::next() {
  if (ended_ || iterations_ >= options_.max_iterations) return std::nullopt;
  Message reply = send();
  usage_ += reply.usage;
  ++iterations_;
  if (!reply.content.empty()) prompt_.assistant(reply);
  if (wants_resending(reply)) return reply;

  const bool wants_results = reply.stop_reason == StopReason::tool_use;
  const std::vector<const ToolUseBlock*> calls =
      wants_results ? calls_in(reply) : std::vector<const ToolUseBlock*>();
  for (ToolResultBlock& result : answers(calls)) {
    const std::string id = result.tool_use_id;
    try {
      prompt_.user(std::move(result));
    } catch (const PromptError& error) {  // a conversation whose calls have no answers is stuck
      prompt_.user(failure(id, std::string("the tool's answer cannot be sent: ") + error.what()));
    }
  }
  ended_ = calls.empty();
  return reply;
}

Message ToolRunner::run() {
  std::optional<Message> last;
  while (std::optional<Message> reply = next())
    last = std::move(reply);
  if (!last) throw PromptError({}, {}, "the tool loop has ended: there is no further request");
  return *std::move(last);
}

Message ToolRunner::send() {
  if (options_.cache) prompt_.auto_breakpoints();
  const MessageRequest request = prompt_.request(options_.parameters);
  if (!options_.on_event) return client_.send(request, options_.request);
  MessageStream stream = client_.stream(request, options_.request);
  for (const StreamEvent& event : stream)
    options_.on_event(event);
  return stream.message();
}

ToolResultBlock ToolRunner::answer(const ToolUseBlock& call) const {
  const auto tool = std::ranges::find_if(
      tools_, [&](const RunnableTool& each) { return each.definition.name == call.name; });
  if (tool == tools_.end()) return failure(call.id, "Tool '" + call.name + "' not found");
  try {
    return {.tool_use_id = call.id, .content = tool->run(call.input).content};
  } catch (const ToolError& error) {
    return {.tool_use_id = call.id, .content = error.output.content, .is_error = true};
  } catch (const std::exception& error) {
    return failure(call.id, error.what());
  } catch (...) {
    return failure(call.id, "the tool failed without saying why");
  }
}

std::vector<ToolResultBlock> ToolRunner::answers(
    const std::vector<const ToolUseBlock*>& calls) const {
  std::vector<ToolResultBlock> results(calls.size());
  std::atomic<std::size_t> taken = 0;
  const auto work = [&] {
    for (std::size_t i = taken++; i < calls.size(); i = taken++)
      results[i] = answer(*calls[i]);
  };
  const std::size_t threads =
      std::min(calls.size(), static_cast<std::size_t>(std::max(options_.concurrency, 1)));
  std::vector<std::jthread> others;
  try {
    while (others.size() + 1 < threads)
      others.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run, and this one, take all calls.
  }
  work();
  others.clear();  // joins
  return results;
}

}  // namespace incipit
