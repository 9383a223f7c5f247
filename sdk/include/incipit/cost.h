// What usage costs, from a dated table of list prices.
// Source: anthropic-cache-semantics section 22 (C-109 to C-112), openai-wire section 1.8.
#pragma once

#include "incipit/usage.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace incipit {

// US dollars in billionths: every list price per token is a whole number of them, so sums are
// exact.
struct Cost {
  std::int64_t nano_dollars = 0;

  [[nodiscard]] double dollars() const { return static_cast<double>(nano_dollars) * 1e-9; }

  // "$0.0302": six digits after the point at most, trailing zeros cut down to two.
  [[nodiscard]] std::string text() const;

  friend Cost operator+(Cost a, Cost b) { return {a.nano_dollars + b.nano_dollars}; }

  friend Cost operator-(Cost a, Cost b) { return {a.nano_dollars - b.nano_dollars}; }

  Cost& operator+=(Cost other) { return *this = *this + other; }

  friend auto operator<=>(const Cost&, const Cost&) = default;
};

// Prices of a model in nano-dollars per token, from one length of prompt on. A write price of 0:
// such writes are not priced apart, and what is written counts as input.
struct Price {
  std::string_view model;            // "claude-opus-5-5"; dated ids and aliases find it too
  std::int64_t above_prompt_tokens;  // holds for prompts longer than this (C-109); 0: all
  std::int64_t input;
  std::int64_t cache_write_5m;  // OpenAI: 30 minutes
  std::int64_t cache_write_1h;  // OpenAI: 12 hours
  std::int64_t cache_read;
  std::int64_t output;
  std::string_view since = {};    // "2026-10-07": the day from which it holds, where known
  std::string_view speed = {};    // "fast": of requests in fast mode only (C-110)
  std::int64_t us_percent = 100;  // of the price where inference_geo is "us" (C-110)
};

// All rows that are built in, and the day they were last looked at ("2026-11-30").
[[nodiscard]] std::span<const Price> price_table();
[[nodiscard]] std::string_view price_table_date();

// The row for a model and a prompt of that length (not its fast mode), or null: no price is ever
// made up. What stands before "anthropic." or "anthropic/", "-latest", a date and "-v1:0" at the
// end of the id are not part of the name. `table` may be the caller's own; the first of equal rows
// wins.
[[nodiscard]] const Price* find_price(std::string_view model, std::int64_t prompt_tokens = 0,
                                      std::span<const Price> table = price_table());

// Of the tokens of one request at list price, with what `usage` says of tier, region and speed:
// batch halves, "us" adds a tenth (models from 4.6 on), fast mode has base prices of its own
// (C-110). The total is rounded once, half a nano-dollar up. Calls of server tools are not part of
// it. Nothing for an unknown model, or for fast mode of a model without a known price.
[[nodiscard]] std::optional<Cost> cost(const Usage& usage, std::string_view model,
                                       std::span<const Price> table = price_table());

// The same prompt without any caching: all of it plain input.
[[nodiscard]] std::optional<Cost> uncached_cost(const Usage& usage, std::string_view model,
                                                std::span<const Price> table = price_table());

// Reads of a prefix after which having written it is cheaper than never caching (C-112): 1 for five
// minutes, 2 for an hour at the usual multipliers. Nothing for an unknown model, or one without a
// price for such writes.
[[nodiscard]] std::optional<int> break_even_reads(std::string_view model, Ttl ttl,
                                                  std::span<const Price> table = price_table());

// Sums over the requests of a session, for several models. Not for use by two threads at once.
class SessionCost {
 public:
  void add(const Usage& usage, std::string_view model);

  [[nodiscard]] const Usage& usage() const { return usage_; }

  [[nodiscard]] int requests() const { return requests_; }

  // Requests of models without a known price: not part of the sums below.
  [[nodiscard]] int unpriced_requests() const { return unpriced_; }

  [[nodiscard]] Cost total() const { return total_; }

  [[nodiscard]] Cost uncached() const { return uncached_; }

  // Negative when writes have not paid for themselves yet.
  [[nodiscard]] Cost saved() const { return uncached_ - total_; }

 private:
  Usage usage_;
  int requests_ = 0;
  int unpriced_ = 0;
  Cost total_;
  Cost uncached_;
};

}  // namespace incipit
