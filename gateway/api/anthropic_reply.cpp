#include "gateway/api/anthropic_reply.h"

#include "gateway/api/signature.h"

#include <incipit/json.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <random>
#include <utility>

namespace incipit::gateway {

namespace {

// Key order everywhere below is that of captured traffic.

std::string event(std::string_view name, std::string_view data) {
  std::string bytes;
  bytes.reserve(name.size() + data.size() + 16);
  bytes.append("event: ").append(name).append("\ndata: ").append(data).append("\n\n");
  return bytes;
}

void write_null_or(JsonWriter& json, std::string_view text) {
  if (text.empty()) {
    json.null();
  } else {
    json.string(text);
  }
}

void write_input_counters(JsonWriter& json, const Usage& usage) {
  json.key("input_tokens").integer(usage.input_tokens);
  json.key("cache_creation_input_tokens").integer(usage.cache_creation_input_tokens());
  json.key("cache_read_input_tokens").integer(usage.cache_read_input_tokens);
}

void write_creation_split(JsonWriter& json, const Usage& usage) {
  json.key("cache_creation").begin_object();
  json.key("ephemeral_5m_input_tokens").integer(usage.cache_creation_5m);
  json.key("ephemeral_1h_input_tokens").integer(usage.cache_creation_1h);
  json.end_object();
}

void write_output_tokens(JsonWriter& json, const OutputTokens& tokens) {
  json.key("output_tokens").integer(tokens.all);
  json.key("output_tokens_details").begin_object();
  json.key("thinking_tokens").integer(tokens.thinking).end_object();
}

void write_service(JsonWriter& json, const ReplyFacts& facts) {
  json.key("service_tier").string(facts.service_tier);
  json.key("inference_geo").string(facts.inference_geo);
  if (!facts.speed.empty()) json.key("speed").string(facts.speed);
}

void write_head(JsonWriter& json, const ReplyFacts& facts) {
  json.key("model").string(facts.model).key("id").string(facts.message_id);
  json.key("type").string("message").key("role").string("assistant");
}

void write_tool_use(JsonWriter& json, std::string_view id, std::string_view name,
                    std::string_view input) {
  json.begin_object().key("type").string("tool_use").key("id").string(id);
  json.key("name").string(name).key("input").raw(input);
  json.key("caller").begin_object().key("type").string("direct").end_object();
  json.end_object();
}

void write_thinking(JsonWriter& json, std::string_view thought, std::string_view signature) {
  json.begin_object().key("type").string("thinking").key("thinking").string(thought);
  json.key("signature").string(signature).end_object();
}

// The bytes of the model where they are an object: a client that sends them back hits the cache.
std::string_view object_or_empty(std::string_view text) {
  try {
    if (JsonValue::parse(text).is_object()) return text;
  } catch (const ParseError&) {
    // Cut by max_tokens. The stop reason tells; the body must stay JSON.
  }
  return "{}";
}

void write_if_set(JsonWriter& json, std::string_view name, std::string_view value) {
  if (!value.empty()) json.key(name).raw(value);
}

template <typename WriteBlock>
std::string block_start(int index, const WriteBlock& write_block) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("type").string("content_block_start").key("index").integer(index);
  json.key("content_block");
  write_block(json);
  json.end_object();
  return event("content_block_start", data);
}

std::string block_delta(int index, std::string_view type, std::string_view member,
                        std::string_view text) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("type").string("content_block_delta").key("index").integer(index);
  json.key("delta").begin_object().key("type").string(type).key(member).string(text);
  json.end_object().end_object();
  return event("content_block_delta", data);
}

std::string block_stop(int index) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("type").string("content_block_stop").key("index").integer(index);
  json.end_object();
  return event("content_block_stop", data);
}

}  // namespace

AnthropicReply::AnthropicReply(ReplyFacts facts) : facts_(std::move(facts)) {}

std::string AnthropicReply::begin(int output_tokens) const {
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("type").string("message_start").key("message").begin_object();
  write_head(json, facts_);
  json.key("content").begin_array().end_array();
  json.key("container").null().key("stop_reason").null();
  json.key("stop_sequence").null().key("stop_details").null();
  json.key("usage").begin_object();
  write_input_counters(json, facts_.usage);
  write_creation_split(json, facts_.usage);
  json.key("output_tokens").integer(output_tokens);
  write_service(json, facts_);
  json.end_object().key("diagnostics").raw(facts_.diagnostics);
  write_if_set(json, "input_transformations", facts_.input_transformations);
  json.end_object().end_object();
  return event("message_start", data);
}

