#include "gateway/prompt/chat_template.h"

#include "gateway/prompt/chat_format.h"
#include "gateway/prompt/reply_text.h"
#include "incipit/json.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace incipit::gateway {

namespace {

constexpr std::string_view no_thought = "<think>\n\n</think>\n\n";

// What stands open at the end of the text written so far.
enum class Voice : std::uint8_t {
  none,
  tools,
  system,
  user,
  later_system,  // a system turn between the messages
  result,        // a tool result that is a turn of its own
  assistant,
  calls,  // a run of tool calls in an assistant turn
};

// The inside of a JSON string: the formats bring their own quotes.
std::string escaped(std::string_view text) {
  std::string out;
  JsonWriter(out).string(text);
  return out.substr(1, out.size() - 2);
}

// Mistral wants call ids of nine letters and digits: the last nine of the caller's id, which are
// its random part.
std::string short_id(std::string_view id) {
  std::string letters;
  for (const char c : id) {
    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) letters += c;
  }
  if (letters.size() > 9) return letters.substr(letters.size() - 9);
  return std::string(9 - letters.size(), '0') + letters;
}

// What the template puts in when there is no system text: the literal between the system turn's
// opening and its end in a Jinja string.
std::string default_system_of(std::string_view jinja) {
  constexpr std::string_view open = "<|im_start|>system";
  for (std::size_t at = jinja.find(open); at != std::string_view::npos;
       at = jinja.find(open, at + 1)) {
    std::string_view text = jinja.substr(at + open.size());
    if (text.starts_with("\\n")) {
      text.remove_prefix(2);
    } else if (text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    text = text.substr(0, text.find("<|im_end|>"));
    const bool is_literal = text.find_first_of("'\"{}") == std::string_view::npos;
    if (is_literal && !text.empty()) return std::string(text);
  }
  return {};
}

class Writer {
 public:
  // How an assistant turn begins. `open`: in a thought.
  enum class Thought : std::uint8_t { none, empty, open };

  Writer(const ChatFormat& format, std::string_view default_system, Thought thought)
      : format_(format), default_system_(default_system), thought_(thought) {}

  void literal(std::string_view text) { append(text, true); }

  void write(const Item& item) {
    move_to(voice_of(item));
    if (item.kind != ItemKind::thinking && std::exchange(in_thought_, false)) {
      literal(no_thought.substr(thought_opening.size()));
    }
    switch (item.kind) {
      case ItemKind::tool:
        return expand(format_.tool, item);
      case ItemKind::text:
        return append(item.text, false);
      case ItemKind::tool_use:
        return expand(format_.call, item);
      case ItemKind::tool_result:
        return expand(format_.result, item);
      case ItemKind::thinking:
        if (!std::exchange(in_thought_, false)) literal(thought_opening);
        append(item.text, false);
        literal("\n</think>\n\n");
        fresh_ = true;
        return;
    }
  }

  // Ends the turn that is open, whosever it is, and begins the assistant's.
  void open_assistant() {
    if (voice_ == Voice::assistant || voice_ == Voice::calls) {
      literal_close();
      literal_open(Voice::assistant);
      voice_ = Voice::assistant;
    } else {
      move_to(Voice::assistant);
    }
    fresh_ = true;
  }

  void end_item() {
    if (fragments_.empty() || fragments_.back().ends_item) fragments_.emplace_back();
    fragments_.back().ends_item = true;
  }

  [[nodiscard]] std::vector<Fragment> take() { return std::move(fragments_); }

 private:
  void append(std::string_view text, bool is_template) {
    if (text.empty()) return;
    if (fragments_.empty() || fragments_.back().ends_item
        || fragments_.back().is_template != is_template) {
      fragments_.emplace_back().is_template = is_template;
    }
    fragments_.back().text += text;
  }

  void expand(std::string_view pattern, const Item& item) {
    for (std::size_t at = 0; at < pattern.size();) {
      const std::size_t hole = std::min(pattern.find('$', at), pattern.size());
      literal(pattern.substr(at, hole - at));
      if (hole == pattern.size()) return;
      fill(pattern[hole + 1], item);
      at = hole + 2;
    }
  }

  void fill(char hole, const Item& item) {
    switch (hole) {
      case 'n':
        return append(escaped(item.name), false);
      case 'N':
        return append(item.name, false);
      case 'd':
        return append(escaped(item.text), false);
      case 'q':
        return append(escaped(item.text), false);
      case 'D':
      case 't':
        return append(item.kind == ItemKind::tool_use && item.text.empty() ? "{}" : item.text,
                      false);
      case 's':
        return append(item.schema, false);
      case 'i':
        return append(short_id(item.id), false);
      case 'e':
        return literal(item.is_error ? "Error: " : "");
      default:
        throw std::logic_error("a chat format has a hole of no meaning");
    }
  }

  [[nodiscard]] Voice voice_of(const Item& item) const {
    if (item.section == Section::tools) return Voice::tools;
    if (item.section == Section::system) return Voice::system;
    if (item.kind == ItemKind::tool_use) return Voice::calls;
    if (item.kind == ItemKind::tool_result && format_.result_is_turn) return Voice::result;
    if (item.role == Role::assistant) return Voice::assistant;
    const bool is_system = item.role == Role::system && !format_.later_system_open.empty();
    return is_system ? Voice::later_system : Voice::user;
  }

  // Closes what has to be closed, opens what has to be opened, or joins.
  void move_to(Voice next) {
    if (voice_ == next) {
      if (!fresh_) literal_join();
    } else if (voice_ == Voice::tools && next == Voice::system) {
      literal(format_.tools_close);
      literal(format_.tools_then_system);
    } else if (voice_ == Voice::none && next == Voice::system) {
      literal(format_.system_open);
    } else if (voice_ == Voice::none && next == Voice::tools) {
      literal(format_.tools_open);
    } else if (voice_ == Voice::none || voice_ == Voice::tools) {
      leave_without_system_text(next);
    } else if (voice_ == Voice::system && next == Voice::user && format_.system_joins_user) {
      literal("\n\n");
    } else if (voice_ == Voice::assistant && next == Voice::calls) {
      if (!fresh_ && format_.calls_open.empty()) literal(format_.join);
      literal(format_.calls_open);
    } else if (voice_ == Voice::calls && next == Voice::assistant) {
      literal(format_.calls_close.empty() ? format_.join : format_.calls_close);
    } else {
      literal_close();
      literal_open(next);
    }
    voice_ = next;
    fresh_ = false;
  }

  void leave_without_system_text(Voice next) {
    if (!default_system_.empty()) {
      move_to(Voice::system);
      literal(default_system_);
      return move_to(next);
    }
    if (voice_ == Voice::tools) {
      literal(format_.tools_close);
      literal(format_.tools_then_turn);
      if (format_.tools_join_user && next == Voice::user) return;
    } else if (format_.always_has_system) {
      literal(format_.system_open);
      literal(format_.system_close);
    }
    literal_open(next);
  }

  void literal_join() {
    switch (voice_) {
      case Voice::tools:
        return literal(format_.tool_join);
      case Voice::calls:
        return literal(format_.calls_join);
      case Voice::result:
        literal(format_.result_close);
        return literal(format_.result_open);
      default:
        return literal(format_.join);
    }
  }

  void literal_open(Voice next) {
    switch (next) {
      case Voice::user:
        return literal(format_.user_open);
      case Voice::later_system:
        return literal(format_.later_system_open);
      case Voice::result:
        return literal(format_.result_open);
      case Voice::assistant:
        return open_assistant_turn();
      case Voice::calls:
        open_assistant_turn();
        return literal(format_.calls_open);
      default:
        throw std::logic_error("items of a prompt are not in the order tools, system, messages");
    }
  }

  void open_assistant_turn() {
    literal(format_.assistant_open);
    if (thought_ == Thought::empty) literal(no_thought);
    if (thought_ == Thought::open) literal(thought_opening);
    in_thought_ = thought_ == Thought::open;
  }

  void literal_close() {
    switch (voice_) {
      case Voice::system:
      case Voice::later_system:
        return literal(format_.system_close);
      case Voice::user:
        return literal(format_.user_close);
      case Voice::result:
        return literal(format_.result_close);
      case Voice::calls:
        literal(format_.calls_close);
        return literal(format_.assistant_close);
      case Voice::assistant:
        return literal(format_.assistant_close);
      default:
        return;
    }
  }

  const ChatFormat& format_;
  std::string_view default_system_;
  Thought thought_;
  std::vector<Fragment> fragments_;
  Voice voice_ = Voice::none;
  bool in_thought_ = false;
  bool fresh_ = false;  // `voice_` was opened and nothing has been said in it
};

}  // namespace

