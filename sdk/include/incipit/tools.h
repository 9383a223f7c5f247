// Tools that run here, and the loop that lets a model use them.
// Source: anthropic-wire sections 6 and 19.6.
#pragma once

#include "incipit/client.h"
#include "incipit/prompt.h"
#include "incipit/schema.h"

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace incipit {

// What a tool answers: text, or content blocks. Throw ToolError (or any std::exception) to answer
// with an error; the model sees "Error: " and what() (W, 19.6).
struct ToolOutput {
  std::vector<ContentBlock> content;

  ToolOutput(std::string text) {  // NOLINT: text is an answer
    if (!text.empty()) content.emplace_back(TextBlock{std::move(text), {}, {}});
  }

  ToolOutput(const char* text) : ToolOutput(std::string(text)) {}  // NOLINT

  ToolOutput(std::vector<ContentBlock> blocks) : content(std::move(blocks)) {}  // NOLINT
};

// An error whose content the model sees as it is.
struct ToolError : Error {
  explicit ToolError(const std::string& message) : Error(message), output(message) {}

  explicit ToolError(std::vector<ContentBlock> blocks)
      : Error("the tool answered with an error"), output(std::move(blocks)) {}

  ToolOutput output;
};

struct RunnableTool {
  Tool definition;
  std::function<ToolOutput(const JsonText& input)> run;
};

// A tool from a callable. Its input is a described struct (incipit/schema.h), whose schema it gets.
//
//   struct Place { std::string city; };            // with Described<Place>
//   runnable<Place>("get_weather", "Weather of a city", [](const Place& at) { return
//   look_up(at.city); });
template <class Input, class Callable>
requires std::is_invocable_v<Callable&, const Input&>

[[nodiscard]] RunnableTool runnable(std::string name, std::string description, Callable callable) {
  Tool tool;
  tool.name = std::move(name);
  tool.description = std::move(description);
  tool.input_schema = schema_of<Input>();
  return {std::move(tool), [callable = std::move(callable)](const JsonText& input) mutable {
            return ToolOutput(callable(from_json<Input>(input.value())));
          }};
}

struct RunnerOptions {
  Parameters parameters = {};
  RequestOptions request = {};
  int max_iterations = 20;  // requests, after which the loop ends with what it has
  // Calls of one reply that run at the same time, in the caller's thread and others that end before
  // `next` returns. Above 1, what the tools share is theirs to guard: one tool may run twice at
  // once. 1: one after the other.
  int concurrency = 1;
  // Places the markers before each request, so that every turn reads what the one before wrote.
  // Unset: the prompt's markers are left as they are.
  bool cache = true;
  // Streams each reply, and shows its events.
  std::function<void(const StreamEvent&)> on_event = {};
};

// Sends a prompt, runs the tools that the reply calls, sends the results, until a reply calls none.
// The replies become turns of the prompt byte for byte, so the cache survives. Each request has the
// whole conversation: message threads (W, 18.1) are not used.
//
//   ToolRunner runner(client, prompt, {weather});
//   const Message answer = runner.run();
//
// Not for use by two threads at once. What a tool throws is an answer, not an error of the loop,
// and so is a tool that does not exist, input that does not fit, and output that cannot be sent.
// Errors of the client pass through, after which `next` may be called again.
class ToolRunner {
 public:
  // Adds the definitions of `tools` to the prompt, which must have no system text or message yet
  // unless its tools are there already: then they must be the same. Throws PromptError.
  ToolRunner(const Client& client, Prompt prompt, std::vector<RunnableTool> tools,
             RunnerOptions options = {});

  // Makes the next request, runs what its reply calls, and returns the reply. Nothing once the loop
  // has ended: after a reply with a stop reason other than `tool_use`, `pause_turn` and
  // `compaction`, a `tool_use` without a call, or max_iterations.
  std::optional<Message> next();

  // Until the end; the last reply. Throws PromptError when the loop has ended already.
  Message run();

  // The conversation so far, with all replies and results: continue it, or look at it. After stop
  // reason max_tokens or refusal its last turn may have calls that were not run.
  [[nodiscard]] const Prompt& prompt() const { return prompt_; }

  // Counters over all requests.
  [[nodiscard]] const Usage& usage() const { return usage_; }

  [[nodiscard]] int iterations() const { return iterations_; }

 private:
  [[nodiscard]] Message send();
  [[nodiscard]] ToolResultBlock answer(const ToolUseBlock& call) const;
  [[nodiscard]] std::vector<ToolResultBlock> answers(
      const std::vector<const ToolUseBlock*>& calls) const;

  Client client_;
  Prompt prompt_;
  std::vector<RunnableTool> tools_;
  RunnerOptions options_;
  Usage usage_;
  int iterations_ = 0;
  bool ended_ = false;
};

}  // namespace incipit
