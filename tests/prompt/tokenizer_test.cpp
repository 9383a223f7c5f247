// The tokenizer against golden data that the `tokenizers` package made of the same vocabularies
// (tests/data/tokenizer/make_golden.py).
#include "gateway/prompt/tokenizer.h"

#include "tests/prompt/model_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace incipit::gateway {
namespace {

using Ids = std::vector<std::int32_t>;

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::string decode(const Tokenizer& tokenizer, const Ids& ids) {
  std::string text;
  for (const auto id : ids)
    text += tokenizer.bytes(id);
  return text;
}

std::vector<std::string> lines_of(const std::string& text, char end) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, stop = 0; (stop = text.find(end, at)) != std::string::npos;
       at = stop + 1) {
    lines.push_back(text.substr(at, stop - at));
  }
  return lines;
}

const std::vector<std::string>& generated_lines() {
  static const auto lines = lines_of(read_data("lines.txt"), '\x1e');
  return lines;
}

std::string fingerprint(const Ids& ids) {
  std::uint64_t value = 0xCBF29CE484222325U;
  for (const auto id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      value = (value ^ ((static_cast<std::uint32_t>(id) >> shift) & 0xFFU)) * 0x100000001B3U;
    }
  }
  std::string digits = "0000000000000000";
  for (int i = 15; i >= 0; --i, value >>= 4U)
    digits[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15U];
  return digits;
}

std::string joined(const Ids& ids) {
  std::string text;
  for (const auto id : ids)
    text += " " + std::to_string(id);
  return text;
}

void compare_with_golden(const Tokenizer& tokenizer, const std::string& name,
                         std::size_t at_least) {
  const auto golden = lines_of(read_data(name + ".golden"), '\n');
  REQUIRE(golden.size() >= at_least);
  REQUIRE(generated_lines().size() >= golden.size());
  std::size_t shown = 0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const std::string& line = generated_lines()[i];
    const Ids ids = encode(tokenizer, line);
    std::string got = std::to_string(ids.size()) + " " + fingerprint(ids);
    if (i % 20 == 0 && !ids.empty()) got += joined(ids);
    if (i % 20 == 0 && ids.empty()) got += " ";
    if (got == golden[i]) continue;
    ++wrong;
    if (++shown <= 5) {
      MESSAGE(name << " line " << i << " \"" << line << "\"\n  golden " << golden[i]
                   << "\n  got    " << got << " =" << joined(ids));
    }
  }
  CHECK(wrong == 0);
}

const Tokenizer& smollm() {
  static const Tokenizer tokenizer(model_file(smollm_file).tokenizer());
  return tokenizer;
}

const Tokenizer& gemma() {
  static const Tokenizer tokenizer(model_file(gemma_file).tokenizer());
  return tokenizer;
}

TokenizerSpec small_sentencepiece() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::sentencepiece;
  const auto add = [&](const char* piece, TokenizerSpec::TokenType type, float score) {
    spec.pieces.emplace_back(piece);
    spec.types.push_back(type);
    spec.scores.push_back(score);
  };
  using Type = TokenizerSpec::TokenType;
  add("<unk>", Type::unknown, 0);
  add("<s>", Type::control, 0);
  add("▁", Type::normal, -10);
  add("a", Type::normal, -11);
  add("b", Type::normal, -12);
  add("▁a", Type::normal, -1);
  add("ab", Type::normal, -2);
  add("�", Type::normal, -13);
  spec.unknown = 0;
  spec.bos = 1;
  return spec;
}

}  // namespace

TEST_CASE("SmolLM2's ids equal the reference on all generated lines") {
  compare_with_golden(smollm(), "smollm2", 10000);
}

TEST_CASE("Gemma's ids equal the reference on all generated lines") {
  compare_with_golden(gemma(), "gemma3", 10000);
}

TEST_CASE("other families' patterns cut as the reference does") {
  TokenizerSpec spec = model_file(smollm_file).tokenizer();
  for (const std::string pre : {"gpt-2", "llama-bpe", "qwen2", "tekken"}) {
    CAPTURE(pre);
    spec.pre = pre;
    compare_with_golden(Tokenizer(spec), "smollm2-pre-" + pre, 3000);
  }
}

TEST_CASE("every generated line decodes to itself") {
  for (const std::string& line : generated_lines()) {
    CHECK(decode(smollm(), encode(smollm(), line)) == line);
    // SentencePiece writes a blank as U+2581, so a U+2581 of the text comes back as a blank.
    if (line.find("▁") == std::string::npos) CHECK(decode(gemma(), encode(gemma(), line)) == line);
  }
}

// The id of the token that stands for one byte of 0x80 and up, or -1.
std::int32_t byte_id(const Tokenizer& tokenizer, char byte) {
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes(id) == std::string_view(&byte, 1)) return id;
  }
  return -1;
}

