#include "gateway/api/log.h"

#include "incipit/json.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <iostream>

namespace incipit::gateway {

namespace {

double rounded(double value) {
  return std::round(value * 10) / 10;
}

}  // namespace

RequestLog::RequestLog(const std::filesystem::path& file) : file_(file, std::ios::app) {
  if (!file_) throw std::runtime_error(fmt::format("cannot write the log file {}", file.string()));
}

void RequestLog::write(const RequestRecord& record) {
  const std::string line = log_line(record, utc_time()) + '\n';
  const std::lock_guard lock(mutex_);
  std::ostream& out = file_.is_open() ? static_cast<std::ostream&>(file_) : std::cerr;
  out.write(line.data(), static_cast<std::streamsize>(line.size()));
  out.flush();
}

std::string log_line(const RequestRecord& record, std::string_view time) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  json.key("time").string(time);
  json.key("request_id").string(record.request_id);
  json.key("method").string(record.method);
  json.key("path").string(record.path);
  json.key("status").integer(record.status);
  if (!record.key_scope.empty()) json.key("scope").string(record.key_scope);
  if (!record.model.empty()) json.key("model").string(record.model);
  if (record.generated) {
    json.key("prompt_tokens").integer(record.usage.prompt_tokens());
    json.key("read").integer(record.usage.cache_read_input_tokens);
    json.key("written_5m").integer(record.usage.cache_creation_5m);
    json.key("written_1h").integer(record.usage.cache_creation_1h);
    json.key("plain").integer(record.usage.input_tokens);
    json.key("output").integer(record.usage.output_tokens);
    json.key("kv_reused").integer(record.kv_reused);
  }
  if (record.ttft_ms) json.key("ttft_ms").number(rounded(*record.ttft_ms));
  if (record.tokens_per_second) {
    json.key("tokens_per_second").number(rounded(*record.tokens_per_second));
  }
  if (record.dropped_billing_lines > 0) {
    json.key("dropped_billing_lines").integer(record.dropped_billing_lines);
  }
  if (!record.error.empty()) json.key("error").string(record.error);
  json.end_object();
  return line;
}

std::string utc_time(int offset_seconds) {
  const std::time_t now = std::time(nullptr) + offset_seconds;
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

}  // namespace incipit::gateway