ChatTemplate::ChatTemplate(const ModelConfig& config, const TokenizerSpec& spec)
    : format_(&recognise_format(config, spec)),
      thinks_(spec.chat_template.find("<think>") != std::string::npos) {
  const bool writes_bos = format_->family == Family::llama3 || format_->family == Family::mistral
                          || format_->family == Family::gemma;
  if (writes_bos && spec.bos >= 0 && static_cast<std::size_t>(spec.bos) < spec.pieces.size()) {
    bos_ = spec.pieces[static_cast<std::size_t>(spec.bos)];
  }
  if (format_->family == Family::chatml) {
    default_system_ = default_system_of(spec.chat_template);
    // Qwen3 answers without thinking aloud when its turn begins with an empty thought. The thought
    // stays in earlier turns, so that a longer conversation begins as the shorter one did.
    writes_no_thought_ = spec.chat_template.find("enable_thinking") != std::string::npos;
  }
  replies_start_with_blank_ =
      format_->family == Family::mistral && spec.kind == TokenizerSpec::Kind::sentencepiece;
}

ChatTemplate::Family ChatTemplate::family() const {
  return format_->family;
}

std::string_view ChatTemplate::name() const {
  return format_->name;
}

ChatTemplate::CallSyntax ChatTemplate::call_syntax() const {
  return format_->call_syntax;
}

std::vector<Fragment> ChatTemplate::render(const Conversation& conversation) const {
  Writer::Thought thought = writes_no_thought_ ? Writer::Thought::empty : Writer::Thought::none;
  if (thinks_ && conversation.thinking.wanted) thought = Writer::Thought::open;
  Writer writer(*format_, default_system_, thought);
  writer.literal(bos_);
  const auto& items = conversation.items;
  const auto is_assistant = [](const Item& item) {
    return item.section == Section::messages && item.role == Role::assistant;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    writer.write(items[i]);
    const bool is_last = i + 1 == items.size();
    const bool ends_user_turn = items[i].section == Section::messages && !is_assistant(items[i])
                                && (is_last || is_assistant(items[i + 1]));
    const bool is_left_open = is_last && is_assistant(items[i]) && conversation.continues_assistant;
    if (ends_user_turn || (is_last && !is_left_open)) writer.open_assistant();
    writer.end_item();
  }
  if (items.empty()) writer.open_assistant();
  return writer.take();
}

std::vector<std::int32_t> ChatTemplate::stop_tokens(const Tokenizer& tokenizer) const {
  std::vector<std::int32_t> ids;
  const auto add = [&](std::optional<std::int32_t> id) {
    if (id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  };
  for (const std::string_view stop : format_->stops) {
    if (!stop.empty()) add(tokenizer.special(stop));
  }
  add(tokenizer.eos());
  return ids;
}

}  // namespace incipit::gateway