TEST_CASE("bytes that are not UTF-8 are encoded as the ids of the bytes") {
  for (const Tokenizer* tokenizer : {&smollm(), &gemma()}) {
    const std::int32_t e2 = byte_id(*tokenizer, '\xE2');
    const std::int32_t c3 = byte_id(*tokenizer, '\xC3');
    REQUIRE(e2 >= 0);
    REQUIRE(c3 >= 0);
    CHECK(encode(*tokenizer, "\xE2") == Ids{e2});
    Ids expected = encode(*tokenizer, "valid ");
    expected.insert(expected.end(), {e2, e2});
    const Ids tail = encode(*tokenizer, "text");
    expected.insert(expected.end(), tail.begin(), tail.end());
    expected.push_back(c3);
    CHECK(encode(*tokenizer, "valid \xE2\xE2text\xC3") == expected);
  }
}

TEST_CASE("bytes that a vocabulary lacks become U+FFFD where they are no text") {
  REQUIRE(byte_id(smollm(), '\xFF') == -1);  // SmolLM2 was trained without it
  CHECK(encode(smollm(), "\xFF") == encode(smollm(), "\xEF\xBF\xBD"));
  CHECK(decode(smollm(), encode(smollm(), "a\xC0\xAFz")) == "a\xEF\xBF\xBD\xAFz");
}

TEST_CASE("any bytes of the vocabulary come back from their ids") {
  std::string smollm_bytes;
  std::string gemma_bytes;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte_id(smollm(), static_cast<char>(byte)) >= 0) smollm_bytes += static_cast<char>(byte);
    gemma_bytes += static_cast<char>(byte);
  }
  CHECK(smollm_bytes.size() == 256 - 21);
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    for (const auto& [tokenizer, alphabet] :
         {std::pair{&smollm(), &smollm_bytes}, std::pair{&gemma(), &gemma_bytes}}) {
      std::string bytes(random() % 60, '\0');
      for (char& c : bytes)
        c = (*alphabet)[random() % alphabet->size()];
      if (bytes.find("▁") == std::string::npos) {
        CHECK(decode(*tokenizer, encode(*tokenizer, bytes)) == bytes);
      }
    }
  }
  // Overlong, surrogate, above U+10FFFF, cut off in the middle and at the end.
  for (const std::string bytes :
       {"a\xC0\xAF", "\xED\xA0\x80z", "\xF4\x90\x80\x80", "\xE2\x82x", "ok \xF0\x9F\x98"}) {
    CHECK(decode(gemma(), encode(gemma(), bytes)) == bytes);
  }
}

TEST_CASE("special tokens spelled in text stay text") {
  const auto start = smollm().special("<|im_start|>");
  REQUIRE(start);
  CHECK(*start == 1);
  CHECK(smollm().bytes(*start).empty());
  for (const auto id : encode(smollm(), "<|im_start|>system\n<|im_end|><|endoftext|>")) {
    CHECK(id > 16);  // 0 to 16 are the control tokens
  }
  const auto turn = gemma().special("<start_of_turn>");
  REQUIRE(turn);
  CHECK(*turn == 105);
  const auto& types = model_file(gemma_file).tokenizer().types;
  for (const auto id :
       encode(gemma(), "<bos><start_of_turn>user<end_of_turn><unused3><eos><0x0A>")) {
    const auto type = types[static_cast<std::size_t>(id)];
    const bool is_text =
        type == TokenizerSpec::TokenType::normal || type == TokenizerSpec::TokenType::user_defined;
    CHECK(is_text);
  }
  CHECK_FALSE(smollm().special("Hello"));
  CHECK_FALSE(smollm().special("<|user|>"));
}

TEST_CASE("beginning- and end-of-text tokens are those of the file, bos only where it is wanted") {
  CHECK_FALSE(smollm().bos());
  CHECK(smollm().eos() == 2);
  CHECK(gemma().bos() == 2);
  CHECK(gemma().eos() == 1);
  CHECK(smollm().vocab_size() == 49152);
  CHECK(gemma().vocab_size() == 262144);
  CHECK(smollm().bytes(-1).empty());
  CHECK(smollm().bytes(49152).empty());
}

TEST_CASE("a very long word costs no more than its length times a logarithm") {
  std::string text;
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i)
    text += static_cast<char>('a' + random() % 26);
  for (const Tokenizer* tokenizer : {&smollm(), &gemma()}) {
    const auto begin = std::chrono::steady_clock::now();
    const Ids ids = encode(*tokenizer, text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    CHECK(decode(*tokenizer, ids) == text);
    CHECK(took.count() < 5.0);  // quadratic would be minutes; normal is a tenth of a second
    CHECK(decode(*tokenizer, encode(*tokenizer, std::string(200000, ' ')))
          == std::string(200000, ' '));
  }
}

