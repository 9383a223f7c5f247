#include "gateway/prompt/encode.h"

#include <optional>
#include <string>
#include <string_view>

namespace incipit::gateway {

namespace {

// Gathers text and turns it into tokens where it is cut: at special tokens and at ends of items.
class TokenWriter {
 public:
  explicit TokenWriter(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void begin_with(std::int32_t bos) {
    bos_ = bos;
    tokens_.push_back(bos);
  }

  void text(std::string_view text) { run_ += text; }

  // Special tokens are spelled <…> or […].
  void template_text(std::string_view text) {
    while (true) {
      const std::size_t open = text.find_first_of("<[");
      if (open == std::string_view::npos) break;
      const std::size_t close = text.find(text[open] == '<' ? '>' : ']', open);
      const auto special = close == std::string_view::npos
                               ? std::nullopt
                               : tokenizer_.special(text.substr(open, close + 1 - open));
      if (!special) {
        run_ += text.substr(0, open + 1);
        text.remove_prefix(open + 1);
        continue;
      }
      run_ += text.substr(0, open);
      cut();
      const bool repeats_bos = bos_ == special && tokens_.size() == 1;
      if (!repeats_bos) tokens_.push_back(*special);
      follows_text_ = false;
      text.remove_prefix(close + 1);
    }
    run_ += text;
  }

  void cut() {
    if (run_.empty()) return;
    tokenizer_.encode(run_, tokens_, follows_text_);
    follows_text_ = true;
    run_.clear();
  }

  [[nodiscard]] std::vector<std::int32_t>& tokens() { return tokens_; }

 private:
  const Tokenizer& tokenizer_;
  std::optional<std::int32_t> bos_;  // the first token
  std::string run_;
  std::vector<std::int32_t> tokens_;
  bool follows_text_ = false;
};

BoundaryKind boundary_kind(ItemKind kind) {
  if (kind == ItemKind::tool_use) return BoundaryKind::tool_use;
  if (kind == ItemKind::tool_result) return BoundaryKind::tool_result;
  return BoundaryKind::other;
}

// Mixes in each setting where its section begins (C-54), then one item after the other.
class KeyWriter {
 public:
  explicit KeyWriter(const Conversation& conversation) : conversation_(conversation) {
    hasher_.add(conversation.key_before_tools);
  }

  PrefixKey add(const Item& item) {
    if (item.section >= Section::system && section_ < Section::system) {
      hasher_.add(conversation_.key_before_system);
    }
    if (item.section >= Section::messages && section_ < Section::messages) {
      hasher_.add(conversation_.key_before_messages);
    }
    section_ = item.section;
    hasher_.add(item.key_bytes);
    return hasher_.key();
  }

 private:
  const Conversation& conversation_;
  PrefixHasher hasher_;
  Section section_ = Section::tools;
};

}  // namespace

EncodedPrompt encode(const Conversation& conversation, const ChatTemplate& chat_template,
                     const Tokenizer& tokenizer) {
  EncodedPrompt prompt;
  TokenWriter writer(tokenizer);
  KeyWriter keys(conversation);
  // Where the template writes the beginning-of-text token too, there is still only one.
  if (tokenizer.bos()) writer.begin_with(*tokenizer.bos());
  prompt.boundaries.reserve(conversation.items.size());
  std::size_t item = 0;
  for (const Fragment& fragment : chat_template.render(conversation)) {
    if (fragment.is_template) {
      writer.template_text(fragment.text);
    } else {
      writer.text(fragment.text);
    }
    if (!fragment.ends_item) continue;
    writer.cut();
    const Item& ended = conversation.items[item++];
    prompt.boundaries.push_back({keys.add(ended), static_cast<int>(writer.tokens().size()),
                                 boundary_kind(ended.kind), ended.marker});
  }
  writer.cut();
  prompt.tokens = std::move(writer.tokens());
  return prompt;
}

}  // namespace incipit::gateway
