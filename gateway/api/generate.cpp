#include "gateway/api/generate.h"

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

RequestContext request_context(const HttpRequest& request, const Services& services) {
  RequestContext context;
  const std::string* version = request.header("anthropic-version");
  context.version_2026_10_21 = version != nullptr && *version != "2023-06-01";  // W-6
  for (const auto& [name, value] : request.headers) {
    if (name != "anthropic-beta") continue;
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const std::size_t first = value.find_first_not_of(" \t", begin);
      if (first < end) {
        const std::size_t last = value.find_last_not_of(" \t", end - 1);
        context.betas.push_back(value.substr(first, last + 1 - first));
      }
      begin = end + 1;
    }
  }
  context.local_model = services.local_model;
  context.local_tools = services.chat_template.supports_tools();
  context.keep_billing_line = services.keep_billing_line;
  return context;
}

asio::awaitable<void> generate(const HttpRequest& request, Reply& reply, Services& services,
                               const Scope& scope, RequestRecord& record) {
  MessagesRequest parsed = parse_messages(request.body, request_context(request, services));
  const Conversation& conversation = parsed.conversation;
  record.model = parsed.model;
  record.dropped_billing_lines = parsed.dropped_billing_lines;
  EncodedPrompt prompt = encode(conversation, services.chat_template, services.tokenizer);
  check_length(prompt.tokens.size(), services.model.context);
  const CachePlan plan = services.ledger.lookup(scope, conversation.model,
                                                std::move(prompt.boundaries), request.arrived);

  services.limits.admit(scope.organization, record.model,
                        plan.prompt_tokens - plan.usage.cache_read_input_tokens,
                        services.clock.now());
  const OutputCharge charge{services, scope, record};
  GenerationRequest generation = generation_of(conversation, plan, scope, services);
  generation.tokens = std::move(prompt.tokens);
  const auto executor = co_await asio::this_coro::executor;
  std::optional<TokenStream> tokens = services.engine.submit(std::move(generation), executor);
  if (!tokens) throw overloaded("Overloaded: the queue of waiting requests is full", 2);

  TokenEvent event = co_await tokens->next();
  if (event.kind != TokenEvent::Kind::started) {
    throw_unless_answered(event, record);
    throw std::logic_error("the engine ended a request as answered before its prefill did");
  }
  settle(services, plan, event.reused_tokens, record);
  SteadyTime first_token = std::chrono::steady_clock::now();
  record.ttft_ms = milliseconds_between(request.received, first_token);

  ReplyParser parser(conversation, services.chat_template, services.tokenizer);
  AnthropicReply answer(parsed.model, make_id("msg_01"), record.usage);
  SteadyTime last_write = first_token;
  if (parsed.stream) {
    Response head = answer_head(services, scope, record);
    head.content_type = "text/event-stream; charset=utf-8";
    head.headers.emplace_back("cache-control", "no-cache");
    head.body = answer.begin(1);  // one token at least will follow
    record.status = 200;
    co_await reply.begin(std::move(head));
  }

  std::int64_t produced = 0;
  while (!parser.done()) {
    event = co_await tokens->next();
    if (event.kind == TokenEvent::Kind::finished) break;
    const SteadyTime now = std::chrono::steady_clock::now();
    if (++produced == 1) {
      first_token = now;
      record.ttft_ms = milliseconds_between(request.received, now);
    }
    record.usage.output_tokens = produced;
    const std::vector<Piece> pieces = parser.feed(event.token);
    if (!parsed.stream) {
      answer.collect(pieces);
    } else if (!pieces.empty()) {
      last_write = now;
      co_await reply.write(answer.pieces(pieces));
    } else if (now - last_write >= ping_after) {
      last_write = now;
      co_await reply.write(AnthropicReply::ping());
    }
  }
  const bool ended = event.kind == TokenEvent::Kind::finished;
  if (ended) throw_unless_answered(event, record);
  tokens.reset();  // what the engine may still compute past a stop sequence is not wanted
  // The token that ends the turn is generated too, though never delivered.
  if (ended && event.reason == FinishReason::stop_token) ++produced;
  record.usage.output_tokens = produced;
  record.tokens_per_second = rate(produced, first_token);

  const std::vector<Piece> rest = parser.finish();
  const StopState stop = stop_state(parser, ended ? event.reason : FinishReason::stop_token);
  record.status = 200;
  if (parsed.stream) {
    std::string last = answer.pieces(rest);
    co_await reply.finish(last + answer.end(stop, produced));
  } else {
    answer.collect(rest);
    Response response = answer_head(services, scope, record);
    response.body = answer.body(stop, produced);
    co_await reply.send(std::move(response));
  }
}

}  // namespace incipit::gateway
