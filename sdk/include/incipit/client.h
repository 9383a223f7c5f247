// The Messages API over HTTP, as the official SDKs speak it.
// Source: anthropic-wire sections 1-3, 13-16 and 19 (rule ids W-n in docs/sdk.md).
#pragma once

#include "incipit/anthropic.h"
#include "incipit/page.h"
#include "incipit/stream.h"
#include "incipit/transport.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace incipit {

// A header to send; without a value, one that is not to be sent.
struct HeaderOption {
  std::string name = {};
  std::optional<std::string> value = {};
};

using Query = std::vector<std::pair<std::string, std::string>>;

enum class LogLevel : std::uint8_t { error, warn, info, debug };

// What waiting between attempts needs of the world, for tests to hold in their hands.
struct Waiting {
  // Returns early, with false, once a stop was requested (W-44). Empty: really waits.
  std::function<bool(std::chrono::milliseconds, const std::stop_token&)> wait = {};
  // For `retry-after` dates. Empty: the system clock.
  std::function<std::chrono::system_clock::time_point()> now = {};
  // In [0, 1), for the jitter. Empty: a random engine.
  std::function<double()> random = {};
};

// Unset options come from the environment when the client is made: ANTHROPIC_API_KEY,
// ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL, ANTHROPIC_CUSTOM_HEADERS (a `Name: value` per line).
// Values are trimmed, and empty means unset. With any credential here, the environment's are not
// looked at.
struct ClientOptions {
  std::optional<std::string> api_key = {};     // sent as x-api-key
  std::optional<std::string> auth_token = {};  // sent as a bearer token
  // A bearer token asked for at each request, from the calling thread. Asked again with `true`
  // after a 401, once; what it throws ends the request (W-49).
  std::function<std::string(bool refresh)> token_provider = {};
  std::optional<std::string> base_url =
      {};  // "https://api.anthropic.com"; a path is kept as a prefix
  std::string version =
      "2026-10-21";  // anthropic-version; "2023-06-01" still takes temperature (W-4)
  std::vector<std::string> betas = {};  // anthropic-beta, joined with those of a request
  // In the place of the SDK's own; a request's go before these. One named Authorization or
  // x-api-key is a credential, or without a value says that none is wanted. anthropic-beta is
  // joined instead.
  std::vector<HeaderOption> headers = {};
  Query query = {};
  int max_retries = 2;
  // Until the headers of an attempt have come, then for each wait for more (W-45). Unset: 10
  // minutes, and the guard of W-46.
  std::optional<std::chrono::milliseconds> timeout = {};
  CurlOptions curl = {};
  std::shared_ptr<Transport> transport = {};  // instead of curl
  std::vector<Middleware> middleware = {};
  Waiting waiting = {};
  // One line each; keys and prompt text never appear. Called from the thread that makes the
  // request.
  std::function<void(LogLevel, std::string_view)> log = {};
};

struct RequestOptions {
  std::vector<HeaderOption> headers = {};
  Query query = {};
  std::vector<std::string> betas = {};
  std::optional<int> max_retries = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::stop_token stop = {};  // requested: TransportError, kind `cancelled`, at the next wait
  std::vector<Middleware> middleware = {};  // inside the client's
  std::optional<std::string> base_url = {};
  // A name for the conversation that the request belongs to. The client keeps the fingerprint of
  // its last request (the newest 64 conversations, some bytes per byte of prompt) and fills in
  // `Message::cache_miss` when this one read less from the cache than that one left there. Empty:
  // nothing is kept.
  std::string conversation = {};
};

struct RawResponse {
  int status = 0;
  std::vector<HttpHeader> headers = {};
  std::string body = {};
};

struct ModelInfo {
  std::string id = {};
  std::string display_name = {};
  std::string created_at = {};  // RFC 3339
  std::string lifecycle = {};   // active, deprecated, retired; empty when not said
  std::optional<std::int64_t> max_input_tokens = {};
  std::optional<std::int64_t> max_tokens = {};
  JsonText json = {};  // all of it, capabilities too
};

// Which page of a list. At most one of the two ids.
struct ListOptions {
  std::string after_id = {};
  std::string before_id = {};
  int limit = 0;  // 0: the server's default
};

struct BatchRequest {
  std::string custom_id = {};  // ^[a-zA-Z0-9_-]{1,64}$, unique in the batch
  MessageRequest params;
};

struct MessageBatch {
  std::string id = {};
  std::string processing_status = {};  // in_progress, canceling, ended
  std::int64_t processing = 0;
  std::int64_t succeeded = 0;
  std::int64_t errored = 0;
  std::int64_t canceled = 0;
  std::int64_t expired = 0;
  std::string created_at = {};
  std::string expires_at = {};
  std::string ended_at = {};     // empty until it has
  std::string results_url = {};  // empty until it has
  JsonText json = {};
};

struct BatchResult {
  std::string custom_id = {};
  std::string type = {};                // succeeded, errored, canceled, expired
  std::optional<Message> message = {};  // succeeded
  std::optional<ApiError> error = {};   // errored
  JsonText json = {};
};

