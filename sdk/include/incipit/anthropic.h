// Values of the Messages API in both directions, as typed as they can be without losing bytes that
// matter to a prompt cache. Plain data: no validation and no I/O here. Names are those of the wire.
// Source: anthropic-wire sections 4-10.
#pragma once

#include "incipit/error.h"
#include "incipit/json.h"
#include "incipit/usage.h"
#include "incipit/word.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace incipit {

// {"type":"ephemeral"}, with "ttl":"1h" for an hour: the prompt up to the end of what carries it is
// worth keeping.
struct CacheControl {
  Ttl ttl = Ttl::five_minutes;
  friend bool operator==(const CacheControl&, const CacheControl&) = default;
};

class ContentBlock;

// Where the assistant found a statement. Positions are half-open; which pair is set follows from
// `type`. `json` is the citation as received, and what is sent back when it is not empty.
struct Citation {
  std::string type =
      {};  // char_location, page_location, content_block_location, search_result_location,
           // web_search_result_location, or one that is not known yet
  std::string cited_text = {};
  std::string title = {};   // document_title or title
  std::string source = {};  // search_result_location
  std::string url = {};     // web_search_result_location
  std::string file_id = {};
  std::optional<std::int64_t> document_index = {};
  std::optional<std::int64_t> search_result_index = {};
  std::optional<std::int64_t> start = {};  // start_char_index, start_page_number, start_block_index
  std::optional<std::int64_t> end = {};
  JsonText json = {};
};

struct TextBlock {
  std::string text = {};
  std::optional<CacheControl> cache_control = {};
  std::vector<Citation> citations = {};
};

// The bytes of an image or document, or where to find them.
struct Base64Source {
  std::string media_type = {};  // image/jpeg, image/png, image/gif, image/webp, application/pdf
  std::string data = {};        // base64; see `base64()`
};

struct UrlSource {
  std::string url = {};
};

struct FileSource {
  std::string file_id = {};
};

// text/plain
struct TextSource {
  std::string data = {};
};

// A document of text and image blocks, which are what its citations count.
struct ContentSource {
  std::vector<ContentBlock> content;  // no initialiser: clang wants a whole type for one
};

// Base64 of any bytes (RFC 4648, with padding, without line breaks).
[[nodiscard]] std::string base64(std::string_view bytes);

struct ImageBlock {
  std::variant<Base64Source, UrlSource, FileSource> source;
  std::optional<CacheControl> cache_control = {};
};

struct DocumentBlock {
  std::variant<Base64Source, TextSource, ContentSource, UrlSource, FileSource> source;
  std::optional<std::string> title = {};
  std::optional<std::string> context = {};
  bool citations = false;  // {"citations":{"enabled":true}}
  std::optional<CacheControl> cache_control = {};
};

struct SearchResultBlock {
  std::string source = {};
  std::string title = {};
  std::vector<TextBlock> content = {};
  bool citations = false;
  std::optional<CacheControl> cache_control = {};
};

// The model's own. Both kinds go back unchanged within a tool loop and cannot carry a marker (E-6).
struct ThinkingBlock {
  std::string thinking = {};  // empty when the display is omitted
  std::string signature = {};
};

struct RedactedThinkingBlock {
  std::string data = {};
};

// The assistant calls a tool.
struct ToolUseBlock {
  std::string id = {};
  std::string name = {};
  JsonText input = {};  // an object; its key order is part of the prompt (C-7)
  std::optional<CacheControl> cache_control = {};
};

// The user answers a call.
struct ToolResultBlock {
  std::string tool_use_id = {};
  std::vector<ContentBlock> content;  // text, image, document, search_result; none: an empty answer
  bool is_error = false;
  std::optional<CacheControl> cache_control = {};
};

// The assistant used a tool that runs at the provider.
struct ServerToolUseBlock {
  std::string id = {};
  std::string name = {};  // web_search, web_fetch, code_execution, …
  JsonText input = {};
  std::optional<CacheControl> cache_control = {};
};

// What it answered: web_search_tool_result, web_fetch_tool_result, code_execution_tool_result,
// bash_code_execution_tool_result, text_editor_code_execution_tool_result, tool_search_tool_result.
struct ServerToolResultBlock {
  std::string type = {};
  std::string tool_use_id = {};
  JsonText content = {};        // an array of results, or one object
  std::string error_code = {};  // of an error; empty for a result
  std::optional<CacheControl> cache_control = {};
};

// A file for the code execution container.
struct ContainerUploadBlock {
  std::string file_id = {};
  std::optional<CacheControl> cache_control = {};
};

// A kind that this version has no type for, betas among them.
struct UnknownBlock {
  std::string type = {};
  JsonText json = {};  // the whole object, without cache_control
  std::optional<CacheControl> cache_control = {};
};

