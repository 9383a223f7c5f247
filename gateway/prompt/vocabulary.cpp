#include "gateway/prompt/vocabulary.h"

#include "gateway/prompt/utf8.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace incipit::gateway {

namespace {

using Type = TokenizerSpec::TokenType;

constexpr std::string_view blank_mark = "\xE2\x96\x81";  // "▁"

// GPT-2's alphabet writes every byte as a visible character: the visible ones of Latin-1 as
// themselves, the other 68 from U+0100 on, in order.
bool stands_for_itself(unsigned value) {
  return (value >= 0x21 && value <= 0x7E) || (value >= 0xA1 && value <= 0xAC) || value >= 0xAE;
}

std::array<std::int16_t, 0x144> make_alphabet() {
  std::array<std::int16_t, 0x144> byte_of{};
  byte_of.fill(-1);
  std::size_t moved = 0x100;
  for (unsigned value = 0; value < 256; ++value) {
    const std::size_t at = stands_for_itself(value) ? value : moved++;
    byte_of[at] = static_cast<std::int16_t>(value);
  }
  return byte_of;
}

// The bytes that a piece in GPT-2's alphabet stands for; none when it has foreign characters.
std::optional<std::string> from_alphabet(std::string_view piece) {
  static const auto byte_of = make_alphabet();
  std::string bytes;
  for (std::size_t at = 0; at < piece.size();) {
    const auto [kind, length] = utf8_step(piece.substr(at));
    if (kind != Utf8Step::Kind::character || length > 2) return std::nullopt;
    std::size_t point = static_cast<unsigned char>(piece[at]);
    if (length == 2)
      point = ((point & 0x1FU) << 6U) | (static_cast<unsigned char>(piece[at + 1]) & 0x3FU);
    if (point >= byte_of.size() || byte_of[point] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of[point]);
    at += length;
  }
  return bytes;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t hit = 0; (hit = text.find(from, at)) != std::string_view::npos;) {
    result.append(text, at, hit - at).append(to);
    at = hit + from.size();
  }
  return result.append(text, at);
}

// "<0x0A>" → 10; -1 for anything else.
int byte_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  return error == std::errc{} && end == piece.data() + 5 ? value : -1;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("tokenizer: " + what);
}

}  // namespace

Vocabulary::Vocabulary(const TokenizerSpec& spec) : unknown_(spec.unknown) {
  const std::size_t count = spec.pieces.size();
  if (count == 0) fail("the vocabulary is empty");
  if (spec.types.size() != count) {
    fail("the vocabulary has " + std::to_string(count) + " pieces, but "
         + std::to_string(spec.types.size()) + " token types");
  }
  // Some files name a control token here; plain text must never turn into one.
  if (unknown_ < 0 || unknown_ >= static_cast<std::int32_t>(count)
      || spec.types[static_cast<std::size_t>(unknown_)] == Type::control) {
    unknown_ = -1;
  }
  byte_ids_.fill(-1);
  bytes_.resize(count);
  texts_.resize(count);
  for (std::size_t id = 0; id < count; ++id) {
    if (spec.types[id] == Type::control || spec.types[id] == Type::user_defined) {
      specials_.emplace(spec.pieces[id], static_cast<std::int32_t>(id));
    }
  }
  switch (spec.kind) {
    case TokenizerSpec::Kind::bytes:
      load_bytes();
      break;
    case TokenizerSpec::Kind::byte_bpe:
      load_byte_bpe(spec);
      break;
    case TokenizerSpec::Kind::sentencepiece:
      load_sentencepiece(spec);
      break;
  }
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  if (id < 0 || id >= size()) return {};
  return bytes_[static_cast<std::size_t>(id)];
}

std::int32_t Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

std::optional<std::int32_t> Vocabulary::special(std::string_view spelling) const {
  const auto found = specials_.find(std::string(spelling));
  if (found == specials_.end()) return std::nullopt;
  return found->second;
}

void Vocabulary::load_bytes() {
  if (size() < 256) fail("a vocabulary of bytes needs at least 256 pieces");
  for (std::size_t value = 0; value < 256; ++value) {
    bytes_[value] = static_cast<char>(value);
    byte_ids_[value] = static_cast<std::int32_t>(value);
  }
}

void Vocabulary::load_byte_bpe(const TokenizerSpec& spec) {
  ids_.reserve(bytes_.size());
  for (std::size_t id = 0; id < bytes_.size(); ++id) {
    const auto token = static_cast<std::int32_t>(id);
    if (spec.types[id] == Type::user_defined) {  // added behind the trained ones, as plain text
      bytes_[id] = spec.pieces[id];
      user_defined_.add(spec.pieces[id], token);
    } else if (spec.types[id] == Type::normal) {
      auto bytes = from_alphabet(spec.pieces[id]);
      if (!bytes) {
        fail("piece " + std::to_string(id) + " \"" + spec.pieces[id]
             + "\" is not written in the byte-level alphabet");
      }
      bytes_[id] = *bytes;
      texts_[id] = std::move(*bytes);
      ids_.emplace(texts_[id], token);
    }
  }
  for (std::size_t value = 0; value < 256; ++value) {
    const char byte = static_cast<char>(value);
    byte_ids_[value] = find({&byte, 1});
  }
  add_listed_merges(spec);
}

