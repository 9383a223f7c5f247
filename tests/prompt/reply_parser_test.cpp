#include "gateway/prompt/reply_parser.h"

#include "tests/prompt/conversations.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace incipit::gateway {
namespace {

struct Asked {
  std::vector<std::string> stops = {};
  bool may_call = false;
  bool parallel = true;
  bool continues = false;
  bool thinks = false;
};

enum class Family { chatml, llama, mistral, thinking, smollm };

TokenizerSpec spec_of(Family family) {
  switch (family) {
    case Family::chatml:
      return tiny_vocabulary();
    case Family::smollm: {
      TokenizerSpec spec = byte_vocabulary({"<|im_start|>", "<|im_end|>"});
      spec.chat_template = "<|im_start|>SmolLM";
      return spec;
    }
    case Family::thinking: {
      TokenizerSpec spec = byte_vocabulary({"<|im_start|>", "<|im_end|>", "</think>"});
      spec.chat_template = "<|im_start|><think>";
      return spec;
    }
    case Family::llama: {
      TokenizerSpec spec = byte_vocabulary({"<|start_header_id|>", "<|python_tag|>"});
      spec.chat_template = "<|start_header_id|>";
      return spec;
    }
    case Family::mistral: {
      TokenizerSpec spec = byte_vocabulary({"[INST]", "[TOOL_CALLS]"});
      spec.chat_template = "[INST]";
      return spec;
    }
  }
  return {};
}

// The template of a family over tokens that are bytes, which no real file of that family has.
ChatTemplate template_of(Family family) {
  TokenizerSpec spec = spec_of(family);
  if (family != Family::chatml) {
    spec.kind = TokenizerSpec::Kind::byte_bpe;  // else it would be recognised as "tiny"
  }
  return {ModelConfig{}, spec};
}

struct Parsed {
  std::string blocks;  // text as 'text', calls as name(input)
  bool is_well_formed = true;
  bool is_done = false;
  bool has_called = false;
  std::optional<std::string> stop;
  std::size_t pieces = 0;
  std::int64_t thinking_tokens = 0;
};

// One feed for each token.
Parsed parse_tokens(Family family, const Asked& asked, const std::vector<std::int32_t>& tokens,
                    const Tokenizer& tokenizer) {
  static const ChatTemplate templates[] = {
      template_of(Family::chatml), template_of(Family::llama), template_of(Family::mistral),
      template_of(Family::thinking), template_of(Family::smollm)};
  Conversation made = conversation({tool("clock", "", "{}"), tool("f", "", "{}"), user("x")});
  made.stop_sequences = asked.stops;
  if (asked.may_call) {
    made.callable = {{.name = "clock", .schema = "{}"}, {.name = "f", .schema = "{}"}};
  }
  made.parallel_tool_calls = asked.parallel;
  made.continues_assistant = asked.continues;
  made.thinking.wanted = asked.thinks;
  ReplyParser parser(made, templates[static_cast<std::size_t>(family)], tokenizer);

  Parsed parsed;
  enum class Open { none, text, call, thought } open = Open::none;
  const auto take = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      ++parsed.pieces;
      const Open before = open;
      switch (piece.kind) {
        case Piece::Kind::thinking_start:
          parsed.is_well_formed &= before == Open::none;
          parsed.blocks += "[";
          open = Open::thought;
          break;
        case Piece::Kind::thinking:
          parsed.is_well_formed &= before == Open::thought && !piece.text.empty();
          parsed.blocks += piece.text;
          break;
        case Piece::Kind::text_start:
          parsed.is_well_formed &= before == Open::none;
          parsed.blocks += "'";
          open = Open::text;
          break;
        case Piece::Kind::text:
          parsed.is_well_formed &= before == Open::text && !piece.text.empty();
          parsed.blocks += piece.text;
          break;
        case Piece::Kind::tool_start:
          parsed.is_well_formed &= before == Open::none;
          parsed.blocks += piece.name + "(";
          open = Open::call;
          break;
        case Piece::Kind::tool_input:
          parsed.is_well_formed &= before == Open::call;
          parsed.blocks += piece.text;
          break;
        case Piece::Kind::stop:
          parsed.is_well_formed &= before != Open::none;
          parsed.blocks += before == Open::text ? "'" : before == Open::call ? ")" : "]";
          open = Open::none;
          break;
      }
    }
  };
  for (const std::int32_t token : tokens)
    take(parser.feed(token));
  parsed.is_done = parser.done();
  take(parser.finish());
  parsed.is_well_formed &= open == Open::none;
  parsed.has_called = parser.called_tools();
  parsed.stop = parser.stop_sequence();
  parsed.thinking_tokens = parser.thinking_tokens();
  return parsed;
}

