#include "incipit/cost.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace incipit {
namespace {

constexpr Price prices[] = {
#include "sdk/src/prices.inc"
};

// Whether `text` ends in `shape`, in which a 9 stands for any digit.
bool ends_in(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  const std::string_view tail = text.substr(text.size() - shape.size());
  return std::equal(tail.begin(), tail.end(), shape.begin(), [](char is, char wanted) {
    return wanted == '9' ? is >= '0' && is <= '9' : is == wanted;
  });
}

// The name of a model without what platforms and snapshots put around it.
std::string_view name_in(std::string_view id) {
  for (const std::string_view provider : {"anthropic.", "anthropic/"}) {
    const std::size_t at = id.rfind(provider);
    const bool whole = at == 0 || (at != id.npos && (id[at - 1] == '.' || id[at - 1] == '/'));
    if (whole) id.remove_prefix(at + provider.size());
  }
  for (const std::string_view shape :
       {"-v9:9", "-v9", "-latest", "-99999999", "@99999999", "-9999-99-99"}) {
    if (ends_in(id, shape)) id.remove_suffix(shape.size());
  }
  return id;
}

const Price* find_row(std::string_view model, std::int64_t prompt_tokens, std::string_view speed,
                      std::span<const Price> table) {
  const std::string_view name = name_in(model);
  const Price* found = nullptr;
  for (const Price& row : table) {
    const bool holds = row.above_prompt_tokens == 0 || prompt_tokens > row.above_prompt_tokens;
    if (row.model == name && row.speed == speed && holds
        && (found == nullptr || row.above_prompt_tokens > found->above_prompt_tokens)) {
      found = &row;
    }
  }
  return found;
}

// No request has more tokens than this; with it no sum below can overflow, whatever a server says.
constexpr std::int64_t most_tokens = 100'000'000'000;

// The counters that are charged for, in the order of the columns.
struct Charged {
  std::int64_t input, write_5m, write_1h, read, output;

  [[nodiscard]] std::int64_t prompt() const { return input + write_5m + write_1h + read; }
};

Charged charged(const Usage& usage) {
  const auto sane = [](std::int64_t n) { return std::clamp<std::int64_t>(n, 0, most_tokens); };
  return {sane(usage.input_tokens), sane(usage.cache_creation_5m), sane(usage.cache_creation_1h),
          sane(usage.cache_read_input_tokens), sane(usage.output_tokens)};
}

std::optional<Cost> price_of(const Charged& tokens, const Usage& usage, std::string_view model,
                             std::span<const Price> table) {
  const std::string_view speed = usage.speed == "fast" ? "fast" : "";
  const Price* row = find_row(model, tokens.prompt(), speed, table);
  if (row == nullptr) return std::nullopt;
  const auto write_price = [&](std::int64_t own) { return own == 0 ? row->input : own; };
  const std::int64_t full = tokens.input * row->input
                            + tokens.write_5m * write_price(row->cache_write_5m)
                            + tokens.write_1h * write_price(row->cache_write_1h)
                            + tokens.read * row->cache_read + tokens.output * row->output;
  // Both factors at once, so that half a nano-dollar is rounded once: percent / 100, and batch / 2.
  const std::int64_t percent = usage.inference_geo == "us" ? row->us_percent : 100;
  const std::int64_t halves = usage.service_tier == "batch" ? 1 : 2;
  return Cost{(full * percent * halves + 100) / 200};
}

}  // namespace

std::string Cost::text() const {
  const bool negative = nano_dollars < 0;
  const std::uint64_t nano = negative ? 0 - static_cast<std::uint64_t>(nano_dollars)
                                      : static_cast<std::uint64_t>(nano_dollars);
  const std::uint64_t micro = nano / 1000 + (nano % 1000 >= 500 ? 1 : 0);
  std::string digits = std::to_string(1'000'000 + micro % 1'000'000).substr(1);
  while (digits.size() > 2 && digits.back() == '0')
    digits.pop_back();
  const char* sign = negative && micro != 0 ? "-$" : "$";
  return sign + std::to_string(micro / 1'000'000) + "." + digits;
}

std::span<const Price> price_table() {
  return prices;
}

std::string_view price_table_date() {
  return "2026-11-30";
}

const Price* find_price(std::string_view model, std::int64_t prompt_tokens,
                        std::span<const Price> table) {
  return find_row(model, prompt_tokens, "", table);
}

std::optional<Cost> cost(const Usage& usage, std::string_view model, std::span<const Price> table) {
  return price_of(charged(usage), usage, model, table);
}

std::optional<Cost> uncached_cost(const Usage& usage, std::string_view model,
                                  std::span<const Price> table) {
  const Charged tokens = charged(usage);
  return price_of({tokens.prompt(), 0, 0, 0, tokens.output}, usage, model, table);
}

std::optional<int> break_even_reads(std::string_view model, Ttl ttl, std::span<const Price> table) {
  const Price* row = find_price(model, 0, table);
  if (row == nullptr) return std::nullopt;
  const std::int64_t write = ttl == Ttl::one_hour ? row->cache_write_1h : row->cache_write_5m;
  const std::int64_t saved_by_read = row->input - row->cache_read;
  if (write == 0 || saved_by_read <= 0) return std::nullopt;
  // The least n >= 1 with write + n * read < (n + 1) * input.
  const std::int64_t surcharge = std::max<std::int64_t>(write - row->input, 0);
  return static_cast<int>(surcharge / saved_by_read + 1);
}

void SessionCost::add(const Usage& usage, std::string_view model) {
  usage_ += usage;
  ++requests_;
  const std::optional<Cost> price = cost(usage, model);
  if (!price) {
    ++unpriced_;
    return;
  }
  total_ += *price;
  uncached_ += uncached_cost(usage, model).value_or(*price);
}

}  // namespace incipit