std::string AnthropicReply::pieces(const std::vector<Piece>& pieces) {
  std::string bytes;
  const auto after_start = [&] {
    // Captured streams have exactly one, here (W-21a).
    if (!std::exchange(pinged_, true)) bytes += ping();
  };
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case Piece::Kind::thinking_start:
        bytes += block_start(++index_, [](JsonWriter& json) { write_thinking(json, "", ""); });
        after_start();
        thought_.emplace();
        break;
      case Piece::Kind::thinking:
        *thought_ += piece.text;
        if (facts_.shows_thinking && !piece.text.empty()) {
          bytes += block_delta(index_, "thinking_delta", "thinking", piece.text);
        }
        break;
      case Piece::Kind::text_start:
        bytes += block_start(++index_, [](JsonWriter& json) {
          json.begin_object().key("type").string("text").key("text").string("").end_object();
        });
        after_start();
        break;
      case Piece::Kind::text:
        if (!piece.text.empty()) bytes += block_delta(index_, "text_delta", "text", piece.text);
        break;
      case Piece::Kind::tool_start:
        bytes += block_start(++index_, [&](JsonWriter& json) {
          write_tool_use(json, make_id("toolu_01"), piece.name, "{}");
        });
        after_start();
        bytes += block_delta(index_, "input_json_delta", "partial_json", "");  // W-23
        break;
      case Piece::Kind::tool_input:
        if (!piece.text.empty()) {
          bytes += block_delta(index_, "input_json_delta", "partial_json", piece.text);
        }
        break;
      case Piece::Kind::stop:
        if (thought_) {
          if (!facts_.shows_thinking) {  // W-25: as captured
            bytes += block_delta(index_, "thinking_delta", "thinking", "");
          }
          bytes += block_delta(index_, "signature_delta", "signature",
                               sign_thought(*thought_, facts_.bound_to, facts_.shows_thinking));
          thought_.reset();
        }
        bytes += block_stop(index_);
        break;
    }
  }
  return bytes;
}

std::string AnthropicReply::end(const StopState& stop, const OutputTokens& tokens) const {
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("type").string("message_delta").key("delta").begin_object();
  json.key("stop_reason").string(stop.reason).key("stop_sequence");
  write_null_or(json, stop.sequence);
  json.key("stop_details").null().key("container").null().end_object();
  json.key("usage").begin_object();
  write_input_counters(json, facts_.usage);
  write_output_tokens(json, tokens);
  json.end_object();
  write_if_set(json, "context_management", facts_.context_management);
  json.end_object();
  return event("message_delta", data) + event("message_stop", R"({"type":"message_stop"})");
}

std::string AnthropicReply::ping() {
  return event("ping", R"({"type": "ping"})");
}

std::string AnthropicReply::error(const ApiError& error, std::string_view request_id) {
  return event("error", error_body(error, request_id));
}

void AnthropicReply::collect(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case Piece::Kind::thinking_start:
        blocks_.push_back({"thinking", "", "", ""});
        break;
      case Piece::Kind::text_start:
        blocks_.push_back({"text", "", "", ""});
        break;
      case Piece::Kind::tool_start:
        blocks_.push_back({"tool_use", "", make_id("toolu_01"), piece.name});
        break;
      case Piece::Kind::thinking:
      case Piece::Kind::text:
      case Piece::Kind::tool_input:
        assert(!blocks_.empty());
        blocks_.back().text += piece.text;
        break;
      case Piece::Kind::stop:
        break;
    }
  }
}

std::string AnthropicReply::body(const StopState& stop, const OutputTokens& tokens) const {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  write_head(json, facts_);
  json.key("content").begin_array();
  for (const Block& block : blocks_) {
    if (block.type == "text") {
      json.begin_object().key("type").string("text").key("text").string(block.text).end_object();
    } else if (block.type == "thinking") {
      write_thinking(json, facts_.shows_thinking ? std::string_view(block.text) : "",
                     sign_thought(block.text, facts_.bound_to, facts_.shows_thinking));
    } else {
      write_tool_use(json, block.id, block.name, object_or_empty(block.text));
    }
  }
  json.end_array().key("container").null();
  json.key("stop_reason").string(stop.reason).key("stop_sequence");
  write_null_or(json, stop.sequence);
  json.key("stop_details").null();
  json.key("usage").begin_object();
  write_input_counters(json, facts_.usage);
  write_creation_split(json, facts_.usage);
  write_output_tokens(json, tokens);
  write_service(json, facts_);
  json.end_object().key("diagnostics").raw(facts_.diagnostics);
  write_if_set(json, "context_management", facts_.context_management);
  write_if_set(json, "input_transformations", facts_.input_transformations);
  json.end_object();
  return body;
}

std::string make_id(std::string_view prefix) {
  // Base58: no character that is mistaken for another.
  constexpr std::string_view alphabet =
      "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  constexpr std::size_t length = 22;
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::array<std::uint32_t, 8> words{};
    for (std::uint32_t& word : words)
      word = device();
    std::seed_seq seed(words.begin(), words.end());
    return std::mt19937_64(seed);
  }();
  std::uniform_int_distribution<std::size_t> letter(0, alphabet.size() - 1);
  std::string id(prefix);
  for (std::size_t i = 0; i < length; ++i)
    id += alphabet[letter(random)];
  return id;
}

}  // namespace incipit::gateway
