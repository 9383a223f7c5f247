// Replies of a model that knows nothing: any allowed token, drawn at random. What the parser makes
// of them must be what was asked for.
#include "gateway/prompt/reply_guide.h"

#include "gateway/constrain/shape.h"
#include "gateway/prompt/call_grammar.h"
#include "gateway/prompt/reply_parser.h"
#include "incipit/json.h"
#include "tests/prompt/conversations.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

struct Block {
  std::string kind, name, text;
};

struct Reply {
  std::vector<Block> blocks;
  int tokens = 0;
  bool is_whole = false;  // ended by itself, not by the budget
  std::int64_t thinking_tokens = 0;
};

struct Family {
  TokenizerSpec spec;
  ChatTemplate chat_template;
  Tokenizer tokenizer;
  ReplyGuides guides;

  explicit Family(TokenizerSpec bytes, bool is_tiny = false)
      : spec(std::move(bytes)),
        chat_template(ModelConfig{}, recognised(spec, is_tiny)),
        tokenizer(spec),
        guides(chat_template, tokenizer) {}

  // Byte vocabularies are the tiny model's, were it not for the kind.
  static TokenizerSpec recognised(TokenizerSpec spec, bool is_tiny) {
    if (!is_tiny) spec.kind = TokenizerSpec::Kind::byte_bpe;
    return spec;
  }
};

TokenizerSpec with_template(TokenizerSpec spec, std::string text) {
  spec.chat_template = std::move(text);
  return spec;
}

Family& tagged() {
  static Family family(
      with_template(byte_vocabulary({"<|im_start|>", "<|im_end|>"}), "<|im_start|>"));
  return family;
}

Family& listed() {
  static Family family(
      with_template(byte_vocabulary({"<|im_start|>", "<|im_end|>"}), "<|im_start|>SmolLM"));
  return family;
}

Family& thinking() {
  static Family family(with_template(byte_vocabulary({"<|im_start|>", "<|im_end|>", "</think>"}),
                                     "<|im_start|> <think>"));
  return family;
}

Family& bare() {
  static Family family(
      with_template(byte_vocabulary({"<|start_header_id|>", "<|eot_id|>"}), "<|start_header_id|>"));
  return family;
}

Family& bracketed() {
  static Family family(
      with_template(byte_vocabulary({"[INST]", "[TOOL_CALLS]", "</s>"}), "[INST]"));
  return family;
}

// `ends`: how likely the end is where it is allowed.
Reply random_reply(Family& family, const Conversation& asked, unsigned seed, double ends = 0.05) {
  std::mt19937 random(seed);
  const auto guide = family.guides.guide(asked);
  REQUIRE(guide != nullptr);
  const std::vector<std::int32_t> stops = family.chat_template.stop_tokens(family.tokenizer);
  ReplyParser parser(asked, family.chat_template, family.tokenizer);
  Reply reply;
  const auto take = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      switch (piece.kind) {
        case Piece::Kind::thinking_start:
          reply.blocks.push_back({"thinking", "", ""});
          break;
        case Piece::Kind::text_start:
          reply.blocks.push_back({"text", "", ""});
          break;
        case Piece::Kind::tool_start:
          reply.blocks.push_back({"call", piece.name, ""});
          break;
        case Piece::Kind::stop:
          break;
        default:
          reply.blocks.back().text += piece.text;
      }
    }
  };
  while (reply.tokens < asked.max_tokens && !parser.done()) {
    const auto mask = guide->allowed(asked.max_tokens - reply.tokens);
    const auto may = [&](std::int32_t token) {
      return mask.empty() || (mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1U) != 0;
    };
    std::vector<std::int32_t> choices;
    for (std::int32_t token = 0; token < family.tokenizer.vocab_size(); ++token) {
      if (may(token) && std::ranges::find(stops, token) == stops.end()) choices.push_back(token);
    }
    const bool may_end = std::ranges::any_of(stops, may);
    REQUIRE((may_end || !choices.empty()));
    if (choices.empty() || (may_end && std::bernoulli_distribution(ends)(random))) {
      reply.is_whole = true;
      break;
    }
    const std::int32_t token = choices[random() % choices.size()];
    guide->advance(token);
    take(parser.feed(token));
    ++reply.tokens;
    if (guide->done()) {
      reply.is_whole = true;
      break;
    }
  }
  if (guide->is_whole()) reply.is_whole = true;
  if (parser.done()) reply.is_whole = true;
  take(parser.finish());
  reply.thinking_tokens = parser.thinking_tokens();
  return reply;
}

