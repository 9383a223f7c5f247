// Random requests through the gateway's parser, encoder and ledger, and through an oracle
// that reads the same JSON text by the rules of the specification. They must agree on every error
// and on every counter.
#include "usage_oracle.h"

#include "gateway/api/anthropic_request.h"
#include "gateway/api/error.h"
#include "gateway/api/signature.h"
#include "gateway/cache/ledger.h"
#include "gateway/model/checkpoint.h"
#include "gateway/prompt/chat_template.h"
#include "gateway/prompt/encode.h"
#include "gateway/prompt/tokenizer.h"
#include "request_source.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace incipit::oracle {
namespace {

using namespace incipit::gateway;

// The gateway without its engine and its socket.
class Served {
 public:
  explicit Served(bool settings_first) : checkpoint_(open_checkpoint("tiny")) {
    context_.local_model = "tiny";
    context_.settings_before_tools = settings_first;
  }

  [[nodiscard]] EncodedPrompt prompt(const MessagesRequest& request) const {
    return encode(request.conversation, template_, tokenizer_);
  }

  // `content` becomes what a thought of the reply is signed for.
  [[nodiscard]] CachePlan lookup(const std::string& body, const Workspace& workspace,
                                 std::int64_t now, PrefixKey& content) {
    const MessagesRequest request = parse_messages(body, context_);
    content = request.content_key;
    return ledger_.lookup({workspace.organization, workspace.name}, request.conversation.model,
                          prompt(request).boundaries, at(now));
  }

  [[nodiscard]] Counters settle(const CachePlan& plan, std::int64_t now) {
    return counters(ledger_.settle(plan, plan.prompt_tokens, at(now)));
  }

  [[nodiscard]] std::int64_t count(const std::string& body) const {
    return static_cast<std::int64_t>(prompt(parse_count_tokens(body, context_)).tokens.size());
  }

  static Counters counters(const Usage& usage) {
    return {usage.input_tokens, usage.cache_creation_5m, usage.cache_creation_1h,
            usage.cache_read_input_tokens};
  }

  void check_integrity() const {
    ledger_.check_integrity();
    CHECK(ledger_.entries_lost() == 0);
  }

 private:
  static TimePoint at(std::int64_t milliseconds) {
    return TimePoint{} + std::chrono::milliseconds(milliseconds);
  }

  std::unique_ptr<Checkpoint> checkpoint_;
  Tokenizer tokenizer_{checkpoint_->tokenizer()};
  ChatTemplate template_{checkpoint_->config(), checkpoint_->tokenizer()};
  RequestContext context_;
  Ledger ledger_;
};

std::string text_of(const Counters& counters) {
  return "input " + std::to_string(counters.input) + ", write_5m "
         + std::to_string(counters.write_5m) + ", write_1h " + std::to_string(counters.write_1h)
         + ", read " + std::to_string(counters.read);
}

std::string text_of(const std::vector<Complaint>& complaints) {
  std::string text;
  for (const Complaint& complaint : complaints) {
    text += (text.empty() ? "" : "\n      or ") + std::to_string(complaint.status) + " "
            + complaint.text + (complaint.is_whole ? "" : "…");
  }
  return text;
}

bool is_expected(const gateway::ApiError& error, const std::vector<Complaint>& complaints) {
  const std::string_view text = error.what();
  return std::ranges::any_of(complaints, [&](const Complaint& complaint) {
    return error.status == complaint.status && error.type == complaint.type
           && (complaint.is_whole ? text == complaint.text : text.starts_with(complaint.text));
  });
}

// One run of requests, until its end or the first disagreement.
class Comparison {
 public:
  // Every third run has the switch of C-53 thrown.
  explicit Comparison(std::uint64_t seed)
      : seed_(seed), source_(seed), served_(seed % 3 == 0), oracle_(seed % 3 == 0) {}

  // How many requests were compared; 0 once they differ.
  int step() {
    const Step step = source_.next();
    now_ += step.advance;
    // The state of earlier requests of this workspace, for the report.
    std::vector<Asked> asked;
    for (const std::string& body : step.bodies) {
      remember(step, body);
      const bool agree = step.only_counts ? count(body) : ask(step, body, asked);
      if (!agree) return 0;
    }
    if (step.fails) asked.clear();
    if (step.session >= 0 && !asked.empty()) {
      const std::string thought = "thought " + std::to_string(++thoughts);
      source_.replied(step.session, thought, sign_thought(thought, asked.front().content, true));
    }
    for (const Asked& each : asked) {
      oracle_.respond(each.verdict.pending);
      const Counters told = served_.settle(each.plan, now_);
      if (told != each.verdict.usage) return report(text_of(each.verdict.usage), text_of(told));
    }
    return static_cast<int>(step.bodies.size());
  }