// One element of `content`: of a request, or received. A received block remembers its JSON and is
// sent back byte for byte, with fields that have no member here, nulls, and all. It is read-only
// for that reason; to change one, copy the typed value, edit it, and make a new block of it.
//
//   if (const auto* call = block.get_if<ToolUseBlock>()) run(call->name, call->input);
class ContentBlock {
 public:
  using Value =
      std::variant<TextBlock, ImageBlock, DocumentBlock, SearchResultBlock, ThinkingBlock,
                   RedactedThinkingBlock, ToolUseBlock, ToolResultBlock, ServerToolUseBlock,
                   ServerToolResultBlock, ContainerUploadBlock, UnknownBlock>;

  template <class Block>
  static constexpr bool is_kind = []<class... Kinds>(std::variant<Kinds...>*) {
    return (std::is_same_v<Block, Kinds> || ...);
  }(static_cast<Value*>(nullptr));

  template <class Block>

  requires is_kind<std::remove_cvref_t<Block>> ContentBlock(
      Block&& block)  // NOLINT: each kind of block is a content block
      : value_(std::forward<Block>(block)) {}

  // A block from its JSON. Throws ParseError: `path` and `offset` count from the start of `json`.
  [[nodiscard]] static ContentBlock parse(JsonText json);

  [[nodiscard]] const Value& value() const { return value_; }

  template <class Block>
  [[nodiscard]] const Block* get_if() const {
    return std::get_if<Block>(&value_);
  }

  template <class Block>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<Block>(value_);
  }

  // The wire's name of the kind: "text", "tool_use", …
  [[nodiscard]] std::string_view type() const;

  [[nodiscard]] std::optional<CacheControl> cache_control() const;

  // Sets or clears the marker. False, and nothing changed, for a kind that cannot carry one.
  bool mark(std::optional<CacheControl> marker);

  // As received, without cache_control; empty for a block that was built here.
  [[nodiscard]] const JsonText& received() const { return received_; }

  void write(JsonWriter& writer) const;

 private:
  friend class BlockReader;
  friend class MessageAccumulator;

  Value value_;
  JsonText received_ = {};
};

enum class MessageRole : std::uint8_t { user, assistant, system };

struct MessageParam {
  MessageRole role = MessageRole::user;
  std::vector<ContentBlock> content = {};  // always sent as an array
  JsonText extra = {};                     // an object: further members, for betas
};

// A tool that the caller runs; or, with `type`, one that the provider defines.
struct Tool {
  std::string name = {};
  std::optional<std::string> description = {};
  JsonText input_schema = {};                 // an object; key order is part of the prompt (C-7)
  std::vector<JsonText> input_examples = {};  // objects
  bool defer_loading = false;                 // kept out of the prompt (C-73)
  std::optional<CacheControl> cache_control = {};
  std::optional<bool> strict = {};
  std::vector<std::string> allowed_callers = {};
  std::optional<bool> eager_input_streaming = {};
  std::string type =
      {};  // "web_search_20260318", "bash_20250124", …; empty or "custom": the caller's
  JsonText options = {};  // an object: further members of the tool, e.g. {"max_uses":3}
};

struct ToolChoice {
  enum class Type : std::uint8_t { automatic, any, tool, none };
  Type type = Type::automatic;
  std::string name = {};  // Type::tool only
  bool disable_parallel_tool_use = false;
};

struct Thinking {
  enum class Type : std::uint8_t { adaptive, enabled, between_tools, disabled };
  Type type = Type::disabled;
  std::int64_t budget_tokens = 0;  // Type::enabled only
  std::string display = {};        // "summarized", "omitted"; empty: the model's default
};

enum class Effort : std::uint8_t { low, medium, high, xhigh, max };

// `diagnostics`: asks the server why this request could not read what an earlier one wrote (C-93).
struct DiagnosticsParam {
  std::optional<std::string> previous_message_id = {};  // none: null, the first of a conversation
};

struct MessageRequest {
  std::string model = {};
  std::int64_t max_tokens = 0;  // 0 = fill the cache, generate nothing
  std::vector<Tool> tools = {};
  std::vector<TextBlock> system = {};  // always sent as an array
  std::vector<MessageParam> messages = {};
  std::optional<CacheControl> cache_control = {};  // automatic caching
  std::optional<ToolChoice> tool_choice = {};
  std::optional<Thinking> thinking = {};
  std::optional<Effort> effort = {};           // output_config.effort
  std::optional<JsonText> output_format = {};  // output_config.format
  std::vector<std::string> stop_sequences = {};
  std::optional<double> temperature = {};  // these three: only under version 2023-06-01 (W-4)
  std::optional<double> top_p = {};
  std::optional<std::int64_t> top_k = {};
  bool stream = false;                      // set by the client
  std::optional<std::string> user_id = {};  // metadata.user_id
  std::optional<std::string> service_tier = {};
  std::optional<std::string> inference_geo = {};
  std::optional<std::string> speed = {};
  JsonText container = {};  // a string or an object
  std::optional<DiagnosticsParam> diagnostics = {};
  JsonText extra = {};  // an object: further top-level members, for betas; sent last
};

// ---------------------------------------------------------------------------------- responses

enum class StopReason : std::uint8_t {
  unknown,
  end_turn,
  max_tokens,
  stop_sequence,
  tool_use,
  pause_turn,  // a server tool loop paused: send the content back as it is
  refusal,
  model_context_window_exceeded,
  compaction
};

