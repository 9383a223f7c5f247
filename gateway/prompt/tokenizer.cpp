#include "gateway/prompt/tokenizer.h"

#include "gateway/prompt/merge_table.h"
#include "gateway/prompt/pre_tokenizer.h"
#include "gateway/prompt/utf8.h"
#include "gateway/prompt/vocabulary.h"

namespace incipit::gateway {

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::string_view blank_mark = "\xE2\x96\x81";   // "▁"
constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

std::string mark_blanks(std::string_view text, bool prefix) {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2);
  if (prefix) marked = blank_mark;
  for (const char c : text) {
    if (c == ' ') {
      marked += blank_mark;
    } else {
      marked += c;
    }
  }
  return marked;
}

}  // namespace

struct Tokenizer::State {
  explicit State(const TokenizerSpec& spec) : vocabulary(spec), kind(spec.kind) {
    if (kind == TokenizerSpec::Kind::byte_bpe) words.emplace(spec.pre);
    prefixes_blank = kind == TokenizerSpec::Kind::sentencepiece && spec.add_space_prefix;
    const auto known = [&](std::int32_t id) { return id >= 0 && id < vocabulary.size(); };
    if (spec.add_bos && known(spec.bos)) bos = spec.bos;
    if (known(spec.eos)) eos = spec.eos;
  }

  // What one call of `encode` works in.
  struct Work {
    MergeTable::Workspace merging;
    std::vector<Symbol> symbols;
    std::vector<std::uint32_t> ends;
  };

  void encode_pieces(std::string_view text, Ids& ids, Work& work) const;
  void encode_bytes_or_text(std::string_view text, Ids& ids, Work& work) const;
  void encode_text(std::string_view text, Ids& ids, Work& work) const;
  void encode_word(std::string_view word, Ids& ids, Work& work) const;
  void encode_invalid(std::string_view bytes, Ids& ids, Work& work) const;

  Vocabulary vocabulary;
  TokenizerSpec::Kind kind;
  std::optional<PreTokenizer> words;  // byte_bpe
  bool prefixes_blank = false;
  std::optional<std::int32_t> bos, eos;
};

// Cuts out the user-defined pieces: they are never merged with their neighbours.
void Tokenizer::State::encode_pieces(std::string_view text, Ids& ids, Work& work) const {
  const PieceTrie& pieces = vocabulary.user_defined();
  if (pieces.empty()) return encode_bytes_or_text(text, ids, work);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const PieceTrie::Match match = pieces.longest_at(text, at);
    if (match.length == 0) {
      ++at;
      continue;
    }
    encode_bytes_or_text(text.substr(begin, at - begin), ids, work);
    ids.push_back(match.id);
    at += match.length;
    begin = at;
  }
  encode_bytes_or_text(text.substr(begin), ids, work);
}

// Cuts out what is not UTF-8.
void Tokenizer::State::encode_bytes_or_text(std::string_view text, Ids& ids, Work& work) const {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [kind_of_step, length] = utf8_step(text.substr(at));
    if (kind_of_step != Utf8Step::Kind::character) {
      encode_text(text.substr(begin, at - begin), ids, work);
      encode_invalid(text.substr(at, length), ids, work);
      begin = at + length;
    }
    at += length;
  }
  encode_text(text.substr(begin), ids, work);
}

void Tokenizer::State::encode_invalid(std::string_view bytes, Ids& ids, Work& work) const {
  for (const char c : bytes) {
    if (vocabulary.byte(static_cast<unsigned char>(c)) < 0) {
      return encode_text(replacement, ids, work);
    }
  }
  for (const char c : bytes)
    ids.push_back(vocabulary.byte(static_cast<unsigned char>(c)));
}

void Tokenizer::State::encode_text(std::string_view text, Ids& ids, Work& work) const {
  if (text.empty()) return;
  if (words) {
    work.ends.clear();
    words->split(text, work.ends);
    std::uint32_t begin = 0;
    for (const std::uint32_t end : work.ends) {
      const std::string_view word = text.substr(begin, end - begin);
      begin = end;
      const std::int32_t whole =
          words->takes_whole_words() || word.size() == 1 ? vocabulary.find(word) : -1;
      if (whole >= 0) {
        ids.push_back(whole);
      } else {
        encode_word(word, ids, work);
      }
    }
    return;
  }
  // SentencePiece merges the text as a whole. Where no piece reaches across a blank it may as well
  // be cut there, which keeps the words short and merging cheap.
  std::size_t begin = 0;
  for (std::size_t at = text.find(blank_mark, 1); at != std::string_view::npos;
       at = text.find(blank_mark, at + 1)) {
    const bool runs_on = vocabulary.joins_before_blank(static_cast<unsigned char>(text[at - 1]));
    if (runs_on) continue;
    encode_word(text.substr(begin, at - begin), ids, work);
    begin = at;
  }
  encode_word(text.substr(begin), ids, work);
}

void Tokenizer::State::encode_word(std::string_view word, Ids& ids, Work& work) const {
  auto& symbols = work.symbols;
  symbols.clear();
  if (kind == TokenizerSpec::Kind::byte_bpe) {
    for (std::uint32_t at = 0; at < word.size(); ++at) {
      symbols.push_back({vocabulary.byte(static_cast<unsigned char>(word[at])), at, at + 1});
    }
  } else {
    for (std::uint32_t at = 0; at < word.size();) {
      const auto length = static_cast<std::uint32_t>(utf8_step(word.substr(at)).length);
      symbols.push_back({vocabulary.find(word.substr(at, length)), at, at + length});
      at += length;
    }
  }
  vocabulary.merges().apply(symbols, work.merging);
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0) {
      ids.push_back(symbol.id);
      continue;
    }
    for (std::uint32_t at = symbol.begin; at < symbol.end; ++at) {
      const std::int32_t byte = vocabulary.byte(static_cast<unsigned char>(word[at]));
      if (byte >= 0) {
        ids.push_back(byte);
      } else if (at == symbol.begin) {  // once for the whole character
        if (vocabulary.unknown() >= 0) ids.push_back(vocabulary.unknown());
        break;
      }
    }
  }
}

Tokenizer::Tokenizer(const TokenizerSpec& spec) : state_(std::make_unique<State>(spec)) {}

Tokenizer::~Tokenizer() = default;

void Tokenizer::encode(std::string_view text, Ids& ids, bool follows_text) const {
  if (text.empty()) return;
  State::Work work;
  switch (state_->kind) {
    case TokenizerSpec::Kind::bytes:
      for (const char c : text)
        ids.push_back(static_cast<unsigned char>(c));
      return;
    case TokenizerSpec::Kind::byte_bpe:
      return state_->encode_pieces(text, ids, work);
    case TokenizerSpec::Kind::sentencepiece:
      return state_->encode_pieces(mark_blanks(text, state_->prefixes_blank && !follows_text), ids,
                                   work);
  }
}

std::optional<std::int32_t> Tokenizer::special(std::string_view piece) const {
  return state_->vocabulary.special(piece);
}

std::string_view Tokenizer::bytes(std::int32_t id) const {
  return state_->vocabulary.bytes(id);
}

int Tokenizer::vocab_size() const {
  return state_->vocabulary.size();
}

std::optional<std::int32_t> Tokenizer::bos() const {
  return state_->bos;
}

std::optional<std::int32_t> Tokenizer::eos() const {
  return state_->eos;
}

}  // namespace incipit::gateway
