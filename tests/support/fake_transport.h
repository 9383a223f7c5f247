// A transport that answers by a script without any network and keeps what it was asked; time that
// passes only on paper; an environment for the length of a test.
#pragma once

#include "incipit/client.h"
#include "sdk/src/retry.h"
#include "sdk/src/sender.h"

#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace incipit::testing {

// Hands out `pieces`, then throws `failure` if there is one.
class ScriptedBody : public HttpBody {
 public:
  explicit ScriptedBody(std::vector<std::string> pieces,
                        std::optional<TransportError> failure = std::nullopt,
                        std::shared_ptr<bool> closed = nullptr)
      : pieces_(std::move(pieces)), failure_(std::move(failure)), closed_(std::move(closed)) {}

  ~ScriptedBody() override {
    if (closed_) *closed_ = true;
  }

  std::string_view read() override {
    if (next_ < pieces_.size()) return pieces_[next_++];
    if (failure_) throw *failure_;
    return {};
  }

 private:
  std::vector<std::string> pieces_;
  std::optional<TransportError> failure_;
  std::shared_ptr<bool> closed_;
  std::size_t next_ = 0;
};

inline HttpResponse response(int status, std::string body = {},
                             std::vector<HttpHeader> headers = {}) {
  return {status, std::move(headers),
          std::make_unique<ScriptedBody>(std::vector<std::string>{std::move(body)})};
}

class FakeTransport : public Transport {
 public:
  using Answer = std::function<HttpResponse(const HttpRequest&)>;

  // The next request is answered so.
  FakeTransport& then(Answer answer) {
    answers_.push_back(std::move(answer));
    return *this;
  }

  FakeTransport& answer(int status, std::string body = {}, std::vector<HttpHeader> headers = {}) {
    return then([=](const HttpRequest&) { return response(status, body, headers); });
  }

  FakeTransport& fail(TransportError::Kind kind, bool retry_is_safe = true) {
    return then([=](const HttpRequest&) -> HttpResponse {
      throw TransportError(kind, "the network failed", retry_is_safe);
    });
  }

  // All requests without an answer of their own are answered so.
  FakeTransport& always(Answer answer) {
    always_ = std::move(answer);
    return *this;
  }

  HttpResponse start(const HttpRequest& request) override {
    Answer answer;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      answer = always_;
      if (!answers_.empty()) {
        answer = std::move(answers_.front());
        answers_.pop_front();
      }
    }
    if (!answer) throw std::logic_error("a request that the test did not expect: " + request.url);
    return answer(request);
  }

  // Read once no request is under way.
  [[nodiscard]] const std::vector<HttpRequest>& requests() const { return requests_; }

  [[nodiscard]] const HttpRequest& request(std::size_t index = 0) const {
    return requests_.at(index);
  }

 private:
  std::mutex mutex_;
  std::deque<Answer> answers_;
  Answer always_;
  std::vector<HttpRequest> requests_;
};

// The header's value; "(none)" when it is not sent.
inline std::string header(const HttpRequest& request, std::string_view name) {
  const std::string* value = find_header(request.headers, name);
  return value == nullptr ? "(none)" : *value;
}

// What `Client` tells its sender.
inline Provider messages_provider() {
  return {.base_url = "https://api.anthropic.com",
          .base_url_variable = "ANTHROPIC_BASE_URL",
          .api_key_variable = "ANTHROPIC_API_KEY",
          .auth_token_variable = "ANTHROPIC_AUTH_TOKEN",
          .custom_headers_variable = "ANTHROPIC_CUSTOM_HEADERS",
          .request_id_header = "request-id",
          .parse_error = &parse_api_error};
}

// Waits pass at once and are noted.
struct PaperTime {
  std::vector<int> waits = {};  // ms
  double random = 0;
  std::chrono::system_clock::time_point now = {};

  [[nodiscard]] Waiting waiting() {
    return {.wait =
                [this](std::chrono::milliseconds time, const std::stop_token&) {
                  waits.push_back(static_cast<int>(time.count()));
                  return true;
                },
            .now = [this] { return now; },
            .random = [this] { return random; }};
  }
};

// Sets variables, and unsets those of the SDK that are not given, until it is destroyed. Not for
// tests with threads.
class Environment {
 public:
  explicit Environment(std::initializer_list<std::pair<const char*, const char*>> variables = {}) {
    for (const char* name : {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
                             "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_API_KEY", "OPENAI_BASE_URL",
                             "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name,
                           value == nullptr ? std::nullopt : std::optional<std::string>(value));
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables)
      ::setenv(name, value, 1);
  }

  ~Environment() {
    for (const auto& [name, value] : before_) {
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
  }

  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

}  // namespace incipit::testing
