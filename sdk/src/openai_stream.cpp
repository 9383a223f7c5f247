#include "openai_read.h"
#include "sse_parser.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace incipit::openai {
namespace {

// The events of a response as they come; `[DONE]` and whatever follows it is the end.
class Events {
 public:
  explicit Events(HttpResponse response) : response_(std::move(response)) {
    if (const std::string* id = response_.header("x-request-id")) request_id_ = *id;
  }

  std::optional<SseEvent> next() {
    while (true) {
      if (auto event = parser_.next()) {
        if (!event->data.starts_with("[DONE]")) return event;
        done_ = true;
        close();
      }
      if (!response_.body) return std::nullopt;
      const std::string_view bytes = response_.body->read();
      if (bytes.empty()) {
        parser_.finish();
        response_.body.reset();
      } else {
        parser_.feed(bytes);
      }
    }
  }

  void close() {
    response_.body.reset();
    parser_ = {};
  }

  // `[DONE]` was seen.
  [[nodiscard]] bool done() const { return done_; }

  [[nodiscard]] const std::string& request_id() const { return request_id_; }

 private:
  HttpResponse response_;
  SseParser parser_;
  std::string request_id_;
  bool done_ = false;
};

enum class Progress : std::uint8_t { reading, complete, closed };

// Runs `step`; what it throws ends the stream.
template <class Step>
auto guarded(Events& events, Progress& progress, const Step& step) {
  try {
    return step();
  } catch (ApiError& error) {
    progress = Progress::closed;
    events.close();
    error.request_id = events.request_id();
    throw;
  } catch (...) {
    progress = Progress::closed;
    events.close();
    throw;
  }
}

[[noreturn]] void fail(const std::string& message) {
  throw ParseError(message, 0, 1, 1, 0);
}

void require_complete(Progress progress) {
  if (progress != Progress::complete) fail("the stream was closed, or failed, before its end");
}

// The element that belongs to `key`, new at the end when the key is.
template <class Key, class Element>
Element& element_of(std::map<Key, std::size_t>& places, const Key& key,
                    std::vector<Element>& elements) {
  const auto [place, fresh] = places.emplace(key, elements.size());
  if (fresh) elements.emplace_back();
  return elements[place->second];
}

void append(std::optional<std::string>& target, const std::string& text) {
  if (!target) target.emplace();
  *target += text;
}

// Servers repeat names, or send them empty, where they mean the ones they have sent.
void overwrite(std::string& target, const std::string& text) {
  if (!text.empty()) target = text;
}

}  // namespace

// ---------------------------------------------------------------------------- chat completions

struct ChatStream::State {
  explicit State(HttpResponse source) : events(std::move(source)) {
    completion.request_id = events.request_id();
  }

  void take(const SseEvent& event);
  void take_choice(const JsonObject& choice, ChatChunk& chunk);
  void take_call(const JsonObject& fragment, ChatMessage& message, ChatChunk& chunk);
  [[nodiscard]] bool finished() const;

  Events events;
  ChatCompletion completion;
  std::map<std::int64_t, std::size_t> choice_places;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> call_places;
  std::deque<ChatChunk> ready;
  Progress progress = Progress::reading;
};

bool ChatStream::State::finished() const {
  return !completion.choices.empty()
         && std::ranges::none_of(completion.choices, &std::string::empty,
                                 &ChatChoice::finish_reason);
}

// One chunk for each choice, at least one; usage is on the last.
void ChatStream::State::take(const SseEvent& event) {
  const JsonObject root(JsonPlace::check(event.data));
  throw_if_error(event.name, root);
  const JsonText json = root.place().json();
  if (completion.json.empty()) completion.json = json;
  overwrite(completion.id, root.string_or_empty("id"));
  overwrite(completion.model, root.string_or_empty("model"));
  if (completion.created == 0) completion.created = root.integer("created").value_or(0);
  for (const JsonPlace& choice : find_items(root, "choices")) {
    ready.emplace_back().json = json;
    take_choice(JsonObject(choice), ready.back());
  }
  if (ready.empty()) ready.emplace_back().json = json;
  ready.back().usage = read_usage(root);
  if (ready.back().usage) completion.usage = ready.back().usage;
}