void Vocabulary::load_sentencepiece(const TokenizerSpec& spec) {
  ids_.reserve(bytes_.size());
  for (std::size_t id = 0; id < bytes_.size(); ++id) {
    const auto token = static_cast<std::int32_t>(id);
    const std::string& piece = spec.pieces[id];
    if (spec.types[id] == Type::byte) {
      const int value = byte_piece(piece);
      if (value < 0) fail("piece " + std::to_string(id) + " \"" + piece + "\" is no <0xNN>");
      bytes_[id] = static_cast<char>(value);
      byte_ids_[static_cast<std::size_t>(value)] = token;
    } else if (spec.types[id] == Type::user_defined) {
      // Files write runs of blanks either way.
      bytes_[id] = replace_all(piece, blank_mark, " ");
      user_defined_.add(replace_all(piece, " ", blank_mark), token);
    } else if (spec.types[id] == Type::normal) {
      bytes_[id] = replace_all(piece, blank_mark, " ");
      texts_[id] = piece;
      ids_.emplace(texts_[id], token);
      for (std::size_t at = 1; (at = piece.find(blank_mark, at)) != std::string::npos; ++at) {
        joins_before_blank_.set(static_cast<unsigned char>(piece[at - 1]));
      }
    }
  }
  if (!spec.merges.empty()) {
    add_listed_merges(spec);
  } else {
    add_scored_merges(spec);
  }
}

void Vocabulary::add_listed_merges(const TokenizerSpec& spec) {
  const bool is_byte_bpe = spec.kind == TokenizerSpec::Kind::byte_bpe;
  merges_.reserve(spec.merges.size());
  for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const std::string_view merge = spec.merges[rank];
    const std::size_t blank = merge.find(' ');
    const std::string_view left_piece = merge.substr(0, blank);
    const std::string_view right_piece =
        blank == std::string_view::npos ? "" : merge.substr(blank + 1);
    std::optional<std::string> left(left_piece);
    std::optional<std::string> right(right_piece);
    if (is_byte_bpe) {
      left = from_alphabet(left_piece);
      right = from_alphabet(right_piece);
    }
    if (!left || !right || left->empty() || right->empty()) {
      fail("merge " + std::to_string(rank) + " \"" + std::string(merge) + "\" is malformed");
    }
    const std::int32_t left_id = find(*left);
    const std::int32_t right_id = find(*right);
    const std::int32_t merged = find(*left + *right);
    if (left_id >= 0 && right_id >= 0 && merged >= 0) {
      merges_.add(left_id, right_id, static_cast<std::uint32_t>(rank), merged);
    } else if (is_byte_bpe) {
      fail("merge " + std::to_string(rank) + " \"" + std::string(merge)
           + "\" names a piece that is not in the vocabulary");
    }  // else: of pieces that are cut out before merging, such as runs of blanks
  }
}

void Vocabulary::add_scored_merges(const TokenizerSpec& spec) {
  if (spec.scores.size() != spec.pieces.size()) {
    fail("the vocabulary has " + std::to_string(spec.pieces.size()) + " pieces, but "
         + std::to_string(spec.scores.size()) + " scores");
  }
  // A merge ranks as the score of what it makes, however that is cut in two.
  std::vector<std::int32_t> order;
  std::size_t cuts = 0;
  for (std::size_t id = 0; id < texts_.size(); ++id) {
    if (texts_[id].size() < 2) continue;
    order.push_back(static_cast<std::int32_t>(id));
    cuts += texts_[id].size() - 1;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return spec.scores[static_cast<std::size_t>(a)] > spec.scores[static_cast<std::size_t>(b)];
  });

  struct Merge {
    std::int32_t left, right;
    std::uint32_t rank;
    std::int32_t merged;
  };

  std::vector<Merge> merges;
  merges.reserve(cuts / 2);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto id = static_cast<std::size_t>(order[i]);
    if (i > 0 && spec.scores[id] != spec.scores[static_cast<std::size_t>(order[i - 1])]) ++rank;
    const std::string_view text = texts_[id];
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) continue;  // inside a character
      const std::int32_t left = find(text.substr(0, cut));
      if (left < 0) continue;
      const std::int32_t right = find(text.substr(cut));
      if (right >= 0) merges.push_back({left, right, rank, order[i]});
    }
  }
  merges_.reserve(merges.size());
  for (const Merge& merge : merges)
    merges_.add(merge.left, merge.right, merge.rank, merge.merged);
}

}  // namespace incipit::gateway