Conversation asking(int max_tokens = 400) {
  Conversation made = conversation({user("x")});
  made.max_tokens = max_tokens;
  return made;
}

const std::string weather_schema =
    R"({"type":"object","properties":{"city":{"enum":["Oslo","Rome"]},"days":{"type":"integer"}},)"
    R"("required":["city"],"additionalProperties":false})";

void check_weather(const Block& call) {
  CAPTURE(call.text);
  REQUIRE(call.kind == "call");
  REQUIRE(call.name == "weather");
  const JsonValue input = JsonValue::parse(call.text);
  REQUIRE(input.find("city") != nullptr);
  const std::string& city = input.find("city")->as_string();
  CHECK((city == "Oslo" || city == "Rome"));
  for (const auto& member : input.as_object())
    CHECK((member.name == "city" || member.name == "days"));
}

}  // namespace

TEST_CASE("nothing is asked of a plain reply") {
  Family tiny(tiny_vocabulary(), true);
  CHECK(tiny.guides.guide(asking()) == nullptr);
}

TEST_CASE("forced calls are calls and nothing else, in every family's words") {
  for (Family* family : {&tagged(), &listed(), &bare(), &bracketed()}) {
    CAPTURE(family->chat_template.name());
    for (unsigned seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      Conversation asked = asking();
      asked.callable = {{.name = "weather", .schema = weather_schema, .strict = seed % 2 == 0},
                        {.name = "now", .schema = R"({"type":"object","properties":{}})"}};
      asked.must_call = true;
      asked.parallel_tool_calls = seed % 3 != 0;
      const Reply reply = random_reply(*family, asked, seed);
      CHECK(reply.is_whole);
      REQUIRE_FALSE(reply.blocks.empty());
      if (!asked.parallel_tool_calls) CHECK(reply.blocks.size() == 1);
      for (const Block& block : reply.blocks) {
        REQUIRE(block.kind == "call");
        if (block.name == "weather") {
          check_weather(block);
        } else {
          CHECK(block.name == "now");
          CHECK(JsonValue::parse(block.text).as_object().empty());
        }
      }
    }
  }
}

TEST_CASE("calls that may be made are whole, also when the budget ends in one") {
  for (Family* family : {&tagged(), &listed(), &bare(), &bracketed()}) {
    CAPTURE(family->chat_template.name());
    int calls = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
      CAPTURE(seed);
      Conversation asked = asking(120);
      asked.callable = {{.name = "weather", .schema = weather_schema}};
      // A random text hardly ever holds a trigger: the budget's beginning is one.
      const auto guide = family->guides.guide(asked);
      ReplyParser parser(asked, family->chat_template, family->tokenizer);
      std::string text = "well ";
      text += CallGrammar::of(family->chat_template.call_syntax()).trigger;
      int left = asked.max_tokens;
      std::vector<Piece> pieces;
      const auto feed = [&](std::int32_t token) {
        guide->advance(token);
        for (Piece& piece : parser.feed(token))
          pieces.push_back(std::move(piece));
        --left;
      };
      for (const char c : text)
        feed(static_cast<unsigned char>(c));
      std::mt19937 random(seed);
      while (left > 0) {
        const auto mask = guide->allowed(left);
        std::vector<std::int32_t> choices;
        for (std::int32_t token = 0; token < 256; ++token) {
          if ((mask[static_cast<std::size_t>(token) / 64] >> (token % 64) & 1U) != 0) {
            choices.push_back(token);
          }
        }
        if (choices.empty()) break;
        feed(choices[random() % choices.size()]);
      }
      for (Piece& piece : parser.finish())
        pieces.push_back(std::move(piece));
      std::string input;
      for (const Piece& piece : pieces) {
        if (piece.kind == Piece::Kind::tool_start) ++calls;
        if (piece.kind == Piece::Kind::tool_input) input += piece.text;
        if (piece.kind == Piece::Kind::stop && !input.empty()) {
          check_weather({"call", "weather", std::exchange(input, {})});
        }
      }
    }
    CHECK(calls >= 200);
  }
}

