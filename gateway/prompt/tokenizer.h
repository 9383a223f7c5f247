// Text to token ids and back, from the tokenizer that the model file describes.
#pragma once

#include "gateway/model/checkpoint.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// Immutable after construction; any thread.
class Tokenizer {
 public:
  // Throws std::runtime_error that lists the known pre-tokenizers when `spec` names another.
  explicit Tokenizer(const TokenizerSpec& spec);
  ~Tokenizer();

  // Appends the ids of plain text. Special tokens spelled out in `text` are text, not specials:
  // a user cannot forge a turn. Invalid UTF-8 never fails: bad bytes are encoded as bytes (or, for
  // a vocabulary without those bytes, as U+FFFD). Valid characters that the vocabulary cannot write
  // are its unknown token, or left out where it has none, as the reference implementations do.
  // `follows_text`: the prompt has text right before this, so a vocabulary that starts text with a
  // blank (`add_space_prefix`) does not put one here.
  void encode(std::string_view text, std::vector<std::int32_t>& ids,
              bool follows_text = false) const;

  // The id of a special token by its spelling ("<|im_end|>"); empty when there is none.
  [[nodiscard]] std::optional<std::int32_t> special(std::string_view piece) const;

  // The bytes a token stands for; empty for control tokens.
  [[nodiscard]] std::string_view bytes(std::int32_t id) const;

  [[nodiscard]] int vocab_size() const;
  [[nodiscard]] std::optional<std::int32_t> bos() const;  // when the model wants one
  [[nodiscard]] std::optional<std::int32_t> eos() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
