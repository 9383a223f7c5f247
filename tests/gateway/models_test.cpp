#include "gateway/api/anthropic_request.h"
#include "gateway/cache/ledger.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

using incipit::gateway::cache_profile;
using incipit::gateway::model_table;
using incipit::gateway::ModelRow;
using incipit::gateway::resolve_model;

namespace {

bool is_rfc3339(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, read = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day,
                                 &hour, &minute, &second, &read);
  return fields == 6 && read == 20 && text.size() == 20 && month >= 1 && month <= 12 && day >= 1
         && day <= 31 && hour < 24 && minute < 60 && second < 60;
}

}  // namespace

TEST_CASE("the table holds every id that the official client knows") {
  // anthropic-wire section 14; both spellings where there are two.
  std::set<std::string> known;
  for (const ModelRow& row : model_table()) {
    CHECK(known.insert(std::string(row.id)).second);
    if (!row.alias.empty()) CHECK(known.insert(std::string(row.alias)).second);
  }
  CHECK(known == std::set<std::string>{"claude-fable-5-2",  "claude-mythos-5-2",
                                       "claude-haiku-5-5",  "claude-sonnet-5-5",
                                       "claude-fable-5-1",  "claude-opus-5-5",
                                       "claude-mythos-5-1", "claude-sonnet-5",
                                       "claude-fable-5",    "claude-mythos-5",
                                       "claude-opus-5",     "claude-opus-4-8",
                                       "claude-opus-4-7",   "claude-mythos-preview",
                                       "claude-opus-4-6",   "claude-sonnet-4-6",
                                       "claude-haiku-4-5",  "claude-haiku-4-5-20251001",
                                       "claude-opus-4-5",   "claude-opus-4-5-20251101",
                                       "claude-sonnet-4-5", "claude-sonnet-4-5-20250929"});
}

TEST_CASE("rows are well formed and newest first") {
  const std::set<std::string_view> lines = {"haiku", "sonnet", "opus", "fable", "mythos"};
  const std::set<std::string_view> lifecycles = {"active", "deprecated", "retired"};
  std::string newer = "9999";
  for (const ModelRow& row : model_table()) {
    const std::string id(row.id);
    CAPTURE(id);
    const std::string created(row.created_at);
    CHECK(is_rfc3339(created));
    CHECK(created <= newer);
    newer = created;
    CHECK(lines.count(row.line) == 1);
    CHECK(id.find(row.line) != std::string::npos);
    CHECK(lifecycles.count(row.lifecycle) == 1);
    CHECK(row.display_name.starts_with("Claude "));
    const bool is_4_5 = id.find("-4-5-") != std::string::npos;
    CHECK(row.max_output_tokens == (is_4_5 ? 64000 : 128000));
  }
}

TEST_CASE("a dated id carries its date") {
  for (const ModelRow& row : model_table()) {
    if (row.alias.empty()) continue;
    const std::string date(row.id.substr(row.id.size() - 8));
    CHECK(std::string(row.created_at)
          == date.substr(0, 4) + "-" + date.substr(4, 2) + "-" + date.substr(6) + "T00:00:00Z");
    CHECK(row.id.starts_with(row.alias));
  }
}

TEST_CASE("an alias and its dated id are one model") {
  CHECK(resolve_model("claude-haiku-4-5", "local") == "claude-haiku-4-5-20251001");
  CHECK(resolve_model("claude-haiku-4-5-20251001", "local") == "claude-haiku-4-5-20251001");
  CHECK(resolve_model("claude-opus-4-5", "local") == resolve_model("claude-opus-4-5-20251101", ""));
}

TEST_CASE("every row resolves to itself") {
  for (const ModelRow& row : model_table()) {
    CHECK(resolve_model(row.id, "local") == std::string(row.id));
  }
}

TEST_CASE("any other claude name is accepted as itself, the local id too, nothing else") {
  CHECK(resolve_model("claude-opus-9", "local") == "claude-opus-9");
  CHECK(resolve_model("claude-3-5-haiku-20241022", "local") == "claude-3-5-haiku-20241022");
  CHECK(resolve_model("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct") == "SmolLM2-135M-Instruct");
  for (const char* unknown :
       {"", "gpt-5", "claude", "claude-", "Claude-opus-5", " claude-opus-5", "local2",
        "claude-x\r\nset-cookie: a", "claude-\"", "claude-\xc3\xa9"}) {
    CAPTURE(unknown);
    CHECK(!resolve_model(unknown, "local"));
  }
  CHECK(!resolve_model("", ""));
  CHECK(!resolve_model("claude-" + std::string(122, 'x'), "local"));
  CHECK(resolve_model("claude-" + std::string(121, 'x'), "local"));
}

TEST_CASE("an alias caches like its dated id") {
  for (const ModelRow& row : model_table()) {
    if (row.alias.empty()) continue;
    CHECK(cache_profile(row.id).minimum_tokens == cache_profile(row.alias).minimum_tokens);
  }
}
