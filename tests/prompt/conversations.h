// Building conversations and small vocabularies for tests.
#pragma once

#include "gateway/model/checkpoint.h"
#include "gateway/prompt/conversation.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace incipit::gateway {

inline Item item(Section section, Role role, ItemKind kind, std::string text) {
  Item made;
  made.section = section;
  made.role = role;
  made.kind = kind;
  made.key_bytes = text;
  made.text = std::move(text);
  return made;
}

inline Item tool(std::string name, std::string description, std::string schema) {
  Item made = item(Section::tools, Role::system, ItemKind::tool, std::move(description));
  made.name = std::move(name);
  made.schema = std::move(schema);
  made.key_bytes += made.name + made.schema;
  return made;
}

inline Item system_text(std::string text) {
  return item(Section::system, Role::system, ItemKind::text, std::move(text));
}

inline Item user(std::string text) {
  return item(Section::messages, Role::user, ItemKind::text, std::move(text));
}

inline Item assistant(std::string text) {
  return item(Section::messages, Role::assistant, ItemKind::text, std::move(text));
}

inline Item later_system(std::string text) {
  return item(Section::messages, Role::system, ItemKind::text, std::move(text));
}

inline Item tool_use(std::string name, std::string input, std::string id) {
  Item made = item(Section::messages, Role::assistant, ItemKind::tool_use, std::move(input));
  made.name = std::move(name);
  made.id = std::move(id);
  return made;
}

inline Item tool_result(std::string text, std::string id, bool is_error = false) {
  Item made = item(Section::messages, Role::user, ItemKind::tool_result, std::move(text));
  made.id = std::move(id);
  made.is_error = is_error;
  return made;
}

inline Conversation conversation(std::vector<Item> items) {
  Conversation made;
  made.items = std::move(items);
  const Item* previous = nullptr;
  int turn = -1;
  for (Item& one : made.items) {
    if (one.section != Section::messages) continue;
    if (previous == nullptr || previous->role != one.role) ++turn;
    one.turn = turn;
    previous = &one;
  }
  return made;
}

// Bytes as tokens, then `specials` from 256 on.
inline TokenizerSpec byte_vocabulary(std::initializer_list<const char*> specials) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::bytes;
  spec.pieces.assign(256, "");
  spec.types.assign(256, TokenizerSpec::TokenType::byte);
  for (const char* special : specials) {
    spec.pieces.emplace_back(special);
    spec.types.push_back(TokenizerSpec::TokenType::control);
  }
  return spec;
}

inline TokenizerSpec tiny_vocabulary() {
  return byte_vocabulary({"<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tools|>"});
}

// A vocabulary of special tokens only, and a Jinja text to recognise a family by.
inline TokenizerSpec family_spec(std::initializer_list<const char*> specials,
                                 std::string chat_template) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::byte_bpe;
  spec.pre = "gpt-2";
  for (const char* special : specials) {
    spec.pieces.emplace_back(special);
    spec.types.push_back(TokenizerSpec::TokenType::control);
  }
  spec.chat_template = std::move(chat_template);
  return spec;
}

}  // namespace incipit::gateway
