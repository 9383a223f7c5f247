// The OpenAI APIs, Chat Completions and Responses, on the same connections, retries and errors as
// the Messages API. Source: openai-wire sections 1.8, 2 and 3.
#pragma once

#include "incipit/client.h"
#include "incipit/cost.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::openai {

// A count that was not sent is unset, not 0: a server that says nothing of its cache is told apart
// from one that missed it.
struct Usage {
  std::int64_t input_tokens = 0;   // prompt_tokens; includes what was read and written
  std::int64_t output_tokens = 0;  // completion_tokens
  std::int64_t total_tokens = 0;
  std::optional<std::int64_t> cached_tokens = {};
  std::optional<std::int64_t> cache_write_tokens = {};
  std::optional<std::int64_t> reasoning_tokens = {};

  // The same in the Messages API's counters, whose input excludes reads and writes.
  [[nodiscard]] incipit::Usage messages_usage() const;
};

// By list price; nothing for an unknown model.
[[nodiscard]] std::optional<Cost> cost(const Usage& usage, std::string_view model);

// A part of content: {"type":"text","text":…} and so on. Built with `text_part` and friends, or
// from any JSON.
[[nodiscard]] JsonText text_part(std::string_view text);
[[nodiscard]] JsonText image_part(std::string_view url, std::string_view detail = {});

struct ToolCall {
  std::string id = {};  // call_…
  std::string name = {};
  std::string arguments = {};  // JSON text, as the model wrote it
  std::string type = "function";
};

struct ChatMessage {
  std::string role = {};  // developer, system, user, assistant, tool
  std::optional<std::string> content = {};
  std::vector<JsonText> parts = {};  // instead of `content`, when not empty
  std::vector<ToolCall> tool_calls = {};
  std::string tool_call_id = {};  // tool
  std::string name = {};
  std::optional<std::string> refusal = {};
};

struct FunctionTool {
  std::string name = {};
  std::optional<std::string> description = {};
  JsonText parameters = {};  // a JSON Schema; empty: none
  std::optional<bool> strict = {};
};

struct ChatRequest {
  std::string model = {};
  std::vector<ChatMessage> messages = {};
  std::vector<FunctionTool> tools = {};
  JsonText tool_choice = {};      // "auto", "none", "required" with quotes, or an object
  JsonText response_format = {};  // an object
  std::optional<std::int64_t> max_completion_tokens = {};
  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::vector<std::string> stop = {};
  std::optional<std::int64_t> seed = {};
  std::string reasoning_effort = {};
  std::string prompt_cache_key = {};
  JsonText prompt_cache_options = {};
  std::string prompt_cache_retention = {};
  JsonText extra = {};  // an object: further members, sent last
};

struct ChatChoice {
  std::int64_t index = 0;
  ChatMessage message;
  std::string finish_reason = {};  // stop, length, tool_calls, content_filter
};

struct ChatCompletion {
  std::string id = {};
  std::string model = {};
  std::int64_t created = 0;
  std::vector<ChatChoice> choices = {};
  std::optional<Usage> usage = {};
  JsonText json = {};  // as received; of a stream, the first chunk
  std::string request_id = {};

  // Of the first choice; empty when there is none.
  [[nodiscard]] std::string text() const;
};

// One chunk of a stream: what it adds to one choice. A last chunk has only usage.
struct ChatChunk {
  std::int64_t choice = 0;
  std::string content = {};
  std::string refusal = {};
  std::vector<ToolCall> tool_calls = {};  // fragments; `tool_call_indexes` says of which
  std::vector<std::int64_t> tool_call_indexes = {};
  std::string finish_reason = {};
  std::optional<Usage> usage = {};
  JsonText json = {};
};

struct FunctionCallOutput {
  std::string call_id = {};
  std::string output = {};
};

struct ResponsesRequest {
  std::string model = {};
  // Items in order, as JSON: built with `user_item` and friends, or replayed from
  // `Response::output`.
  std::vector<JsonText> input = {};
  std::optional<std::string> instructions = {};
  std::vector<FunctionTool> tools = {};
  JsonText tool_choice = {};
  JsonText text = {};  // {"format":…}
  std::optional<std::int64_t> max_output_tokens = {};
  std::optional<double> temperature = {};
  std::optional<double> top_p = {};
  std::string previous_response_id = {};
  std::optional<bool> store = {};
  JsonText reasoning = {};
  std::vector<std::string> include = {};
  std::string prompt_cache_key = {};
  JsonText prompt_cache_options = {};
  std::string prompt_cache_retention = {};
  JsonText extra = {};
};

[[nodiscard]] JsonText message_item(std::string_view role, std::string_view text);
[[nodiscard]] JsonText function_call_output_item(std::string_view call_id, std::string_view output);

struct ResponseItem {
  std::string type = {};  // message, function_call, reasoning, …
  std::string id = {};
  std::string status = {};
  std::string text = {};  // message: its output_text parts
  ToolCall call;          // function_call; `call.id` is the call_id
  JsonText json = {};     // send this back to continue the conversation
};

struct Response {
  std::string id = {};
  std::string model = {};
  std::string status = {};  // completed, incomplete, failed, …
  std::string incomplete_reason = {};
  std::string error_code = {};
  std::string error_message = {};
  std::vector<ResponseItem> output = {};
  std::optional<Usage> usage = {};
  JsonText json = {};
  std::string request_id = {};

  // All output_text parts, one after the other.
  [[nodiscard]] std::string text() const;
};

// One event of a stream of the Responses API.
struct ResponseEvent {
  std::string type = {};  // "response.output_text.delta", …
  std::int64_t sequence_number = 0;
  std::int64_t output_index = 0;
  std::string delta = {};
  JsonText json = {};
};

// The bodies of POST /chat/completions and /responses, compact. Keys come in this order: model, the
// cached part of the prompt as it is rendered (tools, then messages, or instructions and input),
// the settings in the order of the members above, stream, and `extra`; the same request gives the
// same bytes on every machine. JSON of the caller goes out byte for byte. A chat stream asks for
// its usage with `stream_options`, unless `extra` has options of its own. Throws PromptError when
// `extra` is no object.
[[nodiscard]] std::string to_json(const ChatRequest& request, bool stream = false);
[[nodiscard]] std::string to_json(const ResponsesRequest& request, bool stream = false);
[[nodiscard]] ChatCompletion parse_chat_completion(std::string_view json);
[[nodiscard]] Response parse_response(std::string_view json);

// What a range-for over a stream needs.
template <class Stream, class Value>
class StreamIterator {
 public:
  using value_type = Value;
  using difference_type = std::ptrdiff_t;

  StreamIterator() = default;

  explicit StreamIterator(Stream* stream) : stream_(stream) { ++*this; }

  const Value& operator*() const { return *value_; }

  const Value* operator->() const { return &*value_; }

  StreamIterator& operator++() {
    value_ = stream_->next();
    return *this;
  }

  void operator++(int) { ++*this; }

  friend bool operator==(const StreamIterator& at, std::default_sentinel_t) { return !at.value_; }

 private:
  Stream* stream_ = nullptr;
  std::optional<Value> value_;
};

// Both streams are like incipit::MessageStream: input ranges, read once, by one thread at a time,
// each event as it is asked for; destruction closes the connection. They are lenient where servers
// differ: comments, any line ends, text behind `[DONE]`, usage on any chunk (the last one counts),
// names that are sent again.
//
//   for (const openai::ChatChunk& chunk : stream) std::cout << chunk.content << std::flush;
class ChatStream {
 public:
  // Made by `Client::chat_stream`; public so that a recorded body can be replayed.
  explicit ChatStream(HttpResponse response);
  ChatStream(ChatStream&&) noexcept;
  ChatStream& operator=(ChatStream&&) noexcept;
  ~ChatStream();

  // The next chunk; nothing after `[DONE]`, or when the stream ends after a finish_reason of every
  // choice. Throws ApiError (status 0) for an error chunk, TransportError, ParseError for what is
  // no chunk, and for a stream that ended before. After a throw or `close`: nothing.
  std::optional<ChatChunk> next();

  // What has come so far.
  [[nodiscard]] const ChatCompletion& snapshot() const;

  // Reads what is left and returns all of it. Throws as `next` does; when the stream was closed or
  // has failed before its end, ParseError.
  [[nodiscard]] const ChatCompletion& completion();

  // Ends the exchange now.
  void close();

  using Iterator = StreamIterator<ChatStream, ChatChunk>;

  // Once: chunks that were read are gone.
  [[nodiscard]] Iterator begin() { return Iterator(this); }

  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class ResponseStream {
 public:
  explicit ResponseStream(HttpResponse response);
  ResponseStream(ResponseStream&&) noexcept;
  ResponseStream& operator=(ResponseStream&&) noexcept;
  ~ResponseStream();

  // The next event; nothing after response.completed, .incomplete or .failed: all three are
  // delivered. Throws ApiError (status 0) for an `error` event of either shape, nested or flat, and
  // otherwise as ChatStream does.
  std::optional<ResponseEvent> next();

  // Reads what is left and returns the object that the last event brought. One that failed is
  // returned as well: `status` is "failed", `error_code` and `error_message` say why. Throws as
  // `ChatStream::completion` does.
  [[nodiscard]] const Response& response();
  void close();

  using Iterator = StreamIterator<ResponseStream, ResponseEvent>;

  [[nodiscard]] Iterator begin() { return Iterator(this); }

  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Unset options come from OPENAI_API_KEY, OPENAI_BASE_URL ("https://api.openai.com/v1"),
// OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS. `ClientOptions::version` and `betas`
// are not used; the key goes out as a bearer token. Retries and threads: as incipit::Client.
class Client {
 public:
  explicit Client(ClientOptions options = {});

  [[nodiscard]] ChatCompletion chat(const ChatRequest& request,
                                    const RequestOptions& options = {}) const;
  [[nodiscard]] ChatStream chat_stream(const ChatRequest& request,
                                       const RequestOptions& options = {}) const;
  [[nodiscard]] Response respond(const ResponsesRequest& request,
                                 const RequestOptions& options = {}) const;
  [[nodiscard]] ResponseStream respond_stream(const ResponsesRequest& request,
                                              const RequestOptions& options = {}) const;
  [[nodiscard]] std::vector<std::string> models(const RequestOptions& options = {}) const;
  [[nodiscard]] RawResponse call(std::string_view method, std::string_view path,
                                 std::string_view body = {},
                                 const RequestOptions& options = {}) const;

 private:
  struct State;
  std::shared_ptr<State> state_ = {};
};

}  // namespace incipit::openai
