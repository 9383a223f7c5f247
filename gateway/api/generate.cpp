#include "gateway/api/generate.h"

#include "gateway/api/anthropic_betas.h"
#include "gateway/api/anthropic_reply.h"
#include "gateway/prompt/encode.h"
#include "gateway/prompt/reply_parser.h"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include <cstring>
#include <random>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;
using SteadyTime = std::chrono::steady_clock::time_point;

// W-29: how long a stream may stay silent while tokens come but show nothing yet.
constexpr std::chrono::seconds ping_after{15};

// Workspaces never share KV: a reply's speed must not tell what another one asked.
Digest kv_salt(const Scope& scope) {
  PrefixHasher hasher;
  hasher.add(scope.organization);
  hasher.add(scope.workspace);
  const PrefixKey key = hasher.key();
  Digest salt{};
  std::memcpy(salt.data(), &key.high, sizeof key.high);
  std::memcpy(salt.data() + sizeof key.high, &key.low, sizeof key.low);
  return salt;
}

std::uint64_t random_seed() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

void check_length(std::size_t tokens, int context) {
  if (tokens > static_cast<std::size_t>(context)) {
    throw invalid_request(
        fmt::format("prompt is too long: {} tokens > {} maximum", tokens, context));
  }
  if (tokens == static_cast<std::size_t>(context)) {
    throw invalid_request(fmt::format(
        "prompt is too long: {} tokens fill the context of {} and leave no room for an answer",
        tokens, context));
  }
}

// Tokens per second of decoding; the first one is prefill's.
std::optional<double> rate(std::int64_t produced, SteadyTime first_token) {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - first_token;
  if (produced < 2 || spent.count() <= 0) return std::nullopt;
  return static_cast<double>(produced - 1) / spent.count();
}

// The last prompt token is computed again for its logits; that does not make a read shorter.
int settled_reuse(int reused_tokens, int prompt_tokens) {
  return reused_tokens >= prompt_tokens - 1 ? prompt_tokens : reused_tokens;
}

double milliseconds_between(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

ApiError overloaded(const std::string& message, int retry_after) {
  ApiError error(529, "overloaded_error", message);
  error.retry_after = retry_after;
  return error;
}

std::shared_ptr<TokenGuide> guide_of(const Conversation& conversation, const Services& services) {
  try {
    return services.guides.guide(conversation);
  } catch (const constrain::SchemaError& error) {
    throw invalid_request((error.path.empty() ? "tools" : error.path) + ": " + error.what());
  } catch (const constrain::ShapeError& error) {
    throw invalid_request(std::string("the loaded model cannot write such a reply: ")
                          + error.what());
  }
}

// All but the tokens.
GenerationRequest generation_of(const Conversation& conversation, const CachePlan& plan,
                                const Scope& scope, const Services& services) {
  GenerationRequest generation;
  generation.max_tokens = conversation.max_tokens;
  generation.sampling = conversation.sampling;
  if (generation.sampling.seed == 0) generation.sampling.seed = random_seed();
  generation.stop_tokens = services.chat_template.stop_tokens(services.tokenizer);
  generation.salt = kv_salt(scope);
  generation.protections = plan.protections;
  generation.guide = guide_of(conversation, services);
  return generation;
}

// Usage is fixed here, at the end of prefill (C-58).
void settle(Services& services, const CachePlan& plan, int reused_tokens, RequestRecord& record) {
  record.usage = services.ledger.settle(plan, settled_reuse(reused_tokens, plan.prompt_tokens),
                                        services.clock.now());
  record.kv_reused = reused_tokens;
  record.generated = true;
}

// Takes what was generated from the organization's output tokens, however the request ends.
struct OutputCharge {
  OutputCharge(Services& of, const Scope& who, const RequestRecord& what)
      : services(of), scope(who), record(what) {}

  OutputCharge(const OutputCharge&) = delete;
  OutputCharge& operator=(const OutputCharge&) = delete;

  Services& services;
  const Scope& scope;
  const RequestRecord& record;

  ~OutputCharge() {
    services.limits.charge_output(scope.organization, record.model, record.usage.output_tokens,
                                  services.clock.now());
  }
};

// Throws what an ending means that is not an answer.
void throw_unless_answered(const TokenEvent& end, RequestRecord& record) {
  switch (end.reason) {
    case FinishReason::cancelled:
      throw PeerGone{};
    case FinishReason::failed:
      record.error = end.message;
      throw ApiError(500, "api_error", "Internal server error");
    case FinishReason::shutdown:
      throw overloaded("The gateway is shutting down", 5);
    case FinishReason::stop_token:
    case FinishReason::complete:
    case FinishReason::max_tokens:
    case FinishReason::context_full:
      return;
  }
}

StopState stop_state(const ReplyParser& parser, FinishReason reason) {
  if (parser.stop_sequence()) return {"stop_sequence", *parser.stop_sequence()};
  if (reason == FinishReason::max_tokens) return {"max_tokens", {}};
  if (reason == FinishReason::context_full) return {"model_context_window_exceeded", {}};
  return {parser.called_tools() ? "tool_use" : "end_turn", {}};
}

// The facts of the log line that are known when the head goes out.
std::string cache_header(const RequestRecord& record) {
  const Usage& usage = record.usage;
  std::string text = fmt::format(
      "model={}; prompt={}; read={}; written-5m={}; written-1h={}; plain={}; reused={}",
      record.model, usage.prompt_tokens(), usage.cache_read_input_tokens, usage.cache_creation_5m,
      usage.cache_creation_1h, usage.input_tokens, record.kv_reused);
  if (record.ttft_ms) text += fmt::format("; ttft-ms={:.1f}", *record.ttft_ms);
  if (record.usage.output_tokens > 0) text += fmt::format("; output={}", usage.output_tokens);
  if (record.tokens_per_second) {
    text += fmt::format("; tokens-per-second={:.1f}", *record.tokens_per_second);
  }
  return text;
}

Response answer_head(Services& services, const Scope& scope, const RequestRecord& record) {
  Response response;
  add_account_headers(response, services, scope, record.model);
  response.headers.emplace_back("incipit-cache", cache_header(record));
  return response;
}

}  // namespace