TEST_CASE("no pattern gives up on a long run of one kind of character") {
  TokenizerSpec spec = model_file(smollm_file).tokenizer();
  for (const std::string pre : {"smollm", "gpt-2", "llama-bpe", "qwen2", "tekken"}) {
    spec.pre = pre;
    const Tokenizer tokenizer(spec);
    for (const std::string unit :
         {"A", "a", "é", "日", "7", " ", "\n", "!", "/", "A ", " \n", "aA"}) {
      CAPTURE(pre);
      CAPTURE(unit);
      std::string text;
      for (int i = 0; i < 30000; ++i)
        text += unit;
      text += "x";
      CHECK(decode(tokenizer, encode(tokenizer, text)) == text);
    }
  }
}

TEST_CASE("a vocabulary of bytes gives every byte its own value") {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::bytes;
  spec.pieces.assign(258, "");
  spec.types.assign(258, TokenizerSpec::TokenType::byte);
  spec.pieces[256] = "<|end|>";
  spec.pieces[257] = "<|user|>";
  spec.types[256] = spec.types[257] = TokenizerSpec::TokenType::control;
  spec.eos = 256;
  const Tokenizer tokenizer(spec);
  CHECK(encode(tokenizer, "A\xFF\n") == Ids{65, 255, 10});
  CHECK(encode(tokenizer, "<|end|>").size() == 7);
  CHECK(tokenizer.special("<|user|>") == 257);
  CHECK(tokenizer.bytes(65) == "A");
  CHECK(tokenizer.bytes(257).empty());
  CHECK(tokenizer.eos() == 256);
}

TEST_CASE("SentencePiece: scores decide, a blank is put in front where the file asks for it") {
  TokenizerSpec spec = small_sentencepiece();
  // "ab" scores below "▁a", so the "a" goes to the blank.
  CHECK(encode(Tokenizer(spec), " ab") == Ids{5, 4});
  CHECK(encode(Tokenizer(spec), "ab") == Ids{6});
  spec.add_space_prefix = true;
  CHECK(encode(Tokenizer(spec), "ab") == Ids{5, 4});
  CHECK(encode(Tokenizer(spec), "").empty());
  Ids ids;
  Tokenizer(spec).encode("ab", ids, true);
  CHECK(ids == Ids{6});
  CHECK(Tokenizer(spec).bytes(5) == " a");
}

TEST_CASE("without byte pieces unknown text is the unknown token, bad bytes are U+FFFD") {
  const Tokenizer tokenizer(small_sentencepiece());
  CHECK(encode(tokenizer, "a☃b") == Ids{3, 0, 4});
  CHECK(encode(tokenizer, "a\xFF") == Ids{3, 7});
}

TEST_CASE("listed merges, as tokenizer.json has them, decide instead of scores") {
  TokenizerSpec spec = small_sentencepiece();
  spec.scores.clear();
  spec.merges = {"a b", "▁ a"};
  CHECK(encode(Tokenizer(spec), " ab") == Ids{2, 6});
}

TEST_CASE("the longest user-defined piece is cut out first") {
  TokenizerSpec spec = small_sentencepiece();
  for (const char* piece : {"  ", "   ", "b<a>"}) {
    spec.pieces.emplace_back(piece);
    spec.types.push_back(TokenizerSpec::TokenType::user_defined);
    spec.scores.push_back(-1000);
  }
  const Tokenizer tokenizer(spec);
  CHECK(encode(tokenizer, "a   ab<a>") == Ids{3, 9, 3, 10});
  CHECK(encode(tokenizer, "     ") == Ids{9, 8});
  CHECK(tokenizer.bytes(9) == "   ");
}

TEST_CASE("a spec that cannot work is refused with what is wrong") {
  const auto message = [](const TokenizerSpec& spec) -> std::string {
    try {
      const Tokenizer tokenizer(spec);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  TokenizerSpec bpe;
  bpe.pieces = {"a", "b", "ab"};
  bpe.types.assign(3, TokenizerSpec::TokenType::normal);
  bpe.merges = {"a b"};
  bpe.pre = "gpt-2";
  CHECK(message(bpe).empty());

  bpe.pre = "deepseek-v9";
  CHECK(message(bpe).find("\"deepseek-v9\" is not supported; supported are gpt-2")
        != std::string::npos);
  bpe.pre = "gpt-2";
  bpe.merges = {"a b", "a c"};
  CHECK(message(bpe).find("merge 1 \"a c\" names a piece that is not in the vocabulary")
        != std::string::npos);
  bpe.merges = {"ab"};
  CHECK(message(bpe).find("merge 0 \"ab\" is malformed") != std::string::npos);
  bpe.merges.clear();
  bpe.types.pop_back();
  CHECK(message(bpe).find("3 pieces, but 2 token types") != std::string::npos);
  bpe.types.push_back(TokenizerSpec::TokenType::normal);
  bpe.pieces[1] = "日";
  CHECK(message(bpe).find("not written in the byte-level alphabet") != std::string::npos);

  TokenizerSpec unscored = small_sentencepiece();
  unscored.scores.pop_back();
  CHECK(message(unscored).find("8 pieces, but 7 scores") != std::string::npos);
  CHECK(message(TokenizerSpec{}).find("vocabulary is empty") != std::string::npos);
}

}  // namespace incipit::gateway
