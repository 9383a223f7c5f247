#include "retry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace incipit {
namespace {

using std::chrono::milliseconds;

bool equal_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::optional<double> decimal(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

// Far more than anybody waits, so that no arithmetic on it overflows.
milliseconds bounded(double ms) {
  constexpr double year = 365.0 * 24 * 3600 * 1000;
  return milliseconds(std::llround(std::clamp(ms, -year, year)));
}

// "Sun, 06 Nov 1994 08:49:37 GMT", the one format that HTTP lets servers generate (RFC
// 9110, 5.6.7).
std::optional<std::chrono::system_clock::time_point> http_date(std::string_view text) {
  static constexpr std::array<std::string_view, 12> months = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  static constexpr std::string_view shape = "aaa, 00 aaa 0000 00:00:00 GMT";
  if (text.size() != shape.size()) return std::nullopt;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const bool digit = text[at] >= '0' && text[at] <= '9';
    if (shape[at] == '0' ? !digit : shape[at] != 'a' && shape[at] != text[at]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + length, value);
    return value;
  };
  const auto month = std::find(months.begin(), months.end(), text.substr(8, 3));
  const std::chrono::year_month_day day(
      std::chrono::year(number(12, 4)),
      std::chrono::month(static_cast<unsigned>(month - months.begin() + 1)),
      std::chrono::day(static_cast<unsigned>(number(5, 2))));
  if (month == months.end() || !day.ok()) return std::nullopt;
  return std::chrono::sys_days(day) + std::chrono::hours(number(17, 2))
         + std::chrono::minutes(number(20, 2)) + std::chrono::seconds(number(23, 2));
}

}  // namespace

const std::string* find_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& header : headers)
    if (equal_without_case(header.name, name)) return &header.value;
  return nullptr;
}

bool is_retried(int status, const std::vector<HttpHeader>& headers) {
  if (const std::string* word = find_header(headers, "x-should-retry")) {
    if (*word == "true") return true;
    if (*word == "false") return false;
  }
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

std::optional<milliseconds> retry_after(const std::vector<HttpHeader>& headers,
                                        std::chrono::system_clock::time_point now) {
  if (const std::string* text = find_header(headers, "retry-after-ms"))
    if (const auto ms = decimal(*text)) return bounded(*ms);
  const std::string* text = find_header(headers, "retry-after");
  if (text == nullptr) return std::nullopt;
  if (const auto seconds = decimal(*text)) return bounded(*seconds * 1000);
  if (const auto date = http_date(*text))
    return bounded(std::chrono::duration<double, std::milli>(*date - now).count());
  return std::nullopt;
}

milliseconds retry_wait(std::optional<milliseconds> asked, int retries, double random) {
  if (asked && *asked > milliseconds(0) && *asked <= std::chrono::minutes(1)) return *asked;
  const double base = std::min(500.0 * std::exp2(std::min(retries, 10)), 8000.0);
  return milliseconds(std::llround(base * (1 - 0.25 * random)));
}

}  // namespace incipit
