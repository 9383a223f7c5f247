#include "gateway/prompt/reply_parser.h"

#include "gateway/prompt/call_finder.h"
#include "gateway/prompt/reply_text.h"
#include "gateway/prompt/stop_matcher.h"
#include "gateway/prompt/utf8.h"

#include <algorithm>
#include <utility>

namespace incipit::gateway {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view white_space = " \t\r\n";

std::optional<CallFinder> make_finder(const Conversation& conversation,
                                      ChatTemplate::CallSyntax syntax) {
  if (conversation.callable.empty()) return std::nullopt;
  std::vector<std::string> tools;
  for (const CallableTool& tool : conversation.callable)
    tools.push_back(tool.name);
  return CallFinder(CallGrammar::of(syntax), tools);
}

// How much of the end of `text` could be the beginning of `pattern`.
std::size_t begun(std::string_view text, std::string_view pattern) {
  std::size_t length = std::min(text.size(), pattern.size() - 1);
  while (!text.ends_with(pattern.substr(0, length)))
    --length;
  return length;
}

}  // namespace

struct ReplyParser::State {
  State(const Conversation& conversation, const ChatTemplate& chat_template,
        const Tokenizer& tokenizer_)
      : reply_text(tokenizer_),
        stops(conversation.stop_sequences),
        finder(make_finder(conversation, chat_template.call_syntax())),
        in_thought(chat_template.opens_thought(conversation)),
        calls_left(conversation.parallel_tool_calls ? most_calls : 1),
        drops_blank(chat_template.replies_start_with_blank() && !conversation.continues_assistant) {
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
    if (in_thought) {
      text = think(text);
      if (in_thought) return;
    }
    if (is_behind_thought) {
      text.remove_prefix(std::min(text.find_first_not_of(white_space), text.size()));
      if (text.empty()) return;
      is_behind_thought = false;
    }
    if (finder && finder->is_inside()) return find(text);
    const std::string certain = stops.feed(text);
    find(certain);
  }

  // Takes what belongs to the thought; returns the rest.
  std::string_view think(std::string_view text) {
    thought += text;
    const std::size_t end = thought.find(thought_closing);
    if (end == std::string::npos) {
      // A line end in front of the closing belongs to it.
      const std::size_t keep = std::max(begun(thought, "\n" + std::string(thought_closing)),
                                        begun(thought, thought_closing));
      emit_thought(thought.size() - keep);
      return {};
    }
    const std::string_view rest =
        text.substr(text.size() - (thought.size() - end - thought_closing.size()));
    thought.resize(end);
    if (thought.ends_with('\n')) thought.pop_back();
    end_thought();
    is_behind_thought = true;
    return rest;
  }

  // Nothing is a thought until there is more than white space.
  void emit_thought(std::size_t length) {
    if (!has_thought) {
      if (thought.find_first_not_of(white_space) >= length) return;
      pieces.push_back({Piece::Kind::thinking_start, {}, {}});
      has_thought = true;
    }
    if (length > 0) pieces.push_back({Piece::Kind::thinking, thought.substr(0, length), {}});
    thought.erase(0, length);
  }

  void end_thought() {
    emit_thought(thought.size());
    if (has_thought) pieces.push_back({Piece::Kind::stop, {}, {}});
    in_thought = false;
  }

  void find(std::string_view text) {
    if (!finder) return say(text);
    std::vector<Finding> findings;
    finder->feed(text, findings);
    take(findings);
  }

  void take(std::vector<Finding>& findings) {
    for (Finding& finding : findings) {
      if (has_all_calls()) return;
      switch (finding.kind) {
        case Finding::Kind::text:
          say(finding.text);
          break;
        case Finding::Kind::call:
          end_text();
          pieces.push_back({Piece::Kind::tool_start, {}, std::move(finding.text)});
          break;
        case Finding::Kind::input:
          pieces.push_back({Piece::Kind::tool_input, std::move(finding.text), {}});
          break;
        case Finding::Kind::end:
          pieces.push_back({Piece::Kind::stop, {}, {}});
          has_called = true;
          --calls_left;
          break;
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

  [[nodiscard]] bool has_all_calls() const { return calls_left == 0; }

  [[nodiscard]] bool is_done() const { return stops.matched() || has_all_calls(); }

  ReplyText reply_text;
  std::string undecoded;
  StopMatcher stops;
  std::optional<CallFinder> finder;
  std::string thought;  // what of it has not been given out
  std::int64_t thinking_tokens = 0;
  bool in_thought, has_thought = false;
  bool is_behind_thought = false;  // and nothing but white space has come
  int calls_left;
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
  if (state_->in_thought) ++state_->thinking_tokens;
  state_->pass_on(state_->decode(state_->reply_text.bytes(token)));
  return std::exchange(state_->pieces, {});
}

std::vector<Piece> ReplyParser::finish() {
  if (!done()) {
    if (!state_->undecoded.empty()) {
      state_->undecoded.clear();
      state_->pass_on(replacement);
    }
    if (state_->in_thought) state_->end_thought();
    state_->find(state_->stops.flush());
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

std::int64_t ReplyParser::thinking_tokens() const {
  return state_->thinking_tokens;
}

bool ReplyParser::done() const {
  return state_->is_done();
}

}  // namespace incipit::gateway
