#include "incipit/cost.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace incipit {
namespace {

Usage tokens(std::int64_t input, std::int64_t write_5m, std::int64_t write_1h, std::int64_t read,
             std::int64_t output) {
  Usage usage;
  usage.input_tokens = input;
  usage.cache_creation_5m = write_5m;
  usage.cache_creation_1h = write_1h;
  usage.cache_read_input_tokens = read;
  usage.output_tokens = output;
  return usage;
}

constexpr std::int64_t million = 1'000'000;

TEST_CASE("prices are those that section 22 prints") {
  struct Row {
    std::vector<const char*> models;
    std::int64_t prompt;
    double input, write_5m, write_1h, read, output;  // dollars per million tokens
  };

  const std::vector<Row> rows = {
      {{"claude-fable-5-2", "claude-mythos-5-2"}, 0, 8, 10, 16, 0.20, 40},
      {{"claude-fable-5-1", "claude-mythos-5-1"}, 0, 10, 12.50, 20, 0.25, 50},
      {{"claude-fable-5", "claude-mythos-5"}, 0, 10, 12.50, 20, 1.00, 50},
      {{"claude-opus-5-5"}, 0, 4, 5, 8, 0.20, 20},
      {{"claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6",
        "claude-opus-4-5"},
       0,
       5,
       6.25,
       10,
       0.50,
       25},
      {{"claude-opus-4-1", "claude-opus-4"}, 0, 15, 18.75, 30, 1.50, 75},
      {{"claude-sonnet-5-5"}, 0, 2, 2.50, 4, 0.10, 10},
      {{"claude-sonnet-5"}, 0, 2, 2.50, 4, 0.20, 10},
      {{"claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4"}, 0, 3, 3.75, 6, 0.30, 15},
      {{"claude-haiku-5-5"}, 100'000, 0.10, 0.125, 0.20, 0.01, 0.50},
      {{"claude-haiku-5-5"}, 100'001, 0.50, 0.625, 1.00, 0.05, 2.50},
      {{"claude-haiku-4-5"}, 0, 1, 1.25, 2, 0.10, 5},
      {{"claude-3-5-haiku"}, 0, 0.80, 1.00, 1.60, 0.08, 4},
  };

  for (const Row& row : rows) {
    for (const char* model : row.models) {
      CAPTURE(model);
      const Price* price = find_price(model, row.prompt);
      REQUIRE(price != nullptr);
      CHECK(static_cast<double>(price->input) / 1000 == row.input);
      CHECK(static_cast<double>(price->cache_write_5m) / 1000 == row.write_5m);
      CHECK(static_cast<double>(price->cache_write_1h) / 1000 == row.write_1h);
      CHECK(static_cast<double>(price->cache_read) / 1000 == row.read);
      CHECK(static_cast<double>(price->output) / 1000 == row.output);
    }
  }
}

TEST_CASE("prices of OpenAI's models are those of openai-wire 1.8") {
  struct Row {
    const char* model;
    double input, read, write;  // write 0: not priced apart
  };

  const std::vector<Row> rows = {
      {"gpt-4o", 2.50, 1.25, 0},         {"gpt-4o-mini", 0.15, 0.075, 0},
      {"gpt-4.1", 2, 0.50, 0},           {"gpt-5", 1.25, 0.125, 0},
      {"gpt-5.1", 1.25, 0.125, 0},       {"gpt-5-mini", 0.25, 0.025, 0},
      {"gpt-5-nano", 0.05, 0.005, 0},    {"gpt-5.2", 1.75, 0.175, 0},
      {"gpt-5.3-codex", 1.75, 0.175, 0}, {"gpt-5.4", 2.50, 0.25, 0},
      {"gpt-5.4-mini", 0.75, 0.075, 0},  {"gpt-5.4-nano", 0.20, 0.02, 0},
      {"gpt-5.5", 5, 0.50, 0},           {"gpt-5.6-sol", 4, 0.40, 5.00},
      {"gpt-5.6-terra", 2, 0.20, 2.50},  {"gpt-5.6-luna", 0.20, 0.02, 0.25},
      {"gpt-6-astra", 10, 1.00, 12.50},  {"gpt-6-sol", 2, 0.20, 2.50},
      {"gpt-6-luna", 0.10, 0.01, 0.125}, {"gpt-6.1-sol", 2, 0.10, 2.50},
      {"gpt-6.1-terra", 1, 0.05, 1.25},  {"gpt-6.2-sol", 2, 0.10, 2.50},
  };

  for (const Row& row : rows) {
    CAPTURE(row.model);
    const Price* price = find_price(row.model);
    REQUIRE(price != nullptr);
    CHECK(static_cast<double>(price->input) / 1000 == row.input);
    CHECK(static_cast<double>(price->cache_read) / 1000 == row.read);
    CHECK(static_cast<double>(price->cache_write_5m) / 1000 == row.write);
    CHECK(price->output >= 4 * price->input);
  }
  CHECK(find_price("gpt-6.2-sol")->cache_write_1h == 5'000);  // the 12-hour write
}

TEST_CASE(
    "a longer prompt of OpenAI's newer models doubles input and cache, and adds half to output") {
  int tiers = 0;
  for (const Price& row : price_table()) {
    if (row.above_prompt_tokens != 272'000) continue;
    ++tiers;
    CAPTURE(row.model);
    const Price* base = find_price(row.model, 272'000);
    REQUIRE(base != nullptr);
    REQUIRE(base != &row);
    CHECK(find_price(row.model, 272'001) == &row);
    CHECK(row.input == 2 * base->input);
    CHECK(row.cache_write_5m == 2 * base->cache_write_5m);
    CHECK(row.cache_write_1h == 2 * base->cache_write_1h);
    CHECK(row.cache_read == 2 * base->cache_read);
    CHECK(2 * row.output == 3 * base->output);
  }
  CHECK(tiers == 11);
}

TEST_CASE("no two rows hold for the same request, and each is found under its own name") {
  std::set<std::string> seen;
  for (const Price& row : price_table()) {
    CAPTURE(row.model);
    CHECK(seen.insert(std::string(row.model) + "/" + std::string(row.speed) + "/"
                      + std::to_string(row.above_prompt_tokens))
              .second);
    CHECK(find_price(row.model) != nullptr);
  }
  CHECK(price_table_date() == "2026-11-30");
  CHECK(find_price("claude-sonnet-5-5")->since == "2026-10-07");
}

TEST_CASE(
    "a name is found with a date, an alias or a platform around it, and never by its beginning") {
  const Price* opus_45 = find_price("claude-opus-4-5");
  REQUIRE(opus_45 != nullptr);
  for (const char* id :
       {"claude-opus-4-5-20251101", "claude-opus-4-5-latest", "anthropic/claude-opus-4-5",
        "anthropic.claude-opus-4-5-20251101-v1:0", "us.anthropic.claude-opus-4-5-20251101-v1:0",
        "anthropic.claude-opus-4-5-v1", "claude-opus-4-5@20251101"}) {
    CAPTURE(id);
    CHECK(find_price(id) == opus_45);
  }
  CHECK(find_price("gpt-4o-2024-08-06") == find_price("gpt-4o"));
  CHECK(find_price("claude-opus-4-20250514") == find_price("claude-opus-4"));

  for (const char* id : {"", "claude", "claude-opus", "claude-opus-5-5-turbo", "claude-opus-9",
                         "claude-mythos-preview", "-latest", "anthropic.", "-20251101",
                         "claude-opus-4-5-2025110", "notanthropic.claude-opus-4-5", "o3"}) {
    CAPTURE(id);
    CHECK(find_price(id) == nullptr);
    CHECK_FALSE(cost(tokens(1, 1, 1, 1, 1), id).has_value());
    CHECK_FALSE(uncached_cost(tokens(1, 1, 1, 1, 1), id).has_value());
    CHECK_FALSE(break_even_reads(id, Ttl::one_hour).has_value());
  }
}

TEST_CASE("the worked example of C-111 costs $0.0302, and $0.4102 uncached") {
  const Usage usage = tokens(50, 0, 0, 100'000, 500);
  CHECK(cost(usage, "claude-opus-5-5") == Cost{30'200'000});
  CHECK(cost(usage, "claude-opus-5-5")->text() == "$0.0302");
  CHECK(uncached_cost(usage, "claude-opus-5-5") == Cost{410'200'000});
  CHECK(uncached_cost(usage, "claude-opus-5-5")->text() == "$0.4102");
}

TEST_CASE("each class of tokens has its own price") {
  const auto dollars = [](const Usage& usage) {
    return cost(usage, "claude-sonnet-4-6")->dollars();
  };
  CHECK(dollars(tokens(million, 0, 0, 0, 0)) == doctest::Approx(3));
  CHECK(dollars(tokens(0, million, 0, 0, 0)) == doctest::Approx(3.75));
  CHECK(dollars(tokens(0, 0, million, 0, 0)) == doctest::Approx(6));
  CHECK(dollars(tokens(0, 0, 0, million, 0)) == doctest::Approx(0.30));
  CHECK(dollars(tokens(0, 0, 0, 0, million)) == doctest::Approx(15));
}

TEST_CASE("the whole request is billed at the tier of its whole prompt (C-109)") {
  // Input, writes and reads all count: 100 000 stays below, one more does not.
  CHECK(cost(tokens(40'000, 30'000, 10'000, 20'000, 1'000), "claude-haiku-5-5")
        == Cost{40'000 * 100 + 30'000 * 125 + 10'000 * 200 + 20'000 * 10 + 1'000 * 500});
  CHECK(cost(tokens(40'000, 30'000, 10'000, 20'001, 1'000), "claude-haiku-5-5")
        == Cost{40'000 * 500 + 30'000 * 625 + 10'000 * 1'000 + 20'001 * 50 + 1'000 * 2'500});
  CHECK(uncached_cost(tokens(40'000, 30'000, 10'000, 20'001, 1'000), "claude-haiku-5-5")
        == Cost{100'001 * 500 + 1'000 * 2'500});
}

TEST_CASE("batch, region and fast mode multiply (C-110)") {
  Usage usage = tokens(50, 0, 0, 100'000, 500);  // 30 200 000 nano-dollars on Opus 5.5

  usage.service_tier = "batch";
  CHECK(cost(usage, "claude-opus-5-5") == Cost{15'100'000});
  usage.inference_geo = "us";
  CHECK(cost(usage, "claude-opus-5-5") == Cost{16'610'000});
  CHECK(uncached_cost(usage, "claude-opus-5-5") == Cost{225'610'000});
  usage.service_tier = "standard";
  CHECK(cost(usage, "claude-opus-5-5") == Cost{33'220'000});
  usage.inference_geo = "global";
  CHECK(cost(usage, "claude-opus-5-5") == Cost{30'200'000});

  // Fast: 8 in, 40 out, reads at the same 0.05 of the base.
  usage.speed = "fast";
  CHECK(cost(usage, "claude-opus-5-5") == Cost{60'400'000});
  CHECK(cost(tokens(1, 1, 1, 1, 1), "claude-opus-4-8")
        == Cost{5'000 + 6'250 + 10'000 + 500 + 25'000});
  usage = tokens(1, 1, 1, 1, 1);
  usage.speed = "fast";
  CHECK(cost(usage, "claude-opus-4-8") == Cost{10'000 + 12'500 + 20'000 + 1'000 + 50'000});
  CHECK_FALSE(cost(usage, "claude-sonnet-5-5").has_value());
  CHECK_FALSE(uncached_cost(usage, "claude-sonnet-5-5").has_value());
}

TEST_CASE("the region adds nothing before the 4.6 models") {
  Usage usage = tokens(1'000, 0, 0, 0, 0);
  usage.inference_geo = "us";
  CHECK(cost(usage, "claude-opus-4-6") == Cost{5'500'000});
  CHECK(cost(usage, "claude-opus-4-5") == Cost{5'000'000});
  CHECK(cost(usage, "gpt-4o") == Cost{2'500'000});
}

TEST_CASE("half a nano-dollar is rounded up, once") {
  Usage usage = tokens(0, 1, 0, 0, 0);  // 125 on Haiku 5.5
  usage.service_tier = "batch";
  CHECK(cost(usage, "claude-haiku-5-5") == Cost{63});  // 62.5
  usage.inference_geo = "us";
  CHECK(cost(usage, "claude-haiku-5-5") == Cost{69});  // 68.75
  usage.service_tier = "standard";
  CHECK(cost(usage, "claude-haiku-5-5") == Cost{138});  // 137.5
}

TEST_CASE("writes without a price of their own count as input") {
  CHECK(cost(tokens(10, 20, 30, 40, 0), "gpt-4o") == Cost{60 * 2'500 + 40 * 1'250});
  CHECK_FALSE(break_even_reads("gpt-4o", Ttl::five_minutes).has_value());
  CHECK_FALSE(break_even_reads("gpt-6.1-sol", Ttl::one_hour).has_value());
  CHECK(break_even_reads("gpt-6.1-sol", Ttl::five_minutes) == 1);
}

TEST_CASE("a five minute write pays after one read, an hour's after two (C-112)") {
  for (const Price& row : price_table()) {
    if (!row.model.starts_with("claude-")) continue;
    CAPTURE(row.model);
    CHECK(break_even_reads(row.model, Ttl::five_minutes) == 1);
    CHECK(break_even_reads(row.model, Ttl::one_hour) == 2);
  }
}

TEST_CASE("break-even is the first number of reads that is cheaper, with any table") {
  // 3 + n * 0.5 < (n + 1) * 1 first holds at n = 5: at 4 both cost 5.
  const std::vector<Price> own = {{"mine", 0, 1'000, 3'000, 1'000, 500, 1'000},
                                  {"no-discount", 0, 1'000, 1'250, 2'000, 1'000, 1'000}};
  CHECK(break_even_reads("mine", Ttl::five_minutes, own) == 5);
  CHECK(break_even_reads("mine", Ttl::one_hour, own) == 1);
  CHECK_FALSE(break_even_reads("no-discount", Ttl::five_minutes, own).has_value());
  CHECK(cost(tokens(1, 1, 1, 1, 1), "mine", own) == Cost{6'500});
  CHECK_FALSE(cost(tokens(1, 1, 1, 1, 1), "claude-opus-5-5", own).has_value());
}

TEST_CASE("counters that no request can have do not overflow the sum") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Usage usage = tokens(most, most, most, most, most);
  usage.inference_geo = "us";
  CHECK(cost(usage, "claude-fable-5-1")->nano_dollars > 0);
  CHECK(uncached_cost(usage, "claude-fable-5-1")->nano_dollars > 0);
  CHECK(cost(tokens(-5, -5, -5, -5, -5), "claude-opus-5-5") == Cost{0});
}

TEST_CASE("money is written with two to six digits after the point") {
  CHECK(Cost{0}.text() == "$0.00");
  CHECK(Cost{30'200'000}.text() == "$0.0302");
  CHECK(Cost{1'500'000'000}.text() == "$1.50");
  CHECK(Cost{2'000'000'000}.text() == "$2.00");
  CHECK(Cost{1'000}.text() == "$0.000001");
  CHECK(Cost{499}.text() == "$0.00");
  CHECK(Cost{500}.text() == "$0.000001");
  CHECK(Cost{999'999'500}.text() == "$1.00");
  CHECK(Cost{1'234'567'890'123}.text() == "$1234.56789");
  CHECK(Cost{-30'200'000}.text() == "-$0.0302");
  CHECK(Cost{-499}.text() == "$0.00");
  CHECK(Cost{std::numeric_limits<std::int64_t>::min()}.text() == "-$9223372036.854776");
}

TEST_CASE("a session adds up several models, and says what it could not price") {
  SessionCost session;
  session.add(tokens(50, 100'000, 0, 0, 500), "claude-opus-5-5");
  // The write costs a quarter more than plain input and nothing was read yet.
  CHECK(session.saved() == Cost{-100'000'000});
  session.add(tokens(50, 0, 0, 100'000, 500), "claude-opus-5-5");
  session.add(tokens(1'000, 0, 0, 0, 100), "claude-haiku-4-5-20251001");
  session.add(tokens(1'000, 0, 0, 0, 100), "some-local-model");

  CHECK(session.requests() == 4);
  CHECK(session.unpriced_requests() == 1);
  CHECK(session.total() == Cost{510'200'000 + 30'200'000 + 1'500'000});
  CHECK(session.uncached() == Cost{410'200'000 + 410'200'000 + 1'500'000});
  CHECK(session.saved() == Cost{280'000'000});
  CHECK(session.usage().input_tokens == 2'100);
  CHECK(session.usage().cache_read_input_tokens == 100'000);
  CHECK(session.usage().output_tokens == 1'200);
}

}  // namespace
}  // namespace incipit