RequestContext request_context(const HttpRequest& request, Services& services, const Scope& scope) {
  RequestContext context;
  const std::string* version = request.header("anthropic-version");
  context.version_2026_10_21 = version != nullptr && *version != "2023-06-01";  // W-6
  context.betas = betas_of(request);
  context.local_model = services.local_model;
  context.keep_billing_line = services.keep_billing_line;
  context.settings_before_tools = services.settings_before_tools;
  const std::string* detail = request.header("incipit-diagnostics");
  context.detailed_diagnostics = detail != nullptr && *detail == "detail";
  context.find_file = [&services, scope](std::string_view id) -> std::optional<FoundFile> {
    const std::optional<StoredFile> file = services.files.find(scope, id);
    if (!file || !file->content) return std::nullopt;
    return FoundFile{file->mime_type, *file->content};
  };
  context.count_tokens = [&services](const Conversation& conversation) {
    const EncodedPrompt prompt = encode(conversation, services.chat_template, services.tokenizer);
    return static_cast<int>(prompt.tokens.size());
  };
  return context;
}

namespace {

// One request from its values to its answer.
class Run {
 public:
  Run(MessagesRequest parsed, Services& services, const Scope& scope, RequestRecord& record,
      std::string_view service_tier)
      : parsed_(std::move(parsed)),
        services_(services),
        scope_(scope),
        record_(record),
        service_tier_(service_tier) {
    record_.model = parsed_.model;
    record_.dropped_billing_lines = parsed_.dropped_billing_lines;
  }

  // Until its prefill has ended and its usage is settled.
  asio::awaitable<void> start(TimePoint arrived, SteadyTime received) {
    received_ = received;
    const Conversation& conversation = parsed_.conversation;
    EncodedPrompt prompt = encode(conversation, services_.chat_template, services_.tokenizer);
    check_length(prompt.tokens.size(), services_.model.context);
    const CachePlan plan =
        services_.ledger.lookup(scope_, conversation.model, std::move(prompt.boundaries), arrived);
    if (service_tier_ != "batch") {  // batches have limits of their own (section 12)
      services_.limits.admit(scope_.organization, record_.model,
                             plan.prompt_tokens - plan.usage.cache_read_input_tokens,
                             services_.clock.now());
      charge_.emplace(services_, scope_, record_);
    }
    GenerationRequest generation = generation_of(conversation, plan, scope_, services_);
    generation.tokens = std::move(prompt.tokens);
    const auto executor = co_await asio::this_coro::executor;
    tokens_ = services_.engine.submit(std::move(generation), executor);
    if (!tokens_) throw overloaded("Overloaded: the queue of waiting requests is full", 2);

    const TokenEvent event = co_await tokens_->next();
    if (event.kind != TokenEvent::Kind::started) {
      throw_unless_answered(event, record_);
      throw std::logic_error("the engine ended a request as answered before its prefill did");
    }
    settle(services_, plan, event.reused_tokens, record_);
    first_token_ = std::chrono::steady_clock::now();
    record_.ttft_ms = milliseconds_between(received_, first_token_);
  }

