// The pieces of a vocabulary as bytes, and the merges between them.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/prompt/merge_table.h"
#include "gateway/prompt/piece_trie.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace incipit::gateway {

// Immutable after construction; any thread. It keeps views into itself: never copied, never moved.
class Vocabulary {
 public:
  // Throws std::runtime_error when the spec contradicts itself.
  explicit Vocabulary(const TokenizerSpec& spec);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(bytes_.size()); }

  // What the token stands for in text; empty for control tokens.
  [[nodiscard]] std::string_view bytes(std::int32_t id) const;
  // A piece that merging can produce, by what it is merged from: raw bytes, or, in a SentencePiece
  // vocabulary, text with its blanks as "▁". -1 when there is none.
  [[nodiscard]] std::int32_t find(std::string_view text) const;
  [[nodiscard]] std::optional<std::int32_t> special(std::string_view spelling) const;

  // The token of a single byte, or -1.
  [[nodiscard]] std::int32_t byte(unsigned char value) const { return byte_ids_[value]; }

  [[nodiscard]] std::int32_t unknown() const { return unknown_; }

  [[nodiscard]] const MergeTable& merges() const { return merges_; }

  // Pieces that are cut out of any text before the rest is merged.
  [[nodiscard]] const PieceTrie& user_defined() const { return user_defined_; }

  // SentencePiece: whether some piece goes on with a "▁" behind a character that ends in this byte.
  // Everywhere else a "▁" begins a word that no merge reaches into.
  [[nodiscard]] bool joins_before_blank(unsigned char last_byte) const {
    return joins_before_blank_[last_byte];
  }

 private:
  void load_bytes();
  void load_byte_bpe(const TokenizerSpec& spec);
  void load_sentencepiece(const TokenizerSpec& spec);
  void add_listed_merges(const TokenizerSpec& spec);
  void add_scored_merges(const TokenizerSpec& spec);

  std::vector<std::string> bytes_;  // by id: what `bytes` returns
  std::vector<std::string> texts_;  // by id: what `find` knows; empty when it is not to be found
  std::unordered_map<std::string_view, std::int32_t> ids_;  // keys in `texts_`
  std::unordered_map<std::string, std::int32_t> specials_;
  std::array<std::int32_t, 256> byte_ids_{};
  std::int32_t unknown_ = -1;
  MergeTable merges_;
  PieceTrie user_defined_;
  std::bitset<256> joins_before_blank_;
};

}  // namespace incipit::gateway
