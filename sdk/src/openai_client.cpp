#include "openai_read.h"
#include "sender.h"

#include <memory>
#include <string>
#include <utility>

namespace incipit::openai {
namespace {

Provider provider() {
  Provider openai{.base_url = "https://api.openai.com/v1",
                  .base_url_variable = "OPENAI_BASE_URL",
                  .api_key_variable = "OPENAI_API_KEY",
                  .auth_token_variable = nullptr,
                  .custom_headers_variable = "OPENAI_CUSTOM_HEADERS",
                  .api_key_is_bearer = true,
                  .sends_version = false,
                  .request_id_header = "x-request-id",
                  .headers = {},
                  .parse_error = parse_api_error};
  const std::pair<const char*, const char*> headers[] = {{"OpenAI-Organization", "OPENAI_ORG_ID"},
                                                         {"OpenAI-Project", "OPENAI_PROJECT_ID"}};
  for (const auto& [name, variable] : headers) {
    if (auto value = environment_variable(variable)) {
      openai.headers.push_back({name, std::move(*value)});
    }
  }
  return openai;
}

Call make_call(std::string_view method, std::string_view path, std::string body) {
  Call call;
  call.method = method;
  call.path = path;
  if (!body.empty()) call.body = std::make_shared<const std::string>(std::move(body));
  return call;
}

}  // namespace

struct Client::State {
  explicit State(ClientOptions options) : sender(std::move(options), provider()) {}

  Sender sender;
};

Client::Client(ClientOptions options) : state_(std::make_shared<State>(std::move(options))) {}

ChatCompletion Client::chat(const ChatRequest& request, const RequestOptions& options) const {
  const RawResponse raw = call("POST", "/chat/completions", to_json(request), options);
  ChatCompletion completion = parse_chat_completion(raw.body);
  completion.request_id = state_->sender.request_id(raw.headers);
  return completion;
}

ChatStream Client::chat_stream(const ChatRequest& request, const RequestOptions& options) const {
  return ChatStream(
      state_->sender.send(make_call("POST", "/chat/completions", to_json(request, true)), options));
}

Response Client::respond(const ResponsesRequest& request, const RequestOptions& options) const {
  const RawResponse raw = call("POST", "/responses", to_json(request), options);
  Response response = parse_response(raw.body);
  response.request_id = state_->sender.request_id(raw.headers);
  return response;
}

ResponseStream Client::respond_stream(const ResponsesRequest& request,
                                      const RequestOptions& options) const {
  return ResponseStream(
      state_->sender.send(make_call("POST", "/responses", to_json(request, true)), options));
}

std::vector<std::string> Client::models(const RequestOptions& options) const {
  const RawResponse raw = call("GET", "/models", {}, options);
  std::vector<std::string> ids;
  for (const JsonPlace& model : JsonObject(JsonPlace::check(raw.body)).at("data").items())
    ids.push_back(JsonObject(model).at("id").string());
  return ids;
}

RawResponse Client::call(std::string_view method, std::string_view path, std::string_view body,
                         const RequestOptions& options) const {
  return state_->sender.send_whole(make_call(method, path, std::string(body)), options);
}

}  // namespace incipit::openai
