// The Messages API answer: pieces in, JSON or server-sent events out. No I/O.
// Source: anthropic-wire sections 9 and 10.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/api/error.h"
#include "gateway/prompt/reply_parser.h"
#include "incipit/usage.h"

namespace incipit::gateway {

// "end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded".
struct StopState {
  std::string reason;
  std::string sequence;  // empty = null
};

class AnthropicReply {
 public:
  // `usage` is final but for output_tokens.
  AnthropicReply(std::string model, std::string message_id, const Usage& usage);

  // Streaming: each returns the bytes to send now, whole events only.
  [[nodiscard]] std::string begin(int output_tokens);  // message_start
  [[nodiscard]] std::string pieces(const std::vector<Piece>& pieces);
  [[nodiscard]] std::string end(const StopState& stop, std::int64_t output_tokens);
  [[nodiscard]] static std::string ping();
  [[nodiscard]] static std::string error(const ApiError& error, std::string_view request_id);

  // Whole: collect the same pieces, then one JSON body.
  void collect(const std::vector<Piece>& pieces);
  [[nodiscard]] std::string body(const StopState& stop, std::int64_t output_tokens) const;

 private:
  struct Block {
    std::string type;  // "text" or "tool_use"
    std::string text;  // text, or the input JSON
    std::string id, name;
  };
  std::string model_, message_id_;
  Usage usage_;
  std::vector<Block> blocks_;
  int index_ = -1;
  bool pinged_ = false;
};

// "msg_01" + 22 random base58 characters and the like.
[[nodiscard]] std::string make_id(std::string_view prefix);

}  // namespace incipit::gateway