void ChatStream::State::take_choice(const JsonObject& choice, ChatChunk& chunk) {
  chunk.choice = choice.integer("index").value_or(0);
  chunk.finish_reason = choice.string_or_empty("finish_reason");
  ChatChoice& target = element_of(choice_places, chunk.choice, completion.choices);
  target.index = chunk.choice;
  overwrite(target.finish_reason, chunk.finish_reason);

  const auto delta = find_object(choice, "delta");
  if (!delta) return;
  ChatMessage& message = target.message;
  overwrite(message.role, delta->string_or_empty("role"));
  chunk.content = delta->string_or_empty("content");
  chunk.refusal = delta->string_or_empty("refusal");
  if (!chunk.content.empty()) append(message.content, chunk.content);
  if (!chunk.refusal.empty()) append(message.refusal, chunk.refusal);
  for (const JsonPlace& fragment : find_items(*delta, "tool_calls"))
    take_call(JsonObject(fragment), message, chunk);
}

void ChatStream::State::take_call(const JsonObject& fragment, ChatMessage& message,
                                  ChatChunk& chunk) {
  const std::int64_t index = fragment.at("index").integer();  // without it two calls would be one
  ToolCall call = read_call(fragment);
  ToolCall& whole = element_of(call_places, {chunk.choice, index}, message.tool_calls);
  overwrite(whole.id, call.id);
  overwrite(whole.name, call.name);
  if (fragment.find("type")) whole.type = call.type;
  whole.arguments += call.arguments;
  chunk.tool_calls.push_back(std::move(call));
  chunk.tool_call_indexes.push_back(index);
}

ChatStream::ChatStream(HttpResponse response)
    : state_(std::make_unique<State>(std::move(response))) {}

ChatStream::ChatStream(ChatStream&&) noexcept = default;
ChatStream& ChatStream::operator=(ChatStream&&) noexcept = default;
ChatStream::~ChatStream() = default;

std::optional<ChatChunk> ChatStream::next() {
  State& state = *state_;
  if (state.ready.empty() && state.progress == Progress::reading) {
    guarded(state.events, state.progress, [&] {
      if (const auto event = state.events.next()) return state.take(*event);
      if (!state.events.done() && !state.finished()) {
        fail("the stream ended before a finish_reason and without [DONE]");
      }
      state.progress = Progress::complete;
    });
  }
  if (state.ready.empty()) return std::nullopt;
  ChatChunk chunk = std::move(state.ready.front());
  state.ready.pop_front();
  return chunk;
}

const ChatCompletion& ChatStream::snapshot() const {
  return state_->completion;
}

const ChatCompletion& ChatStream::completion() {
  while (next()) {
  }
  require_complete(state_->progress);
  return state_->completion;
}

void ChatStream::close() {
  state_->events.close();
  state_->ready.clear();
  if (state_->progress == Progress::reading) state_->progress = Progress::closed;
}

// ------------------------------------------------------------------------------------ responses

struct ResponseStream::State {
  explicit State(HttpResponse source) : events(std::move(source)) {}

  ResponseEvent take(const SseEvent& event);

  Events events;
  Response response;
  Progress progress = Progress::reading;
};

ResponseEvent ResponseStream::State::take(const SseEvent& event) {
  const JsonObject root(JsonPlace::check(event.data));
  throw_if_error(event.name, root);
  ResponseEvent result;
  result.type = root.string("type").value_or(std::string(event.name));
  result.sequence_number = root.integer("sequence_number").value_or(0);
  result.output_index = root.integer("output_index").value_or(0);
  result.json = root.place().json();
  if (const auto delta = root.find("delta"); delta && delta->is_string()) {
    result.delta = delta->string();
  }
  if (result.type == "response.completed" || result.type == "response.incomplete"
      || result.type == "response.failed") {
    response = read_response(JsonObject(root.at("response")));
    response.request_id = events.request_id();
    progress = Progress::complete;
    events.close();
  }
  return result;
}

ResponseStream::ResponseStream(HttpResponse response)
    : state_(std::make_unique<State>(std::move(response))) {}

ResponseStream::ResponseStream(ResponseStream&&) noexcept = default;
ResponseStream& ResponseStream::operator=(ResponseStream&&) noexcept = default;
ResponseStream::~ResponseStream() = default;

std::optional<ResponseEvent> ResponseStream::next() {
  State& state = *state_;
  if (state.progress != Progress::reading) return std::nullopt;
  return guarded(state.events, state.progress, [&]() -> std::optional<ResponseEvent> {
    const auto event = state.events.next();
    if (!event) fail("the stream ended before response.completed, .incomplete or .failed");
    return state.take(*event);
  });
}

const Response& ResponseStream::response() {
  while (next()) {
  }
  require_complete(state_->progress);
  return state_->response;
}

void ResponseStream::close() {
  state_->events.close();
  if (state_->progress == Progress::reading) state_->progress = Progress::closed;
}

}  // namespace incipit::openai
