#include "gateway/prompt/reply_parser.h"

#include "gateway/prompt/call_finder.h"
#include "gateway/prompt/stop_matcher.h"
#include "gateway/prompt/utf8.h"

#include <utility>

namespace incipit::gateway {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view mistral_calls = "[TOOL_CALLS]";

std::optional<CallFinder> make_finder(const Conversation& conversation,
                                      ChatTemplate::CallSyntax syntax) {
  // A reply that goes on with the caller's words is no bare call.
  const bool is_continued_bare =
      conversation.continues_assistant && syntax == ChatTemplate::CallSyntax::bare;
  if (conversation.callable.empty() || is_continued_bare) return std::nullopt;
  std::vector<std::string> tools;
  for (const CallableTool& tool : conversation.callable)
    tools.push_back(tool.name);
  return CallFinder(syntax, std::move(tools));
}

}  // namespace

struct ReplyParser::State {
  State(const Conversation& conversation, const ChatTemplate& chat_template,
        const Tokenizer& tokenizer_)
      : tokenizer(tokenizer_),
        stops(conversation.stop_sequences),
        finder(make_finder(conversation, chat_template.call_syntax())),
        takes_one_call(!conversation.parallel_tool_calls),
        drops_blank(chat_template.replies_start_with_blank() && !conversation.continues_assistant) {
    if (finder && chat_template.call_syntax() == ChatTemplate::CallSyntax::bracketed) {
      calls_token = tokenizer.special(mistral_calls);
    }
  }

  // Whole characters of what has come, with bad bytes replaced; the rest stays in `undecoded`.
  std::string decode(std::string_view bytes) {
    undecoded += bytes;
    std::string text;
    std::size_t at = 0;
    while (at < undecoded.size()) {
      const auto [kind, length] = utf8_step(std::string_view(undecoded).substr(at));
      if (kind == Utf8Step::Kind::incomplete) break;
      if (kind == Utf8Step::Kind::character) {
        text.append(undecoded, at, length);
      } else {
        text += replacement;
      }
      at += length;
    }
    undecoded.erase(0, at);
    if (drops_blank && !text.empty()) {
      if (text.front() == ' ') text.erase(0, 1);
      drops_blank = false;
    }
    return text;
  }

  void pass_on(std::string_view text) {
    if (!finder) return say(text);
    std::vector<Finding> findings;
    finder->feed(text, findings);
    take(findings);
  }

  void take(std::vector<Finding>& findings) {
    for (Finding& finding : findings) {
      if (has_only_call()) return;
      if (finding.call) {
        call(std::move(*finding.call));
      } else {
        say(finding.text);
      }
    }
  }

  void say(std::string_view text) {
    if (text.empty()) return;
    if (!in_text) pieces.push_back({Piece::Kind::text_start, {}, {}});
    in_text = true;
    pieces.push_back({Piece::Kind::text, std::string(text), {}});
  }

  void end_text() {
    if (in_text) pieces.push_back({Piece::Kind::stop, {}, {}});
    in_text = false;
  }

  void call(ToolCall made) {
    end_text();
    pieces.push_back({Piece::Kind::tool_start, {}, std::move(made.name)});
    pieces.push_back({Piece::Kind::tool_input, std::move(made.input), {}});
    pieces.push_back({Piece::Kind::stop, {}, {}});
    has_called = true;
  }

  [[nodiscard]] bool has_only_call() const { return takes_one_call && has_called; }

  [[nodiscard]] bool is_done() const { return stops.matched() || has_only_call(); }

  const Tokenizer& tokenizer;
  std::string undecoded;
  StopMatcher stops;
  std::optional<CallFinder> finder;
  std::optional<std::int32_t> calls_token;  // stands for its spelling, where it stands for no text
  bool takes_one_call;
  bool drops_blank;  // one at the very start
  bool in_text = false;
  bool has_called = false;
  std::vector<Piece> pieces;  // of the present call of `feed` or `finish`
};

ReplyParser::ReplyParser(const Conversation& conversation, const ChatTemplate& chat_template,
                         const Tokenizer& tokenizer)
    : state_(std::make_unique<State>(conversation, chat_template, tokenizer)) {}

ReplyParser::~ReplyParser() = default;

std::vector<Piece> ReplyParser::feed(std::int32_t token) {
  if (done()) return {};
  const bool opens_calls = state_->calls_token && *state_->calls_token == token;
  const std::string text =
      state_->decode(opens_calls ? mistral_calls : state_->tokenizer.bytes(token));
  state_->pass_on(state_->stops.feed(text));
  return std::exchange(state_->pieces, {});
}

std::vector<Piece> ReplyParser::finish() {
  if (!done()) {
    if (!state_->undecoded.empty()) {
      state_->undecoded.clear();
      state_->pass_on(state_->stops.feed(replacement));
    }
    state_->pass_on(state_->stops.flush());
  }
  if (state_->finder) {
    std::vector<Finding> findings;
    state_->finder->finish(findings);
    state_->take(findings);
  }
  state_->end_text();
  return std::exchange(state_->pieces, {});
}

const std::optional<std::string>& ReplyParser::stop_sequence() const {
  return state_->stops.matched();
}

bool ReplyParser::called_tools() const {
  return state_->has_called;
}

bool ReplyParser::done() const {
  return state_->is_done();
}

}  // namespace incipit::gateway
