// Builds a request in the order in which a prompt is rendered and cached: tools, system, messages.
// Source: anthropic-cache-semantics sections 2-6 (rule ids in docs/prompt-caching.md).
#pragma once

#include "incipit/anthropic.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// Everything of a request that is not prompt text. A field set here goes out; an unset one does
// not.
struct Parameters {
  std::int64_t max_tokens = 4096;
  std::optional<ToolChoice> tool_choice = {};
  std::optional<Thinking> thinking = {};
  std::optional<Effort> effort = {};
  std::optional<JsonText> output_format = {};
  std::vector<std::string> stop_sequences = {};
  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::optional<std::int64_t> top_k = {};
  std::optional<std::string> user_id = {};
  std::optional<std::string> service_tier = {};
  std::optional<std::string> inference_geo = {};
  std::optional<std::string> speed = {};
  JsonText container = {};
  std::optional<DiagnosticsParam> diagnostics = {};
  JsonText extra = {};
};

// A prompt that only grows, at its end. The same calls give the same bytes on every machine, and
// what was rendered for one request is a prefix of the next.
//
// Every call throws PromptError, and changes nothing, for what the API would refuse: text that is
// not UTF-8 (with the offset), a part out of order, a marker that cannot stand there, a result
// without its call. A value: copies are independent. Not for use by two threads at once.
class Prompt {
 public:
  explicit Prompt(std::string model);

  // Tools come first: refused once there is a system text or a message.
  Prompt& tool(Tool tool);

  // A text block of the system prompt: refused once there is a message.
  Prompt& system(std::string text);

  // Content of a user turn. A call after a call for the same role adds to that turn.
  Prompt& user(std::string text);
  Prompt& user(ContentBlock block);

  // An assistant turn: a reply as it was received, or written by hand.
  Prompt& assistant(const Message& reply);
  Prompt& assistant(std::string text);
  Prompt& assistant(ContentBlock block);

  // The answer to a tool_use of the last assistant turn. Results come before other content of their
  // turn.
  Prompt& tool_result(std::string tool_use_id, std::string text, bool is_error = false);

  // A system message inside the conversation: after a user turn, kept in the prefix (C-75).
  Prompt& system_message(std::string text);

  // A turn as a whole, always a message of its own.
  Prompt& message(MessageParam message);

  // Marks the last block as a cache breakpoint: the prompt up to its end is written to, and looked
  // for in, the cache. The marker is no part of the cached bytes (C-4). Throws PromptError on a
  // fifth marker (E-1), one hour after five minutes (E-2), empty text (E-5), thinking (E-6), a
  // deferred tool (E-7). A second call on the same block sets its TTL anew.
  Prompt& breakpoint(Ttl ttl = Ttl::five_minutes);

  // Top-level cache_control: the API marks the last block that can be marked (C-22). Takes one of
  // the four slots; refused when none is left (E-8) or when the last block's own marker differs
  // (E-9).
  Prompt& automatic_caching(Ttl ttl = Ttl::five_minutes);

  // Takes all markers away and places them anew; see `auto_breakpoints`.
  Prompt& auto_breakpoints(std::optional<Ttl> prefix = Ttl::five_minutes,
                           std::optional<Ttl> conversation = Ttl::five_minutes);

  // Takes all markers away, the automatic one too. The cached bytes stay the same (C-4).
  Prompt& clear_breakpoints();

  // The request so far. Throws PromptError as `check` does, with two exceptions: what version
  // 2026-10-21 alone refuses (W-4) is left to the client, which knows the version, and a missing
  // message to `Client::prewarm`, which fills it in.
  [[nodiscard]] MessageRequest request(const Parameters& parameters = {}) const;

  [[nodiscard]] const std::string& model() const { return request_.model; }

  [[nodiscard]] const std::vector<Tool>& tools() const { return request_.tools; }

  [[nodiscard]] const std::vector<MessageParam>& messages() const { return request_.messages; }

  // Markers in use, the automatic one included; 4 is the most.
  [[nodiscard]] int breakpoints() const;

 private:
  MessageRequest request_;
};

// Marks what a conversation should reuse, with at most four markers of which any 1-hour ones come
// first:
//   - the end of the static prefix, that is, the last system block, or without one the last tool
//   that is
//     not deferred, with the TTL `prefix`; and the last such tool besides when a marker is to
//     spare;
//   - the last block of the conversation that can carry one, with the TTL `conversation`. The given
//     beginning of a reply is left out: it changes once the reply is added to it;
//   - where that marker's 20 positions (C-32; runs of tool_use and of tool_result count as one,
//   C-36) do not
//     reach back before the last assistant turn, a lagging marker on the last block there that can
//     carry one. That is where the request before this one, which ended there, had its last marker;
//   - markers to spare, 20 positions apart, between those two: requests may also have ended within
//   the
//     assistant turn, where a server tool loop paused.
// So a request reads all that the one before it wrote if at most one assistant turn and what
// answers it, however long, lie between the two. Further apart, or with pauses more than 40
// positions (60 without a marker for the prefix) before the end, it reads up to the lagging marker
// if an earlier request wrote there, and otherwise the static prefix. Without a TTL that part gets
// no marker. Existing markers are removed first; the automatic one (top-level) is left out in
// favour of the explicit tail. A `prefix` shorter than `conversation` (five minutes before one
// hour) is a PromptError (E-2).
void auto_breakpoints(MessageRequest& request, std::optional<Ttl> prefix = Ttl::five_minutes,
                      std::optional<Ttl> conversation = Ttl::five_minutes);

// Throws PromptError, with rule id and path, for a request that the API would refuse whatever the
// model: text or JSON that is not UTF-8, markers (E-1 to E-9), order and pairing of messages and
// tool results (section 4), names of tools, pre-warm conflicts (C-90), budgets. `version` is the
// anthropic-version that it will be sent with (W-4). The client calls this before every request.
void check(const MessageRequest& request, std::string_view version = "2026-10-21");

// How the blocks of a request count in a lookback (C-32, C-36): the position of each block of tools
// (but deferred ones), system and messages, in this order, from 1.
[[nodiscard]] std::vector<std::size_t> lookback_positions(const MessageRequest& request);

}  // namespace incipit