Parsed parse_bytes(Family family, const Asked& asked, const std::string& reply) {
  static const Tokenizer tokenizer(tiny_vocabulary());
  std::vector<std::int32_t> tokens;
  for (const char c : reply)
    tokens.push_back(static_cast<unsigned char>(c));
  return parse_tokens(family, asked, tokens, tokenizer);
}

// The reply as two tokens, cut at `cut`; a vocabulary of just these.
Parsed parse_cut(Family family, const Asked& asked, const std::string& reply, std::size_t cut) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::sentencepiece;
  spec.pieces = {reply.substr(0, cut), reply.substr(cut)};
  spec.types.assign(2, TokenizerSpec::TokenType::user_defined);
  spec.scores = {0, 0};
  return parse_tokens(family, asked, {0, 1}, Tokenizer(spec));
}

void check(Family family, const Asked& asked, const std::string& reply,
           const std::string& expected) {
  CAPTURE(reply);
  const Parsed whole = parse_bytes(family, asked, reply);
  CHECK(whole.blocks == expected);
  CHECK(whole.is_well_formed);
  for (std::size_t cut = 0; cut <= reply.size(); ++cut) {
    CAPTURE(cut);
    const Parsed parsed = parse_cut(family, asked, reply, cut);
    CHECK(parsed.blocks == expected);
    CHECK(parsed.is_well_formed);
    CHECK(parsed.stop == whole.stop);
    CHECK(parsed.is_done == whole.is_done);
    CHECK(parsed.has_called == whole.has_called);
  }
}

const Asked plain{};
const Asked with_tools{.may_call = true};

}  // namespace

TEST_CASE("text comes out in whole characters as soon as they are whole") {
  const Tokenizer tokenizer(tiny_vocabulary());
  Conversation made = conversation({user("x")});
  ReplyParser parser(made, template_of(Family::chatml), tokenizer);
  const auto text_after = [&](int byte) {
    std::string text;
    for (const Piece& piece : parser.feed(byte))
      text += piece.text;
    return text;
  };
  CHECK(text_after('a') == "a");
  CHECK(text_after(' ') == " ");
  CHECK(text_after(0xF0).empty());
  CHECK(text_after(0x9F).empty());
  CHECK(text_after(0x98).empty());
  CHECK(text_after(0x80) == "\xF0\x9F\x98\x80");
  CHECK(text_after(0xC3).empty());
  CHECK(text_after('z') == "\xEF\xBF\xBDz");
  CHECK(text_after('\n') == "\n");
  CHECK(text_after('<') == "<");
  const auto rest = parser.finish();
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].kind == Piece::Kind::stop);
}

TEST_CASE("bytes that are no character become U+FFFD") {
  check(Family::chatml, plain, "a\xFF\xFE", "'a\xEF\xBF\xBD\xEF\xBF\xBD'");
  check(Family::chatml, plain, "\xE2\x82", "'\xEF\xBF\xBD'");
  check(Family::chatml, plain, "\xE2\x82x", "'\xEF\xBF\xBDx'");
  check(Family::chatml, plain, "\xED\xA0\x80", "'\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD'");
}

TEST_CASE("an empty reply has no block") {
  check(Family::chatml, plain, "", "");
  check(Family::chatml, with_tools, "", "");
  check(Family::chatml, {.stops = {"x"}}, "x", "");
  const Tokenizer tokenizer(tiny_vocabulary());
  CHECK(parse_tokens(Family::chatml, plain, {256, 257}, tokenizer).pieces == 0);
}