TEST_CASE("an output format's text is a value of its schema") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Conversation asked = asking();
    asked.output_schema = weather_schema;
    const Reply reply = random_reply(tagged(), asked, seed);
    CHECK(reply.is_whole);
    REQUIRE(reply.blocks.size() == 1);
    CHECK(reply.blocks[0].kind == "text");
    check_weather({"call", "weather", reply.blocks[0].text});
  }
}

TEST_CASE("with tools and an output format there are calls, or the text is a value") {
  int texts = 0, calls = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Conversation asked = asking();
    asked.output_schema = weather_schema;
    asked.callable = {{.name = "weather", .schema = weather_schema}};
    const Reply reply = random_reply(tagged(), asked, seed);
    REQUIRE_FALSE(reply.blocks.empty());
    for (const Block& block : reply.blocks) {
      (block.kind == "call" ? calls : texts) += 1;
      check_weather({"call", "weather", block.text});
    }
  }
  CHECK(texts > 0);
  CHECK(calls > 0);
}

TEST_CASE("a thought ends in time, and what follows it keeps its shape") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Conversation asked = asking();
    asked.thinking = {.wanted = true, .most_tokens = 50};
    const Reply free = random_reply(thinking(), asked, seed);
    CHECK(free.thinking_tokens <= 50 + 2);  // the closing counts

    asked.output_schema = weather_schema;
    const Reply reply = random_reply(thinking(), asked, seed);
    CHECK(reply.is_whole);
    REQUIRE(reply.blocks.size() >= 1);
    CHECK(reply.thinking_tokens <= 50 + 2);
    CHECK(reply.blocks.back().kind == "text");
    check_weather({"call", "weather", reply.blocks.back().text});

    asked.output_schema.clear();
    asked.callable = {{.name = "weather", .schema = weather_schema}};
    asked.must_call = true;
    asked.parallel_tool_calls = false;
    asked.thinking.most_tokens = 0;  // then the budget alone ends it
    const Reply call = random_reply(thinking(), asked, seed);
    CHECK(call.is_whole);
    check_weather(call.blocks.back());
  }
}

TEST_CASE("hundreds of tools may be called, and are compiled once") {
  Conversation asked = asking();
  std::string properties;
  for (int i = 0; i < 30; ++i)
    properties += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + R"(":{"type":"string"})";
  for (int i = 0; i < 300; ++i) {
    asked.callable.push_back({.name = "tool_" + std::to_string(i),
                              .schema = R"({"type":"object","properties":{)" + properties + "}}"});
  }
  const auto seconds = [&] {
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(tagged().guides.guide(asked) != nullptr);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double first = seconds();
  CHECK(first < 20);
  double again = first;
  for (int i = 0; i < 5; ++i)
    again = std::min(again, seconds());
  CHECK(again * 20 < first);
  // All of them at once are more than can be held to their schemas.
  asked.must_call = true;
  CHECK_THROWS_AS((void)tagged().guides.guide(asked), constrain::SchemaError);
}

TEST_CASE("schemas beyond what can be guaranteed") {
  Conversation asked = asking();
  asked.callable = {{.name = "f",
                     .schema = R"({"type":"object","properties":{"n":{"type":"integer",)"
                               R"("minimum":3}}})",
                     .path = "tools.0.custom.input_schema"}};
  // A tool that may be called gets an object.
  CHECK(tagged().guides.guide(asked) != nullptr);
  const auto error_of = [&]() -> std::optional<constrain::SchemaError> {
    try {
      (void)tagged().guides.guide(asked);
    } catch (const constrain::SchemaError& error) {
      return error;
    }
    return std::nullopt;
  };
  asked.must_call = true;
  auto error = error_of();
  REQUIRE(error);
  CHECK(error->keyword == "minimum");
  CHECK(error->path == "tools.0.custom.input_schema.properties.n");
  asked.must_call = false;
  asked.callable[0].strict = true;
  CHECK(error_of());
  asked.callable.clear();
  asked.output_schema = R"({"type":"object","properties":{}})";
  error = error_of();
  REQUIRE(error);
  CHECK(error->path == "output_config.format.schema");
}

}  // namespace incipit::gateway
