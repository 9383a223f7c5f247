#include "incipit/stream.h"

#include "retry.h"
#include "sse_parser.h"

#include <string_view>
#include <utility>

namespace incipit {

struct MessageStream::State {
  HttpResponse response;
  std::function<void(Message&)> finished;
  std::string request_id = {};
  SseParser parser = {};
  MessageAccumulator accumulator = {};
  bool received = false;  // any event at all
  bool over = false;      // nothing more is read

  std::optional<StreamEvent> next();
  std::optional<StreamEvent> event(const SseEvent& frame);
  bool feed();
  void drain() noexcept;
};

namespace {

ParseError unreadable(const std::string& what) {
  return {what, 0, 1, 1, 0};
}

// A server or proxy that does not stream would otherwise look like a stream without events.
void check_content_type(const HttpResponse& response) {
  const std::string* type = find_header(response.headers, "content-type");
  if (type == nullptr || !(type->starts_with("application/json") || type->starts_with("text/html")))
    return;
  throw unreadable("asked for a stream, the server answered with a body of type " + *type
                   + " instead of text/event-stream; something on the way does not stream");
}

}  // namespace

// False at the end of the body.
bool MessageStream::State::feed() {
  const std::string_view bytes = response.body ? response.body->read() : std::string_view();
  if (bytes.empty())
    parser.finish();
  else
    parser.feed(bytes);
  return !bytes.empty();
}

// Nothing for a frame that the caller need not see.
std::optional<StreamEvent> MessageStream::State::event(const SseEvent& frame) {
  received = true;
  if (frame.name == "ping") return std::nullopt;
  if (frame.name == "error") throw parse_api_error(0, frame.data);
  std::optional<StreamEvent> event = parse_stream_event(frame.data);
  if (!event) return std::nullopt;
  if (auto* start = std::get_if<MessageStartEvent>(&event->value))
    start->message.request_id = request_id;
  accumulator.add(*event);
  if (event->get_if<MessageStopEvent>() != nullptr && finished) finished(accumulator.message_);
  return event;
}

std::optional<StreamEvent> MessageStream::State::next() {
  for (bool more = true;;) {
    while (const std::optional<SseEvent> frame = parser.next()) {
      if (frame->name.empty()) continue;  // section 19.4
      if (std::optional<StreamEvent> found = event(*frame)) return found;
    }
    if (!more) break;
    more = feed();
  }
  if (!received) throw unreadable("the stream ended without any events");
  throw unreadable("the stream ended without message_stop: the message is not complete");
}

// A connection is used again only when its body was read to the end. The message is complete: what
// goes wrong here is nobody's concern.
void MessageStream::State::drain() noexcept {
  try {
    while (response.body && !response.body->read().empty()) {
    }
  } catch (const Error&) {
    // Then there is no connection to be kept.
  }
  response.body.reset();
}

MessageStream::MessageStream(HttpResponse response, std::function<void(Message&)> finished)
    : state_(std::make_unique<State>(State{std::move(response), std::move(finished)})) {
  if (const std::string* id = find_header(state_->response.headers, "request-id"))
    state_->request_id = *id;
  check_content_type(state_->response);
}

MessageStream::MessageStream(MessageStream&&) noexcept = default;
MessageStream& MessageStream::operator=(MessageStream&&) noexcept = default;
MessageStream::~MessageStream() = default;

std::optional<StreamEvent> MessageStream::next() {
  if (state_->over) return std::nullopt;
  if (state_->accumulator.complete()) {
    state_->over = true;
    state_->drain();
    return std::nullopt;
  }
  try {
    return state_->next();
  } catch (ApiError& error) {
    if (error.request_id.empty()) error.request_id = state_->request_id;
    close();
    throw;
  } catch (...) {
    close();
    throw;
  }
}

const Message& MessageStream::snapshot() const {
  return state_->accumulator.snapshot();
}

JsonValue MessageStream::partial_input(std::size_t index) const {
  return state_->accumulator.partial_input(index);
}

const Message& MessageStream::message() {
  while (next()) {
  }
  if (!state_->accumulator.complete())
    throw unreadable("the stream was closed, or failed, before its message was complete");
  return snapshot();
}

void MessageStream::close() {
  state_->over = true;
  state_->response.body.reset();
}

const std::string& MessageStream::request_id() const {
  return state_->request_id;
}

const std::vector<HttpHeader>& MessageStream::headers() const {
  return state_->response.headers;
}

}  // namespace incipit