TEST_CASE("stop sequences cut the text, across tokens, the first complete one wins") {
  check(Family::chatml, {.stops = {"STOP"}}, "go STOP more", "'go '");
  check(Family::chatml, {.stops = {"STOP"}}, "go STO", "'go STO'");
  check(Family::chatml, {.stops = {"STOP"}}, "SSTOP", "'S'");
  check(Family::chatml, {.stops = {"aab"}}, "aaab", "'a'");
  check(Family::chatml, {.stops = {"abcd", "bc"}}, "xabcd", "'xa'");
  check(Family::chatml, {.stops = {"c", "abc"}}, "xabc", "'x'");
  check(Family::chatml, {.stops = {"ab", "abc"}}, "xabc", "'x'");
  check(Family::chatml, {.stops = {"\n\nHuman:", "é"}}, "caf\xC3\xA9", "'caf'");
  check(Family::chatml, {.stops = {""}}, "text", "'text'");
  check(Family::chatml, {.stops = {"abab"}}, "abaabab!", "'aba'");

  CHECK(parse_bytes(Family::chatml, {.stops = {"abcd", "bc"}}, "xabcd").stop == "bc");
  CHECK(parse_bytes(Family::chatml, {.stops = {"c", "abc"}}, "xabc").stop == "abc");
  CHECK(parse_bytes(Family::chatml, {.stops = {"abc"}}, "xabc").is_done);
  CHECK_FALSE(parse_bytes(Family::chatml, {.stops = {"abc"}}, "xab").stop);
  CHECK_FALSE(parse_bytes(Family::chatml, {.stops = {"abc"}}, "xab").is_done);
}

TEST_CASE("tagged calls are taken out of the text") {
  const std::string call = R"(<tool_call>
{"name": "clock", "arguments": {"zone": "UTC",  "at": [1, {"x": "}"}]}}
</tool_call>)";
  const std::string input = R"({"zone": "UTC",  "at": [1, {"x": "}"}]})";
  check(Family::chatml, with_tools, call, "clock(" + input + ")");
  check(Family::chatml, with_tools, "\n\n" + call + "\n", "clock(" + input + ")");
  check(Family::chatml, with_tools, "Let me see.\n" + call, "'Let me see.'clock(" + input + ")");
  check(Family::chatml, with_tools, "a\n\n" + call, "'a\n'clock(" + input + ")");
  check(Family::chatml, with_tools, call + "\n" + call, "clock(" + input + ")clock(" + input + ")");
  check(Family::chatml, with_tools, call + "\nDone.", "clock(" + input + ")'\nDone.'");
  check(
      Family::chatml, with_tools,
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"t\": \"</tool_call>\\\"{\"}}\n</tool_call>",
      R"(f({"t": "</tool_call>\"{"}))");
  // The turn ended before the closing tag, but the input is whole.
  check(Family::chatml, with_tools, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}", "f({})");
  check(Family::chatml, with_tools, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool",
        "f({})");
  CHECK(parse_bytes(Family::chatml, with_tools, call).has_called);
}

TEST_CASE("an input is passed on as it comes") {
  const Tokenizer tokenizer(tiny_vocabulary());
  Conversation made = conversation({tool("f", "", "{}"), user("x")});
  made.callable = {{.name = "f", .schema = "{}"}};
  const ChatTemplate chat_template = template_of(Family::chatml);
  ReplyParser parser(made, chat_template, tokenizer);
  const std::string head = "<tool_call>\n{\"name\": \"f\", \"arguments\": {";
  std::vector<Piece> pieces;
  for (const char c : head)
    pieces = parser.feed(c);
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].kind == Piece::Kind::tool_start);
  CHECK(pieces[0].name == "f");
  CHECK(pieces[1].text == "{");
  for (const char c : std::string("\"a\": 1")) {
    pieces = parser.feed(c);
    REQUIRE(pieces.size() == 1);
    CHECK(pieces[0].kind == Piece::Kind::tool_input);
    CHECK(pieces[0].text == std::string(1, c));
  }
  pieces = parser.feed('}');
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[1].kind == Piece::Kind::stop);
  CHECK(parser.called_tools());
}

TEST_CASE("what is spelled in another way stays text") {
  for (const std::string reply : {
           R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)",
           "<tool_call>\n{\"name\": \"f\", \"arguments\": ",
           "<tool_call>\n{\"name\": \"f\", \"arguments\": \"{}\"}\n</tool_call>",
           "<tool_call>\n{\"name\": \"f\"}\n</tool_call>",
           "<tool_call>\n{\"arguments\": {}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"unheard_of\", \"arguments\": {}}\n</tool_call>",
           "<tool_call>\n{\"name\": 1, \"arguments\": {}}\n</tool_call>",
           "Use\n<tool_call> to call",
           "a <tool_cal",
           "a\n\n",
           " \n",
           "x\n<",
           "<tool_call>",
           "<tool_call><tool_call>",
       }) {
    check(Family::chatml, with_tools, reply, "'" + reply + "'");
  }
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  check(Family::chatml, with_tools, "<tool_call>x" + call, "'<tool_call>x'f({})");
  CHECK_FALSE(parse_bytes(Family::chatml, with_tools, "<tool_call>").has_called);
  // Tools are not wanted: a call is text like any other.
  check(Family::chatml, plain, call, "'" + call + "'");
}