  // Once: the request is then known under the id of its message.
  [[nodiscard]] ReplyFacts facts() {
    std::string id = make_id("msg_01");
    std::string diagnostics =
        services_.diagnostics.diagnose(scope_, parsed_, id, record_.usage.prompt_tokens());
    return {.model = parsed_.model,
            .message_id = std::move(id),
            .usage = record_.usage,
            .service_tier = service_tier_,
            .inference_geo = parsed_.values.inference_geo.value_or("global"),
            .speed = parsed_.values.speed.value_or(""),
            .diagnostics = std::move(diagnostics),
            .context_management = parsed_.context_management,
            .input_transformations = parsed_.input_transformations,
            .bound_to = parsed_.content_key,
            .shows_thinking = parsed_.conversation.thinking.is_shown};
  }

  // What the next token adds to the answer, perhaps nothing yet. Empty: there is no next token.
  asio::awaitable<std::optional<std::vector<Piece>>> next() {
    if (parser_.done()) co_return std::nullopt;
    TokenEvent event = co_await tokens_->next();
    if (event.kind == TokenEvent::Kind::finished) {
      end_ = std::move(event);
      throw_unless_answered(*end_, record_);
      co_return std::nullopt;
    }
    if (++record_.usage.output_tokens == 1) {
      first_token_ = std::chrono::steady_clock::now();
      record_.ttft_ms = milliseconds_between(received_, first_token_);
    }
    co_return parser_.feed(event.token);
  }

  // Behind the last token: what the parser held back, and the final state.
  struct End {
    std::vector<Piece> rest;
    StopState stop;
    OutputTokens tokens;
  };

  End end() {
    tokens_.reset();  // what the engine may still compute past a stop sequence is not wanted
    // The token that ends the turn is generated too, though never delivered.
    if (end_ && end_->reason == FinishReason::stop_token) ++record_.usage.output_tokens;
    record_.tokens_per_second = rate(record_.usage.output_tokens, first_token_);
    End end;
    end.rest = parser_.finish();
    end.stop = stop_state(parser_, end_ ? end_->reason : FinishReason::stop_token);
    end.tokens = {record_.usage.output_tokens, parser_.thinking_tokens()};
    return end;
  }

 private:
  MessagesRequest parsed_;
  Services& services_;
  const Scope& scope_;
  RequestRecord& record_;
  std::string_view service_tier_;
  std::optional<OutputCharge> charge_;
  ReplyParser parser_{parsed_.conversation, services_.chat_template, services_.tokenizer};
  std::optional<TokenStream> tokens_;
  std::optional<TokenEvent> end_;
  SteadyTime received_, first_token_;
};

asio::awaitable<std::string> whole_body(Run& run) {
  AnthropicReply answer(run.facts());
  while (const auto pieces = co_await run.next())
    answer.collect(*pieces);
  const Run::End end = run.end();
  answer.collect(end.rest);
  co_return answer.body(end.stop, end.tokens);
}

asio::awaitable<void> stream(Run& run, Reply& reply, Response head, RequestRecord& record) {
  AnthropicReply answer(run.facts());
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers.emplace_back("cache-control", "no-cache");
  head.body = answer.begin(1);  // one token at least will follow
  record.status = 200;
  co_await reply.begin(std::move(head));
  SteadyTime last_write = std::chrono::steady_clock::now();
  while (const auto pieces = co_await run.next()) {
    const SteadyTime now = std::chrono::steady_clock::now();
    if (!pieces->empty()) {
      last_write = now;
      co_await reply.write(answer.pieces(*pieces));
    } else if (now - last_write >= ping_after) {
      last_write = now;
      co_await reply.write(AnthropicReply::ping());
    }
  }
  const Run::End end = run.end();
  std::string last = answer.pieces(end.rest);
  co_await reply.finish(last + answer.end(end.stop, end.tokens));
}

}  // namespace

asio::awaitable<void> generate(const HttpRequest& request, Reply& reply, Services& services,
                               const Scope& scope, RequestRecord& record) {
  MessagesRequest parsed = parse_messages(request.body, request_context(request, services, scope));
  const bool streams = parsed.stream;
  Run run(std::move(parsed), services, scope, record, "standard");
  co_await run.start(request.arrived, request.received);
  if (streams) {
    co_await stream(run, reply, answer_head(services, scope, record), record);
    co_return;
  }
  std::string body = co_await whole_body(run);
  record.status = 200;
  Response response = answer_head(services, scope, record);
  response.body = std::move(body);
  co_await reply.send(std::move(response));
}

asio::awaitable<std::string> run_in_batch(MessagesRequest parsed, TimePoint arrived,
                                          Services& services, const Scope& scope,
                                          RequestRecord& record) {
  Run run(std::move(parsed), services, scope, record, "batch");
  co_await run.start(arrived, std::chrono::steady_clock::now());
  co_return co_await whole_body(run);
}

}  // namespace incipit::gateway