// `diagnostics.cache_miss_reason` (C-95).
struct CacheMissReason {
  std::string type = {};  // model_changed, system_changed, tools_changed, messages_changed,
                          // previous_message_not_found, unavailable
  std::optional<std::int64_t> cache_missed_input_tokens = {};  // an estimate
};

struct CacheMiss;  // incipit/fingerprint.h

// A reply.
struct Message {
  std::string id = {};
  std::string model = {};  // the one that answered
  std::vector<ContentBlock> content = {};
  std::optional<Word<StopReason>> stop_reason = {};  // none until a stream has ended
  std::optional<std::string> stop_sequence = {};
  JsonText stop_details = {};  // empty when null or absent
  Usage usage;
  JsonText container = {};
  std::optional<CacheMissReason> cache_miss_reason = {};
  JsonText json = {};           // as received; of a stream, the message_start
  std::string request_id = {};  // the response header
  // Why the cache was read less than it could have been; only with
  // RequestOptions::conversation, and only when it was.
  std::shared_ptr<const CacheMiss> cache_miss = {};

  // All text blocks, one after the other.
  [[nodiscard]] std::string text() const;

  // The same as a turn of the next request: its blocks go back byte for byte.
  [[nodiscard]] MessageParam param() const { return {MessageRole::assistant, content}; }
};

// ------------------------------------------------------------------------------------ streams

struct TextDelta {
  std::string text = {};
};

struct InputJsonDelta {
  std::string partial_json = {};
};

struct CitationsDelta {
  Citation citation;
};

struct ThinkingDelta {
  std::string thinking = {};
};

struct SignatureDelta {
  std::string signature = {};
};

struct UnknownDelta {
  std::string type = {};
  JsonText json = {};
};

struct MessageStartEvent {
  Message message;
};

struct ContentBlockStartEvent {
  std::size_t index;
  ContentBlock content_block;
};

struct ContentBlockDeltaEvent {
  std::size_t index;
  std::variant<TextDelta, InputJsonDelta, CitationsDelta, ThinkingDelta, SignatureDelta,
               UnknownDelta>
      delta;
};

struct ContentBlockStopEvent {
  std::size_t index;
};

// Counters are cumulative and absent where the server did not repeat them (W-20, W-21).
struct UsageDelta {
  std::optional<std::int64_t> input_tokens = {};
  std::optional<std::int64_t> cache_creation_input_tokens = {};
  std::optional<std::int64_t> cache_read_input_tokens = {};
  std::optional<std::int64_t> output_tokens = {};
  std::optional<std::int64_t> thinking_tokens = {};
  std::optional<std::int64_t> web_search_requests = {};
  std::optional<std::int64_t> web_fetch_requests = {};
};

struct MessageDeltaEvent {
  std::optional<Word<StopReason>> stop_reason = {};
  std::optional<std::string> stop_sequence = {};
  JsonText stop_details = {};
  JsonText container = {};
  UsageDelta usage;
};

struct MessageStopEvent {};

struct UnknownEvent {
  std::string type = {};
  JsonText json = {};
};

// One event of a stream. `ping` is not among them, and `error` is thrown.
struct StreamEvent {
  std::variant<MessageStartEvent, ContentBlockStartEvent, ContentBlockDeltaEvent,
               ContentBlockStopEvent, MessageDeltaEvent, MessageStopEvent, UnknownEvent>
      value;

  template <class Event>
  [[nodiscard]] const Event* get_if() const {
    return std::get_if<Event>(&value);
  }

  // The piece of text, thinking or tool input that the event brings, or null.
  [[nodiscard]] const std::string* text() const;
  [[nodiscard]] const std::string* thinking() const;
  [[nodiscard]] const std::string* input_json() const;
};

// --------------------------------------------------------------------------------------- JSON

// The body of POST /v1/messages, compact, keys in this order: model, max_tokens, tools, system,
// messages, then the settings, then `extra`. The same request gives the same bytes on every
// machine.
[[nodiscard]] std::string to_json(const MessageRequest& request);

// The body of POST /v1/messages/count_tokens: without what that endpoint does not take (section
// 13).
[[nodiscard]] std::string count_tokens_json(const MessageRequest& request);

// Reads what `to_json` writes, and any other body of the Messages API: a string `system` or
// `content` becomes one text block; members without a field go to `extra`, and so does a setting
// that says more than its field can hold. Throws ParseError with path and offset.
[[nodiscard]] MessageRequest parse_message_request(std::string_view json);

// A reply as received. Throws ParseError with path and offset.
[[nodiscard]] Message parse_message(std::string_view json);

// One event of a stream from the `data` of its frame. Nothing for `ping`; throws ApiError for
// `error`, ParseError for what is no event.
[[nodiscard]] std::optional<StreamEvent> parse_stream_event(std::string_view json);

// The error of a response with that status and body.
[[nodiscard]] ApiError parse_api_error(int status, std::string_view body);

}  // namespace incipit