TEST_CASE("where one call is permitted, the first ends the reply") {
  const Asked one{.may_call = true, .parallel = false};
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
  check(Family::chatml, one, "a" + call + call + "b", "'a'f({})");
  CHECK(parse_bytes(Family::chatml, one, call).is_done);
  CHECK_FALSE(parse_bytes(Family::chatml, with_tools, call).is_done);
  check(Family::llama, one, R"({"name": "f", "parameters": {}}{"name": "f", "parameters": {}})",
        "f({})");
}

TEST_CASE("a reply makes sixteen calls at most") {
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n";
  std::string reply, expected;
  for (int i = 0; i < 20; ++i)
    reply += call;
  for (int i = 0; i < 16; ++i)
    expected += "f({})";
  const Parsed parsed = parse_bytes(Family::chatml, with_tools, reply);
  CHECK(parsed.blocks == expected);
  CHECK(parsed.is_done);
}

TEST_CASE("stop sequences are looked for in text alone") {
  const std::string call =
      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"STOP\"}}\n</tool_call>";
  const Asked asked{.stops = {"STOP"}, .may_call = true};
  CHECK(parse_bytes(Family::chatml, asked, call).blocks == "f({\"a\": \"STOP\"})");
  CHECK(parse_bytes(Family::chatml, asked, call + "x STOP y").blocks == "f({\"a\": \"STOP\"})'x '");
  const Asked thinks{.stops = {"STOP"}, .thinks = true};
  CHECK(parse_bytes(Family::thinking, thinks, "a STOP\n</think>\n\nb STOP c").blocks
        == "[a STOP]'b '");
}

TEST_CASE("a reply that begins in a thought") {
  const Asked thinks{.may_call = true, .thinks = true};
  check(Family::thinking, thinks, "hm\n</think>\n\nA", "[hm]'A'");
  check(Family::thinking, thinks, "hm</think>A", "[hm]'A'");
  check(Family::thinking, thinks, " hm\n\n</think>\n \n A\n", "[ hm\n]'A\n'");
  check(Family::thinking, thinks, "a </thin b\n</thought>\n</think>", "[a </thin b\n</thought>]");
  // Without more than white space there was none.
  check(Family::thinking, thinks, "\n\n</think>\n\nA", "'A'");
  check(Family::thinking, thinks, "</think>", "");
  // Cut by max_tokens.
  check(Family::thinking, thinks, "hm", "[hm]");
  check(Family::thinking, thinks, "hm\n</th", "[hm\n</th]");
  check(Family::thinking, thinks, "", "");
  check(Family::thinking, thinks,
        "hm\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
        "[hm]f({})");
  // A second closing is text; and so is the first where no thought was wanted or it is not begun.
  check(Family::thinking, thinks, "a</think>b</think>c", "[a]'b</think>c'");
  check(Family::thinking, plain, "a</think>", "'a</think>'");
  check(Family::thinking, {.continues = true, .thinks = true}, "a</think>", "'a</think>'");
  CHECK(parse_bytes(Family::thinking, thinks, "hm\n</think>\n\nA").thinking_tokens == 11);
  CHECK(parse_bytes(Family::thinking, plain, "hm").thinking_tokens == 0);
}

TEST_CASE("the closing of a thought may be a control token") {
  TokenizerSpec spec = spec_of(Family::thinking);
  const Tokenizer tokenizer(spec);
  const Asked thinks{.thinks = true};
  CHECK(parse_tokens(Family::thinking, thinks, {'h', 258, '\n', 'A'}, tokenizer).blocks
        == "[h]'A'");
}

TEST_CASE("smollm2 writes its calls as a list") {
  const std::string one = "{\"name\": \"f\", \"arguments\": {\"a\":1}}";
  const std::string two = "{\"name\": \"clock\", \"arguments\": {}}";
  check(Family::smollm, with_tools, "<tool_call>[\n" + one + "\n]</tool_call>", "f({\"a\":1})");
  check(Family::smollm, with_tools, "Well.\n<tool_call>[\n" + one + ",\n" + two + "\n]</tool_call>",
        "'Well.'f({\"a\":1})clock({})");
  check(Family::smollm, with_tools, "<tool_call>[]</tool_call>", "'<tool_call>[]</tool_call>'");
}