  void finish() const { served_.check_integrity(); }

  int errors = 0, reads = 0, writes = 0, thoughts = 0;
  std::map<std::string, int> error_texts;

 private:
  struct Asked {
    Verdict verdict;
    CachePlan plan;
    PrefixKey content;
  };

  bool ask(const Step& step, const std::string& body, std::vector<Asked>& asked) {
    Verdict verdict = oracle_.ask(body, step.workspace, now_);
    try {
      PrefixKey content;
      CachePlan plan = served_.lookup(body, step.workspace, now_, content);
      const Counters told = Served::counters(plan.usage);
      if (!verdict.complaints.empty()) return report(text_of(verdict.complaints), text_of(told));
      if (told != verdict.usage) return report(text_of(verdict.usage), text_of(told));
      reads += told.read > 0 ? 1 : 0;
      writes += told.write_5m + told.write_1h > 0 ? 1 : 0;
      asked.push_back({std::move(verdict), std::move(plan), content});
      return true;
    } catch (const gateway::ApiError& error) {
      ++errors;
      ++error_texts[std::string(error.what()).substr(0, 40)];
      if (is_expected(error, verdict.complaints)) return true;
      const std::string expected =
          verdict.complaints.empty() ? text_of(verdict.usage) : text_of(verdict.complaints);
      return report(expected, std::to_string(error.status) + " " + error.what());
    }
  }

  bool count(const std::string& body) {
    // A body without max_tokens that is otherwise complete.
    std::string whole = body;
    whole.insert(body.find('{') + 1, "\"max_tokens\":4000,");
    boost::json::value document = boost::json::parse(whole);
    const std::vector<Complaint> complaints = complaints_of(document.as_object());
    try {
      const std::int64_t told = served_.count(body);
      if (!complaints.empty()) return report(text_of(complaints), std::to_string(told));
      const std::int64_t expected = oracle_.count(body);
      return told == expected || report(std::to_string(expected), std::to_string(told));
    } catch (const gateway::ApiError& error) {
      ++errors;
      return is_expected(error, complaints)
             || report(text_of(complaints), std::to_string(error.status) + " " + error.what());
    }
  }

  void remember(const Step& step, const std::string& body) {
    last_.push_back("t=" + std::to_string(now_) + " ms " + step.workspace.organization + "/"
                    + step.workspace.name + (step.only_counts ? " count_tokens " : " ") + body);
    if (last_.size() > 4) last_.pop_front();
  }

  bool report(const std::string& expected, const std::string& told) const {
    std::string story = "seed " + std::to_string(seed_) + ", the last requests:";
    for (const std::string& body : last_)
      story += "\n  " + body;
    MESSAGE(story);
    MESSAGE("expected " << expected << "\n  gateway  " << told);
    return false;
  }

  std::uint64_t seed_;
  RequestSource source_;
  Served served_;
  UsageOracle oracle_;
  std::int64_t now_ = 1'000'000;
  std::deque<std::string> last_;
};

// Sanitizers make each request ten times as slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int wanted = 10'000;
#else
constexpr int wanted = 100'000;
#endif

TEST_CASE("random requests get the errors and the counters that the rules say") {
  constexpr int per_seed = 2'500;
  int compared = 0, errors = 0, reads = 0, writes = 0, thoughts = 0;
  std::map<std::string, int> error_texts;
  for (std::uint64_t seed = 1; compared < wanted; ++seed) {
    Comparison comparison(seed);
    for (int done = 0; done < per_seed;) {
      const int more = comparison.step();
      REQUIRE(more > 0);
      done += more;
      compared += more;
    }
    comparison.finish();
    errors += comparison.errors;
    reads += comparison.reads;
    writes += comparison.writes;
    thoughts += comparison.thoughts;
    error_texts.merge(comparison.error_texts);
  }
  // Otherwise the agreement would mean little.
  CHECK(compared >= wanted);
  CHECK(reads > wanted / 5);
  CHECK(writes > wanted / 5);
  CHECK(thoughts > wanted / 10);
  CHECK(errors > wanted / 100);
  CHECK(errors < wanted / 4);
  CHECK(error_texts.size() > 30);
}

}  // namespace
}  // namespace incipit::oracle