struct FileMetadata {
  std::string id = {};
  std::string filename = {};
  std::string mime_type = {};
  std::int64_t size_bytes = 0;
  std::string created_at = {};
  bool downloadable = false;
  std::string expires_at = {};  // empty: never
  JsonText json = {};
};

// A file to upload, in memory.
struct FileUpload {
  std::string filename = {};
  std::string content = {};
  std::string mime_type = "application/octet-stream";
  std::optional<std::int64_t> expires_in_seconds = {};
};

class Client;

// POST /v1/messages/batches and below. A view of its client, which must outlive it.
class Batches {
 public:
  // Throws PromptError for custom ids that are missing, repeated or misspelled, and for `stream`,
  // `speed` and max_tokens 0, which a batch refuses (C-105).
  [[nodiscard]] MessageBatch create(const std::vector<BatchRequest>& requests,
                                    const RequestOptions& options = {}) const;
  [[nodiscard]] MessageBatch get(std::string_view id, const RequestOptions& options = {}) const;
  [[nodiscard]] Paged<MessageBatch> list(const ListOptions& list = {},
                                         const RequestOptions& options = {}) const;
  [[nodiscard]] MessageBatch cancel(std::string_view id, const RequestOptions& options = {}) const;
  void remove(std::string_view id, const RequestOptions& options = {}) const;

  // Asks every `every` until the batch has ended; a stop request ends the waiting with
  // TransportError.
  [[nodiscard]] MessageBatch wait(std::string_view id,
                                  std::chrono::milliseconds every = std::chrono::seconds(60),
                                  const RequestOptions& options = {}) const;

  // The results in the server's order, read from the connection line by line. Throws Error, naming
  // the status, when the batch has none yet.
  [[nodiscard]] Sequence<BatchResult> results(const MessageBatch& batch,
                                              const RequestOptions& options = {}) const;

 private:
  friend class Client;

  explicit Batches(const Client& client) : client_(client) {}

  const Client& client_;
};

// POST /v1/files and below. A view of its client, which must outlive it.
class Files {
 public:
  [[nodiscard]] FileMetadata upload(const FileUpload& file,
                                    const RequestOptions& options = {}) const;
  [[nodiscard]] FileMetadata get(std::string_view id, const RequestOptions& options = {}) const;
  [[nodiscard]] Paged<FileMetadata> list(const ListOptions& list = {},
                                         const RequestOptions& options = {}) const;
  [[nodiscard]] std::string download(std::string_view id, const RequestOptions& options = {}) const;
  void remove(std::string_view id, const RequestOptions& options = {}) const;

 private:
  friend class Client;

  explicit Files(const Client& client) : client_(client) {}

  const Client& client_;
};

// Requests go out from the thread that makes the call, and several threads may call at once;
// callbacks in the options are then called at once too. Copies share connections, options and
// fingerprints.
//
// Every call throws ApiError (the server refused), TransportError (no answer), ParseError (an
// unreadable one), PromptError (nothing was sent). Connection errors, timeouts, 408, 409, 429 and
// 500 and above are tried again as W-40 to W-44 say before they are thrown.
class Client {
 public:
  // Throws PromptError ("W-7") when there is no credential, or for options that contradict each
  // other.
  explicit Client(ClientOptions options = {});

  // Another client on the same connections, with `change` made to a copy of the options as they
  // were given; what they leave unset comes from the environment as it is now. Fingerprints are
  // shared.
  [[nodiscard]] Client with(const std::function<void(ClientOptions&)>& change) const;

  [[nodiscard]] Message send(const MessageRequest& request,
                             const RequestOptions& options = {}) const;
  [[nodiscard]] MessageStream stream(const MessageRequest& request,
                                     const RequestOptions& options = {}) const;

  // Tokens of the prompt; an estimate that reads and writes no cache (C-114, C-116).
  [[nodiscard]] std::int64_t count_tokens(const MessageRequest& request,
                                          const RequestOptions& options = {}) const;

  // Writes the prompt's breakpoints to the cache and generates nothing (C-88): the request with
  // max_tokens 0. A request without a message gets the placeholder that C-91 asks for. Throws
  // PromptError when it has no explicit marker (C-30), or what C-90 forbids.
  [[nodiscard]] Message prewarm(MessageRequest request, const RequestOptions& options = {}) const;

  [[nodiscard]] Paged<ModelInfo> models(const ListOptions& list = {},
                                        const RequestOptions& options = {}) const;
  [[nodiscard]] ModelInfo model(std::string_view id, const RequestOptions& options = {}) const;

  [[nodiscard]] Batches batches() const { return Batches(*this); }

  [[nodiscard]] Files files() const { return Files(*this); }

  // Any other endpoint: `path` below the base URL, with the client's headers and retries. Throws
  // for a status of 400 or more.
  [[nodiscard]] RawResponse call(std::string_view method, std::string_view path,
                                 std::string_view body = {},
                                 const RequestOptions& options = {}) const;

  // The same with the body still to be read.
  [[nodiscard]] HttpResponse open(std::string_view method, std::string_view path,
                                  std::string_view body = {},
                                  const RequestOptions& options = {}) const;

 private:
  friend class Batches;
  friend class Files;

  struct State;
  std::shared_ptr<State> state_ = {};
};

}  // namespace incipit