TEST_CASE("llama writes a call without a frame") {
  check(Family::llama, with_tools, R"({"name": "clock", "parameters": {"a": 1}})",
        R"(clock({"a": 1}))");
  check(Family::llama, with_tools,
        "\n"
        R"({"name": "f", "parameters": {}})"
        "\n",
        "f({})");
  check(Family::llama, with_tools,
        "{\"name\": \"f\", \"parameters\": {}}\n{\"name\": \"clock\", \"parameters\": {}}",
        "f({})clock({})");
  check(Family::llama, with_tools, R"(Well. {"name": "f", "parameters": {}})", "'Well. 'f({})");
  check(Family::llama, with_tools, R"({"name": "f", "parameters": {}} as asked)",
        "f({})' as asked'");
  for (const std::string reply : {
           R"({"name": "Rome", "parameters": {}})",
           R"({"answer": 42})",
           R"({"name": "f", "par)",
           "{ not json }",
           " \n{",
           "  text",
       }) {
    check(Family::llama, with_tools, reply, "'" + reply + "'");
  }
  const std::string call = R"({"name": "f", "parameters": {}})";
  check(Family::llama, plain, call, "'" + call + "'");
}

TEST_CASE("llama's text is not held back once it is text") {
  const Tokenizer tokenizer(tiny_vocabulary());
  Conversation made = conversation({tool("f", "", "{}"), user("x")});
  made.callable = {{.name = "f", .schema = "{}"}};
  const ChatTemplate chat_template = template_of(Family::llama);
  ReplyParser parser(made, chat_template, tokenizer);
  CHECK(parser.feed('A').size() == 2);
  CHECK(parser.feed('{').empty());
  CHECK(parser.feed('x').size() == 1);
}

TEST_CASE("mistral writes calls as an array behind a token of its own") {
  const std::string calls =
      R"([TOOL_CALLS] [{"name": "f", "arguments": {"a":1}}, {"name": "clock", "arguments": {}}])";
  check(Family::mistral, with_tools, calls, R"(f({"a":1})clock({}))");
  check(Family::mistral, with_tools, "Well. " + calls, R"('Well. 'f({"a":1})clock({}))");
  check(Family::mistral, {.may_call = true, .parallel = false}, calls, R"(f({"a":1}))");
  for (const std::string reply : {
           "[TOOL_CALLS] []",
           "[TOOL_CALLS] [{\"name\": \"f\"}]",
           "[TOOL_CALLS]",
           "[TOOL_",
           R"([TOOL_CALLS] [{"name": "g", "arguments": {}}])",
       }) {
    check(Family::mistral, with_tools, reply, "'" + reply + "'");
  }
  const Tokenizer tokenizer(spec_of(Family::mistral));
  std::vector<std::int32_t> tokens{*tokenizer.special("[TOOL_CALLS]")};
  for (const char c : std::string(R"([{"name": "f", "arguments": {}}])"))
    tokens.push_back(c);
  CHECK(parse_tokens(Family::mistral, with_tools, tokens, tokenizer).blocks == "f({})");
}

TEST_CASE("a SentencePiece Mistral's leading blank is not part of the text") {
  TokenizerSpec spec = spec_of(Family::mistral);
  spec.kind = TokenizerSpec::Kind::sentencepiece;
  const ChatTemplate chat_template(ModelConfig{}, spec);
  const Tokenizer tokenizer(tiny_vocabulary());
  for (const bool continues : {false, true}) {
    Conversation made = conversation({user("x"), assistant("y")});
    made.continues_assistant = continues;
    ReplyParser parser(made, chat_template, tokenizer);
    std::string text;
    for (const char c : std::string("  hi")) {
      for (const Piece& piece : parser.feed(c))
        text += piece.text;
    }
    CHECK(text == (continues ? "  hi" : " hi"));
  }
}

TEST_CASE("after the end nothing more comes") {
  const Tokenizer tokenizer(tiny_vocabulary());
  Conversation made = conversation({user("x")});
  made.stop_sequences = {"!"};
  ReplyParser parser(made, template_of(Family::chatml), tokenizer);
  CHECK(parser.feed('a').size() == 2);
  CHECK(parser.feed('!').empty());
  CHECK(parser.done());
  CHECK(parser.feed('b').empty());
  CHECK(parser.finish().size() == 1);
}

}  // namespace incipit::gateway
