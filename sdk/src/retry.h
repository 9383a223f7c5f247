// When an attempt is made again, and after how long. Source: anthropic-wire section 19.1.
// Private to the SDK.
#pragma once

#include "incipit/transport.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// The value of the first header of that name (compared without case), or null.
[[nodiscard]] const std::string* find_header(const std::vector<HttpHeader>& headers,
                                             std::string_view name);

// W-41: 408, 409, 429 and from 500 on, unless `x-should-retry` says otherwise.
[[nodiscard]] bool is_retried(int status, const std::vector<HttpHeader>& headers);

// How long the server asks to wait: `retry-after-ms`, or else `retry-after` in seconds or as a
// date. Nothing when neither can be read; zero or less for a date that is past.
[[nodiscard]] std::optional<std::chrono::milliseconds> retry_after(
    const std::vector<HttpHeader>& headers, std::chrono::system_clock::time_point now);

// W-42: what the server asked for, if it is more than nothing and at most a minute; otherwise half
// a second, doubled with each retry done before this one up to 8 s, less up to a quarter by
// `random`.
[[nodiscard]] std::chrono::milliseconds retry_wait(std::optional<std::chrono::milliseconds> asked,
                                                   int retries, double random);

}  // namespace incipit
