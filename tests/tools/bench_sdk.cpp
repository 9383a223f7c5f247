// Times what an application pays for the SDK. Prints one JSON object; tests/clients/bench_sdk.py
// puts the official Python SDK beside it.
#include "sdk/src/sse_parser.h"
#include "tests/support/fault_server.h"

#include <incipit/incipit.h>

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The median over runs, in seconds.
template <class Work>
double median(int runs, Work work) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    work();
    times.push_back(seconds_since(start));
  }
  std::ranges::nth_element(times, times.begin() + runs / 2);
  return times[static_cast<std::size_t>(runs / 2)];
}

// Text as prompts are: words, quotes, line ends, some letters beyond ASCII. The same in
// bench_sdk.py.
std::string text_of(std::size_t block, std::size_t bytes) {
  const std::string sentence =
      "Block " + std::to_string(block)
      + " says \"caf\u00e9\" and goes on with words, numbers 12345 and a line end.\n";
  std::string text;
  while (text.size() < bytes)
    text += sentence;
  return text;
}

// About `tokens` tokens at four bytes each, in `blocks` texts.
std::vector<std::string> texts(std::size_t tokens, std::size_t blocks) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < blocks; ++i)
    all.push_back(text_of(i, tokens * 4 / blocks));
  return all;
}

// The first text as the system prompt, the others as turns of user and assistant.
incipit::Prompt conversation(const std::vector<std::string>& blocks) {
  incipit::Prompt prompt("claude-sonnet-5-5");
  prompt.system(blocks.front()).breakpoint(incipit::Ttl::one_hour);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (i % 2 == 1) {
      prompt.user(blocks[i]);
    } else {
      prompt.assistant(blocks[i]);
    }
  }
  prompt.auto_breakpoints();
  return prompt;
}

std::string event_stream(std::size_t bytes) {
  std::string stream;
  for (std::size_t i = 0; stream.size() < bytes; ++i) {
    stream +=
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
        "\"delta\":{\"type\":\"text_delta\",\"text\":\" word"
        + std::to_string(i % 1000) + "\"}}\n\n";
  }
  return stream;
}

std::size_t frames(std::string_view stream) {
  incipit::SseParser parser;
  std::size_t count = 0;
  for (std::size_t at = 0; at < stream.size(); at += 16384) {
    parser.feed(stream.substr(at, 16384));
    while (const auto event = parser.next())
      count += event->data.size();
  }
  return count;
}

std::size_t events(std::string_view stream) {
  incipit::SseParser parser;
  std::size_t count = 0;
  for (std::size_t at = 0; at < stream.size(); at += 16384) {
    parser.feed(stream.substr(at, 16384));
    while (const auto event = parser.next())
      count += incipit::parse_stream_event(event->data)->text()->size();
  }
  return count;
}

constexpr const char* reply =
    R"({"model":"claude-sonnet-5-5","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":8,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}})";

std::size_t discard(char*, std::size_t size, std::size_t count, void*) {
  return size * count;
}

// Requests through the client and through one libcurl handle, in turns, on kept connections.
struct Overhead {
  double client;
  double curl;
};

Overhead overhead(int requests) {
  incipit::testing::FaultServer server(
      [](const auto&) { return incipit::testing::json_reply(reply); });
  incipit::ClientOptions options;
  options.api_key = "bench";
  options.base_url = server.base_url();
  const incipit::Client client(options);
  incipit::Prompt prompt("claude-sonnet-5-5");
  prompt.user("Hello");
  const incipit::MessageRequest request = prompt.request({.max_tokens = 16});

  const std::string body = incipit::to_json(request);
  const std::string url = server.base_url() + "/v1/messages";
  CURL* handle = curl_easy_init();
  curl_slist* headers = curl_slist_append(nullptr, "content-type: application/json");
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, discard);

  std::vector<double> ours;
  std::vector<double> bare;
  for (int i = 0; i <= requests; ++i) {  // the first pair opens the connections
    auto start = Clock::now();
    (void)client.send(request);
    const double a = seconds_since(start);
    start = Clock::now();
    (void)curl_easy_perform(handle);
    const double b = seconds_since(start);
    if (i == 0) continue;
    ours.push_back(a);
    bare.push_back(b);
  }
  curl_slist_free_all(headers);
  curl_easy_cleanup(handle);
  std::ranges::sort(ours);
  std::ranges::sort(bare);
  return {ours[ours.size() / 2], bare[bare.size() / 2]};
}

}  // namespace

int main() {
  std::size_t bytes = 0;
  const std::vector<std::string> blocks = texts(200'000, 400);
  const double build =
      median(21, [&] { bytes = incipit::to_json(conversation(blocks).request()).size(); });

  const incipit::MessageRequest large = conversation(texts(50'000, 100)).request();
  std::size_t fingerprinted = 0;
  const double fingerprint =
      median(51, [&] { fingerprinted = incipit::Fingerprint::of(large).bytes(); });

  const std::string stream = event_stream(32 << 20);
  std::size_t seen = 0;
  const double framing = median(9, [&] { seen += frames(stream); });
  const double typed = median(5, [&] { seen += events(stream); });
  const Overhead each = overhead(2000);

  const double megabytes = static_cast<double>(stream.size()) / 1e6;
  std::printf(
      "{\"build_ms\": %.3f, \"build_bytes\": %zu, \"fingerprint_us\": %.1f, "
      "\"fingerprint_bytes\": %zu, \"sse_mb_per_s\": %.0f, \"events_mb_per_s\": %.0f, "
      "\"events_per_s\": %.0f, \"client_us\": %.1f, \"curl_us\": %.1f, \"checksum\": %zu}\n",
      build * 1e3, bytes, fingerprint * 1e6, fingerprinted, megabytes / framing, megabytes / typed,
      megabytes / typed * 1e6 / 105.0, each.client * 1e6, each.curl * 1e6, seen);
}
