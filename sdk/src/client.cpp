#include "client_state.h"
#include "incipit/prompt.h"
#include "json_place.h"
#include "listing.h"
#include "url.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace incipit {
namespace {

// W-46: an hour for 128 000 tokens; more than these need more than ten minutes.
constexpr std::int64_t most_tokens_unstreamed = 128'000 * 600 / 3600;

constexpr std::string_view messages_path = "/v1/messages";

Provider anthropic() {
  return {.base_url = "https://api.anthropic.com",
          .base_url_variable = "ANTHROPIC_BASE_URL",
          .api_key_variable = "ANTHROPIC_API_KEY",
          .auth_token_variable = "ANTHROPIC_AUTH_TOKEN",
          .custom_headers_variable = "ANTHROPIC_CUSTOM_HEADERS",
          .request_id_header = "request-id",
          .parse_error = &parse_api_error};
}

Call post(std::string_view path, std::string body) {
  return {.method = "POST",
          .path = std::string(path),
          .body = std::make_shared<const std::string>(std::move(body))};
}

Call any_call(std::string_view method, std::string_view path, std::string_view body) {
  Call call = post(path, std::string(body));
  call.method = method;
  if (body.empty()) call.body = nullptr;
  return call;
}

bool is_model(std::string_view model, std::string_view id) {
  return model == id || (model.starts_with(id) && model.substr(id.size()).starts_with("-20"));
}

// Source: anthropic-wire sections 14 and 19.6.
void warn_of_deprecation(const Sender& sender, const MessageRequest& request) {
  struct End {
    std::string_view model;
    std::string_view date;
  };

  static constexpr std::array<End, 3> ends = {{{"claude-sonnet-4-5", "2026-11-30"},
                                               {"claude-opus-4-5", "2027-01-22"},
                                               {"claude-mythos-preview", "2026-06-30"}}};
  for (const auto& [model, date] : ends)
    if (is_model(request.model, model))
      sender.log(LogLevel::warn, request.model + " is deprecated; its end is " + std::string(date));
  if (request.thinking && request.thinking->type == Thinking::Type::enabled
      && (is_model(request.model, "claude-opus-4-6")
          || is_model(request.model, "claude-mythos-preview")))
    sender.log(LogLevel::warn, "thinking of type enabled is deprecated on " + request.model
                                   + "; use adaptive with an effort");
}

bool has_explicit_marker(const MessageRequest& request) {
  const auto marked = [](const auto& part) { return part.cache_control.has_value(); };
  return std::any_of(request.tools.begin(), request.tools.end(), marked)
         || std::any_of(request.system.begin(), request.system.end(), marked)
         || std::any_of(
             request.messages.begin(), request.messages.end(), [](const MessageParam& message) {
               return std::any_of(
                   message.content.begin(), message.content.end(),
                   [](const ContentBlock& block) { return block.cache_control().has_value(); });
             });
}

ModelInfo read_model(const JsonPlace& place) {
  const JsonObject model(place);
  return {.id = model.at("id").string(),
          .display_name = model.string_or_empty("display_name"),
          .created_at = model.string_or_empty("created_at"),
          .lifecycle = model.string_or_empty("lifecycle"),
          .max_input_tokens = model.integer("max_input_tokens"),
          .max_tokens = model.integer("max_tokens"),
          .json = place.json()};
}

}  // namespace

Client::State::State(const ClientOptions& options) : given(options), sender(options, anthropic()) {}

Client::Client(ClientOptions options) : state_(std::make_shared<State>(options)) {}

Client Client::with(const std::function<void(ClientOptions&)>& change) const {
  const ClientOptions& old = state_->given;
  ClientOptions options = old;
  change(options);
  const std::shared_ptr<Transport> chosen = options.transport;
  if (chosen == old.transport && options.curl.proxy == old.curl.proxy
      && options.curl.ca_file == old.curl.ca_file)
    options.transport = state_->sender.transport();
  Client client(std::move(options));
  client.state_->given.transport = chosen;
  client.state_->conversations = state_->conversations;
  return client;
}

Message Client::send(const MessageRequest& request, const RequestOptions& options) const {
  if (request.stream) {
    MessageRequest whole = request;
    whole.stream = false;
    return send(whole, options);
  }
  check(request, state_->given.version);
  if (request.max_tokens > most_tokens_unstreamed && !options.timeout && !state_->given.timeout)
    throw PromptError(
        "W-46", "max_tokens",
        "max_tokens: an answer of " + std::to_string(request.max_tokens)
            + " tokens may take more than ten minutes; use stream(), or set a timeout");
  warn_of_deprecation(state_->sender, request);
  const auto started = std::chrono::steady_clock::now();
  const RawResponse response =
      state_->sender.send_whole(post(messages_path, to_json(request)), options);
  Message message = parse_message(response.body);
  message.request_id = state_->sender.request_id(response.headers);
  if (!options.conversation.empty())
    message.cache_miss =
        state_->conversations->note(options.conversation, request, message.usage, started);
  return message;
}

MessageStream Client::stream(const MessageRequest& request, const RequestOptions& options) const {
  const auto streamed = std::make_shared<MessageRequest>(request);
  streamed->stream = true;
  check(*streamed, state_->given.version);
  warn_of_deprecation(state_->sender, *streamed);
  const auto started = std::chrono::steady_clock::now();
  HttpResponse response = state_->sender.send(post(messages_path, to_json(*streamed)), options);
  if (options.conversation.empty()) return MessageStream(std::move(response));
  return MessageStream(std::move(response), [conversations = state_->conversations,
                                             conversation = options.conversation, streamed,
                                             started](Message& message) {
    message.cache_miss = conversations->note(conversation, *streamed, message.usage, started);
  });
}

std::int64_t Client::count_tokens(const MessageRequest& request,
                                  const RequestOptions& options) const {
  // Neither max_tokens nor stream is sent: they must not make the prompt one that is refused.
  MessageRequest counted = request;
  counted.max_tokens = std::numeric_limits<std::int64_t>::max();
  counted.stream = false;
  check(counted, state_->given.version);
  const RawResponse response = state_->sender.send_whole(
      post("/v1/messages/count_tokens", count_tokens_json(request)), options);
  return JsonObject(JsonPlace::check(response.body)).at("input_tokens").integer();
}

Message Client::prewarm(MessageRequest request, const RequestOptions& options) const {
  if (!has_explicit_marker(request))
    throw PromptError("C-30", {},
                      "nothing to warm: mark the end of the prefix with cache_control (the "
                      "automatic marker would fall on the placeholder message)");
  request.max_tokens = 0;
  if (request.messages.empty()) {
    request.messages.push_back({MessageRole::user, {TextBlock{"warm-up"}}});
    request.cache_control.reset();  // it would write an entry that ends with the placeholder
  }
  return send(request, options);
}

Paged<ModelInfo> Client::models(const ListOptions& list, const RequestOptions& options) const {
  return first_page(State::sender_of(state_), "/v1/models", list, options, &read_model);
}

ModelInfo Client::model(std::string_view id, const RequestOptions& options) const {
  const RawResponse response =
      call("GET", "/v1/models/" + path_segment(id, "the model id"), {}, options);
  return read_model(JsonPlace::check(response.body));
}

RawResponse Client::call(std::string_view method, std::string_view path, std::string_view body,
                         const RequestOptions& options) const {
  return state_->sender.send_whole(any_call(method, path, body), options);
}

HttpResponse Client::open(std::string_view method, std::string_view path, std::string_view body,
                          const RequestOptions& options) const {
  return state_->sender.send(any_call(method, path, body), options);
}

}  // namespace incipit
