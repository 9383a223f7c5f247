// A reply while it arrives. Source: anthropic-wire sections 10 and 19.4.
#pragma once

#include "incipit/anthropic.h"
#include "incipit/transport.h"

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace incipit {

// Puts the events of a stream together to the message they spell. No I/O.
//
// A block that has ended is sent back as the JSON of its start event with the streamed members put
// in their place; tool input is the concatenation of its pieces, byte for byte. Input that is no
// JSON object, cut off by max_tokens under eager streaming (W-24), is left `{}` there;
// `partial_input` still shows what had come.
class MessageAccumulator {
 public:
  // Throws ParseError for an event out of order: a second message_start, a delta for a block that
  // is not open.
  void add(const StreamEvent& event);

  // The message so far: text and thinking as far as they have come, tool input `{}` until its block
  // has ended (see `partial_input`). Reference valid until the next call of `add`.
  [[nodiscard]] const Message& snapshot() const { return message_; }

  // The input of the tool call at `index` as far as it has come, in valid JSON; null for other
  // blocks.
  [[nodiscard]] JsonValue partial_input(std::size_t index) const;

  [[nodiscard]] bool started() const { return started_; }

  // message_stop was seen.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  friend class MessageStream;  // adds what no event says: the request id, a cache miss

  // What a block needs beside its typed value until it is whole.
  struct Part {
    JsonText start = {};     // as content_block_start brought it
    std::string input = {};  // of a tool call, in pieces
    bool open = false;
    bool changed = false;  // by a delta of another kind than input
  };

  void start(const ContentBlockStartEvent& event);
  void extend(const ContentBlockDeltaEvent& event);
  void finish(std::size_t index);
  void update(const MessageDeltaEvent& event);

  Message message_;
  std::vector<Part> parts_;  // of each block of message_
  bool started_ = false;
  bool complete_ = false;
};

// The events of one reply: an input range, read once, by one thread at a time. Nothing arrives
// unless it is asked for: no thread, no buffer beyond the connection's. Destroying it before its
// end closes the connection, and the server stops generating.
//
//   for (const StreamEvent& event : stream)
//     if (const auto* text = event.text()) std::cout << *text << std::flush;
//   use(stream.message());
class MessageStream {
 public:
  // `finished` sees the final message before anybody else. Made by `Client::stream`; public so that
  // a recorded body can be replayed.
  explicit MessageStream(HttpResponse response, std::function<void(Message&)> finished = {});
  MessageStream(MessageStream&&) noexcept;
  MessageStream& operator=(MessageStream&&) noexcept;
  ~MessageStream();

  // The next event; nothing after the last. Throws ApiError for an `error` event (status 0),
  // TransportError when the connection broke or fell silent for the timeout or was cancelled,
  // ParseError for what is no event, and when the stream ended without message_stop. After a throw
  // or `close`: nothing.
  std::optional<StreamEvent> next();

  // The message so far.
  [[nodiscard]] const Message& snapshot() const;
  [[nodiscard]] JsonValue partial_input(std::size_t index) const;

  // Reads what is left and returns the final message. Throws as `next` does; when the stream was
  // closed or has failed before its end, ParseError.
  [[nodiscard]] const Message& message();

  // The same for its text.
  [[nodiscard]] std::string text() { return message().text(); }

  // Ends the exchange now.
  void close();

  [[nodiscard]] const std::string& request_id() const;
  [[nodiscard]] const std::vector<HttpHeader>& headers() const;

  class Iterator {
   public:
    using value_type = StreamEvent;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;

    explicit Iterator(MessageStream* stream) : stream_(stream) { ++*this; }

    const StreamEvent& operator*() const { return *event_; }

    const StreamEvent* operator->() const { return &*event_; }

    Iterator& operator++() {
      event_ = stream_->next();
      return *this;
    }

    void operator++(int) { ++*this; }

    friend bool operator==(const Iterator& at, std::default_sentinel_t) { return !at.event_; }

   private:
    MessageStream* stream_ = nullptr;
    std::optional<StreamEvent> event_;
  };

  // Once: events that were read are gone.
  [[nodiscard]] Iterator begin() { return Iterator(this); }

  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit
