#include "gateway/prompt/reply_guide.h"

#include "gateway/constrain/constraint.h"
#include "gateway/prompt/call_grammar.h"
#include "gateway/prompt/reply_text.h"
#include "incipit/json.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace incipit::gateway {

namespace {

using constrain::CompiledShape;
using constrain::Constraint;
using constrain::Dialect;
using constrain::SchemaError;
using constrain::Shape;

constexpr std::size_t most_kept_shapes = 64;

// Whether the automaton can be built for that schema alone.
bool is_within_reach(const Shape& schema,
                     const std::shared_ptr<const constrain::Vocabulary>& words) {
  try {
    const CompiledShape compiled(schema, words);
    return true;
  } catch (const SchemaError&) {
    return false;
  }
}

// A thought's length is limited; what follows it may have a shape. One request's.
class ReplyGuide : public TokenGuide {
 public:
  struct Thought {
    int most_tokens = 0;  // 0: no limit of its own
    std::vector<std::int32_t> closing;
  };

  // `is_closed`: the shape is that of a whole reply, which does not just go on.
  ReplyGuide(std::optional<Constraint> constraint, bool is_closed, std::optional<Thought> thought,
             const ReplyText& text, std::vector<std::int32_t> ends, int vocabulary)
      : constraint_(std::move(constraint)),
        is_closed_(is_closed),
        thought_(std::move(thought)),
        text_(text),
        ends_(std::move(ends)),
        words_((static_cast<std::size_t>(vocabulary) + 63) / 64) {}

  std::span<const std::uint64_t> allowed(int remaining) override {
    if (forced_ > 0) return only(thought_->closing[thought_->closing.size() - forced_]);
    if (thought_ && thought_->most_tokens > 0 && thought_tokens_ >= thought_->most_tokens
        && remaining > static_cast<int>(thought_->closing.size())) {
      forced_ = thought_->closing.size();
      return only(thought_->closing.front());
    }
    if (constraint_) {
      const auto mask = constraint_->allowed(remaining);
      mask_.assign(mask.begin(), mask.end());
      mask_.resize(words_, 0);
      if (constraint_->end_allowed()) set_ends(true);
      return mask_;
    }
    if (!thought_) return {};
    mask_.assign(words_, ~std::uint64_t{0});
    set_ends(false);  // the answer is still to come
    return mask_;
  }

  void advance(std::int32_t token) override {
    if (forced_ > 0) --forced_;
    if (constraint_) constraint_->advance(token);
    if (!thought_) return;
    ++thought_tokens_;
    // Enough of the end to find a closing that tokens have cut.
    said_ += text_.bytes(token);
    if (said_.find(thought_closing) != std::string::npos) {
      if (forced_ == 0) thought_.reset();
      return;
    }
    if (said_.size() > thought_closing.size()) {
      said_.erase(0, said_.size() - thought_closing.size());
    }
  }

  [[nodiscard]] bool done() const override { return constraint_ && constraint_->done(); }

  [[nodiscard]] bool is_whole() const override {
    return constraint_ && is_closed_ && constraint_->end_allowed();
  }

 private:
  std::span<const std::uint64_t> only(std::int32_t token) {
    mask_.assign(words_, 0);
    set(token, true);
    return mask_;
  }

  void set(std::int32_t token, bool value) {
    const std::uint64_t bit = std::uint64_t{1} << (token % 64);
    std::uint64_t& word = mask_[static_cast<std::size_t>(token) / 64];
    word = value ? word | bit : word & ~bit;
  }

  void set_ends(bool value) {
    for (const std::int32_t end : ends_)
      set(end, value);
  }

  std::optional<Constraint> constraint_;
  bool is_closed_;
  std::optional<Thought> thought_;  // nothing once it has ended
  const ReplyText& text_;
  std::vector<std::int32_t> ends_;
  std::size_t words_;
  std::vector<std::uint64_t> mask_;
  std::string said_;
  int thought_tokens_ = 0;
  std::size_t forced_ = 0;  // tokens of the closing still to come
};

std::vector<std::string> spelled(const ReplyText& text, int count) {
  std::vector<std::string> tokens;
  tokens.reserve(static_cast<std::size_t>(count));
  for (std::int32_t token = 0; token < count; ++token)
    tokens.emplace_back(text.bytes(token));
  return tokens;
}

// The tokens of "\n</think>", in which the marker may be a token of its own.
std::vector<std::int32_t> closing_tokens(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  tokenizer.encode("\n", ids, true);
  if (const auto marker = tokenizer.special(thought_closing)) {
    ids.push_back(*marker);
  } else {
    tokenizer.encode(thought_closing, ids, true);
  }
  return ids;
}

}  // namespace

struct ReplyGuides::State {
  State(const ChatTemplate& the_template, const Tokenizer& the_tokenizer)
      : chat_template(the_template),
        tokenizer(the_tokenizer),
        text(the_tokenizer),
        grammar(CallGrammar::of(the_template.call_syntax())),
        ends(the_template.stop_tokens(the_tokenizer)),
        closing(closing_tokens(the_tokenizer)) {
    std::vector<std::string> tokens = spelled(text, tokenizer.vocab_size());
    for (const std::int32_t end : ends)
      tokens[static_cast<std::size_t>(end)].clear();
    vocabulary = std::make_shared<const constrain::Vocabulary>(std::move(tokens));
  }

  // `exact`: inputs are valid for their schemas; else those that need not be are just objects.
  [[nodiscard]] std::optional<Shape> input(const CallableTool& tool, bool must_call,
                                           bool exact) const {
    const Dialect dialect = tool.strict ? Dialect::strict : Dialect::lenient;
    if (!exact && !must_call && !tool.strict) return std::nullopt;
    Shape shape = Shape::schema(JsonValue::parse(tool.schema), dialect, tool.path);
    if (must_call || tool.strict || is_within_reach(shape, vocabulary)) return shape;
    return std::nullopt;
  }

  // One call, without its trigger.
  [[nodiscard]] Shape call(const Conversation& conversation, bool exact) const {
    const Shape tail = Shape::literal(std::string(grammar.tail));
    std::vector<Shape> tools, others;
    for (const CallableTool& tool : conversation.callable) {
      Shape head = Shape::literal(grammar.head(tool.name));
      if (auto schema = input(tool, conversation.must_call, exact)) {
        tools.push_back(Shape::sequence({std::move(head), std::move(*schema), tail}));
      } else {
        others.push_back(std::move(head));
      }
    }
    if (!others.empty()) {
      Shape object = Shape::schema(JsonValue::parse(R"({"type":"object"})"), Dialect::lenient);
      tools.push_back(Shape::sequence({Shape::any_of(std::move(others)), std::move(object), tail}));
    }
    return Shape::any_of(std::move(tools));
  }

  // What follows the trigger.
  [[nodiscard]] Shape calls(const Conversation& conversation, std::optional<int> most,
                            bool exact) const {
    Shape one = call(conversation, exact);
    if (grammar.join.empty()) return one;
    const std::string open(grammar.open);
    return Shape::sequence({Shape::any_of({Shape::literal(open), Shape::literal(" " + open)}),
                            Shape::repeated(std::move(one), std::string(grammar.join), 1, most),
                            Shape::literal(std::string(grammar.close))});
  }

  [[nodiscard]] Shape answer(const Conversation& conversation, bool exact) const {
    std::optional<Shape> format;
    if (!conversation.output_schema.empty()) {
      format = Shape::schema(JsonValue::parse(conversation.output_schema), Dialect::strict,
                             "output_config.format.schema");
    }
    if (conversation.callable.empty()) return *format;
    // How many calls are enough is the parser's matter: an automaton that counts is a large one.
    const auto most = conversation.parallel_tool_calls ? std::nullopt : std::optional(1);
    const std::string trigger(grammar.trigger);
    const auto most_triggers = grammar.join.empty() ? most : std::optional(1);
    Shape then = calls(conversation, most, exact);
    if (!conversation.must_call && !format) {
      return Shape::free_until(trigger, std::move(then), 0, most_triggers);
    }
    Shape only_calls = Shape::repeated(Shape::sequence({Shape::literal(trigger), std::move(then)}),
                                       "\n", 1, most_triggers);
    if (conversation.must_call) return only_calls;
    return Shape::any_of({std::move(only_calls), std::move(*format)});
  }

  [[nodiscard]] std::shared_ptr<const CompiledShape> compile(const Conversation& conversation,
                                                             bool behind_thought) const {
    const auto attempt = [&](bool exact) {
      Shape shape = answer(conversation, exact);
      if (behind_thought) {
        shape =
            Shape::free_until(std::string(thought_closing),
                              Shape::sequence({Shape::literal("\n\n"), std::move(shape)}), 1, 1);
      }
      return std::make_shared<const CompiledShape>(shape, vocabulary);
    };
    try {
      return attempt(true);
    } catch (const SchemaError&) {
      // Many tools may be too much together. Where nothing was promised, objects will do.
      const bool is_promised = conversation.must_call || !conversation.output_schema.empty()
                               || std::ranges::any_of(conversation.callable, &CallableTool::strict);
      if (is_promised) throw;
      return attempt(false);
    }
  }

  // Compiled now or before. The same requests make the same key; what differs in nothing that
  // matters here may have another, and is compiled again.
  [[nodiscard]] std::shared_ptr<const CompiledShape> compiled(const Conversation& conversation,
                                                              bool behind_thought) {
    std::string key;
    JsonWriter json(key);
    json.begin_array().boolean(behind_thought).boolean(conversation.must_call);
    json.boolean(conversation.parallel_tool_calls).string(conversation.output_schema);
    for (const CallableTool& tool : conversation.callable)
      json.string(tool.name).string(tool.schema).boolean(tool.strict);
    json.end_array();
    {
      const std::lock_guard lock(mutex);
      if (const auto found = by_key.find(key); found != by_key.end()) {
        kept.splice(kept.begin(), kept, found->second);
        return found->second->second;
      }
    }
    auto made = compile(conversation, behind_thought);
    const std::lock_guard lock(mutex);
    if (!by_key.contains(key)) {
      kept.emplace_front(key, made);
      by_key.emplace(std::move(key), kept.begin());
    }
    if (kept.size() > most_kept_shapes) {
      by_key.erase(kept.back().first);
      kept.pop_back();
    }
    return made;
  }

  const ChatTemplate& chat_template;
  const Tokenizer& tokenizer;
  ReplyText text;
  const CallGrammar& grammar;
  std::vector<std::int32_t> ends, closing;
  std::shared_ptr<const constrain::Vocabulary> vocabulary;

  std::mutex mutex;
  std::list<std::pair<std::string, std::shared_ptr<const CompiledShape>>> kept;  // last used first
  std::unordered_map<std::string, decltype(kept)::iterator> by_key;
};

ReplyGuides::ReplyGuides(const ChatTemplate& chat_template, const Tokenizer& tokenizer)
    : state_(std::make_unique<State>(chat_template, tokenizer)) {}

ReplyGuides::~ReplyGuides() = default;

std::shared_ptr<TokenGuide> ReplyGuides::guide(const Conversation& conversation) const {
  State& state = *state_;
  std::optional<ReplyGuide::Thought> thought;
  if (state.chat_template.opens_thought(conversation)) {
    thought = {conversation.thinking.most_tokens, state.closing};
  }
  const bool is_closed = conversation.must_call || !conversation.output_schema.empty();
  const bool has_shape = is_closed || !conversation.callable.empty();
  if (!has_shape && !thought) return nullptr;
  std::optional<Constraint> constraint;
  if (has_shape) constraint.emplace(state.compiled(conversation, thought.has_value()));
  return std::make_shared<ReplyGuide>(std::move(constraint), is_closed, std::move(thought),
                                      state.text, state.ends, state.tokenizer.vocab_size());
}

}  // namespace incipit::gateway
