// Paths, verbs, keys, versions, and the endpoints that only tell.
#include "incipit/json.h"
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

#include <fstream>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using incipit::JsonValue;

namespace {

constexpr std::string_view keys =
    R"({"key": "key-alice", "organization": "org-1", "workspace": "ws-1"}
{"key": "key-bob",   "organization": "org-1", "workspace": "ws-1"}

{"key": "key-carol", "organization": "org-1", "workspace": "ws-2"}
)";

GatewaySetup with_keys() {
  GatewaySetup setup;
  setup.keys = keys;
  return setup;
}

std::string error_message(const Answer& answer) {
  return JsonValue::parse(answer.body).find("error")->find("message")->as_string();
}

std::vector<std::string> ids(const Answer& answer) {
  std::vector<std::string> found;
  const JsonValue page = JsonValue::parse(answer.body);
  for (const JsonValue& model : page.find("data")->as_array()) {
    found.push_back(model.find("id")->as_string());
  }
  return found;
}

}  // namespace

TEST_CASE("an unknown path is 404 and a wrong verb 405 with what is allowed") {
  const LoopbackGateway gateway;
  const Answer unknown = ask(gateway, get("/v1/nothing"));
  CHECK(unknown.status == 404);
  CHECK(unknown.body.find("\"type\":\"not_found_error\"") != std::string::npos);
  CHECK(unknown.header("x-should-retry") == "false");

  const Answer wrong = ask(gateway, get("/v1/messages"));
  CHECK(wrong.status == 405);
  CHECK(wrong.header("allow") == "POST, OPTIONS");
  CHECK(wrong.body.find("\"type\":\"invalid_request_error\"") != std::string::npos);
  CHECK(ask(gateway, post("/v1/models", "{}")).header("allow") == "GET, HEAD, OPTIONS");
}

TEST_CASE("paths of the hosted API that are not served say so") {
  const LoopbackGateway gateway;
  for (const std::string_view path : {"/v1/complete", "/v1/skills/x", "/v1/organizations"}) {
    const Answer answer = ask(gateway, get(path));
    CHECK(answer.status == 404);
    CHECK(answer.header("x-should-retry") == "false");
    CHECK(error_message(answer).find("not served by this gateway") != std::string::npos);
  }
}

TEST_CASE("the query beta=true is ignored") {
  const LoopbackGateway gateway;
  CHECK(ask(gateway, post("/v1/messages?beta=true", message("Hi", 1, false))).status == 200);
}

TEST_CASE("the version header is required below /v1 and its value is not") {
  const LoopbackGateway gateway;
  const Answer without = ask(gateway, "GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n");
  CHECK(without.status == 400);
  CHECK(error_message(without) == "anthropic-version: header is required");
  for (const std::string version : {"2023-06-01", "2026-10-21", "2031-01-01"}) {
    CHECK(ask(gateway,
              "GET /v1/models HTTP/1.1\r\nhost: a\r\nanthropic-version: " + version + "\r\n\r\n")
              .status
          == 200);
  }
}

TEST_CASE("a version that is no date is refused (W-6)") {
  const LoopbackGateway gateway;
  const auto message = [&](const std::string& version) {
    return error_message(ask(gateway, "GET /v1/models HTTP/1.1\r\nhost: a\r\nanthropic-version: "
                                          + version + "\r\n\r\n"));
  };
  CHECK(message("") == "anthropic-version: header is required");
  for (const std::string version : {"latest", "2023-6-1", "2023-06-01x", "2023/06/01"}) {
    CHECK(message(version)
          == "anthropic-version: '" + version
                 + "' is not a version; send 2023-06-01 or 2026-10-21");
  }
}

TEST_CASE("unknown betas are accepted, or refused where that was asked for") {
  const std::string body = message("Hi", 1, false);
  const auto with = [&](const LoopbackGateway& gateway, std::string_view headers) {
    return ask(gateway, post("/v1/messages", body, headers));
  };
  const LoopbackGateway lenient;
  CHECK(with(lenient, "anthropic-beta: not-yet-2031-01-01\r\n").status == 200);

  GatewaySetup setup;
  setup.strict_betas = true;
  const LoopbackGateway strict(setup);
  CHECK(with(strict,
             "anthropic-beta: claude-code-20250219,interleaved-thinking-2025-05-14, "
             "prompt-caching-scope-2026-01-05\r\nanthropic-beta: managed-agents-2026-04-01\r\n")
            .status
        == 200);
  const Answer refused =
      with(strict, "anthropic-beta: fast-mode-2026-02-01, x\r\nanthropic-beta: y\r\n");
  CHECK(refused.status == 400);
  CHECK(error_message(refused)
        == "Unexpected value(s) `x`, `y` for the `anthropic-beta` header. Please consult our "
           "documentation at platform.claude.com/docs or try again without the header.");
}

TEST_CASE("usage repeats geography, and speed when one was asked for") {
  const LoopbackGateway gateway;
  const auto usage = [&](std::string_view more) {
    const Answer answer = ask(
        gateway, post("/v1/messages", R"({"model":"claude-sonnet-4-6","max_tokens":1,"messages":[)"
                                      R"({"role":"user","content":"Hi"}])"
                                          + std::string(more) + "}"));
    return answer.body.substr(std::min(answer.body.find("\"service_tier\""), answer.body.size()));
  };
  CHECK(usage("").starts_with(R"("service_tier":"standard","inference_geo":"global"})"));
  CHECK(usage(R"(,"inference_geo":"us","speed":"fast","service_tier":"standard_only")")
            .starts_with(R"("service_tier":"standard","inference_geo":"us","speed":"fast"})"));
  CHECK(usage(R"(,"speed":"standard")")
            .starts_with(
                R"("service_tier":"standard","inference_geo":"global","speed":"standard"})"));
}

TEST_CASE("the newest version's rules hold for an unknown version") {
  const LoopbackGateway gateway;
  const std::string body = R"({"model":"claude-sonnet-4-6","max_tokens":1,"temperature":0,)"
                           R"("messages":[{"role":"user","content":"Hi"}]})";
  const auto status = [&](const std::string& version) {
    return ask(gateway, "POST /v1/messages HTTP/1.1\r\nhost: a\r\nanthropic-version: " + version
                            + "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n"
                            + body)
        .status;
  };
  CHECK(status("2023-06-01") == 200);
  CHECK(status("2026-10-21") == 400);
  CHECK(status("2031-01-01") == 400);
}

TEST_CASE("a compressed body is refused with its error code") {
  const LoopbackGateway gateway;
  const Answer answer =
      ask(gateway, post("/v1/messages", "\x1f\x8b", "content-encoding: gzip\r\n"));
  CHECK(answer.status == 400);
  CHECK(answer.body.find("request_body_encoding_unsupported") != std::string::npos);
}

TEST_CASE("with keys configured a key is needed, in either header") {
  const LoopbackGateway gateway(with_keys());
  const Answer none = ask(gateway, get("/v1/models"));
  CHECK(none.status == 401);
  CHECK(none.body.find("\"type\":\"authentication_error\"") != std::string::npos);
  CHECK(error_message(none) == "x-api-key header is required");
  CHECK(none.header("x-should-retry") == "false");
  CHECK(error_message(ask(gateway, get("/v1/models", "x-api-key: wrong\r\n")))
        == "invalid x-api-key");
  CHECK(error_message(ask(gateway, get("/v1/models", "authorization: Bearer wrong\r\n")))
        == "invalid bearer token");
  CHECK(ask(gateway, get("/v1/models", "authorization: Basic key-alice\r\n")).status == 401);

  CHECK(ask(gateway, get("/v1/models", "X-Api-Key: key-alice\r\n")).status == 200);
  CHECK(ask(gateway, get("/v1/models", "Authorization: bearer key-alice\r\n")).status == 200);
  CHECK(ask(gateway, get("/v1/models", "x-api-key: wrong\r\nauthorization: Bearer key-bob\r\n"))
            .status
        == 200);
}

TEST_CASE("with keys configured only the health check is open") {
  const LoopbackGateway gateway(with_keys());
  CHECK(ask(gateway, get("/health")).status == 200);
  for (const std::string_view path : {"/metrics", "/incipit/entries", "/v1/models/claude-opus-5"}) {
    CHECK(ask(gateway, get(path)).status == 401);
    CHECK(ask(gateway, get(path, "x-api-key: key-carol\r\n")).status == 200);
  }
}

TEST_CASE("without keys configured any key will do") {
  const LoopbackGateway gateway;
  CHECK(ask(gateway, get("/v1/models")).status == 200);
  CHECK(ask(gateway, get("/v1/models", "x-api-key: whatever\r\n")).status == 200);
}

TEST_CASE("a keys file with a mistake is refused with its line") {
  const auto refusal = [](const std::string& text) -> std::string {
    const auto file = std::filesystem::temp_directory_path() / "incipit-keys-with-a-mistake";
    std::ofstream(file) << text;
    try {
      const Keys read(file);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  const std::string good = "{\"key\":\"secret\"}\n";
  CHECK(refusal(good + "\n{\"key\":\"b\",\"workspace\":3}\n").find("line 3") != std::string::npos);
  CHECK(refusal(good + good).find("line 2") != std::string::npos);
  CHECK(refusal(good + good).find("secret") == std::string::npos);
  CHECK(refusal("{\"key\":\"\"}").find("\"key\" must be") != std::string::npos);
  CHECK(refusal("{\"organization\":\"o\"}").find("\"key\" must be") != std::string::npos);
  CHECK(refusal("{\"key\":\"a\",\"team\":\"o\"}").find("\"team\"") != std::string::npos);
  CHECK(refusal("secret org workspace\n").find("line 1") != std::string::npos);
  CHECK(refusal("\n \n").find("holds no key") != std::string::npos);
  CHECK(refusal(good + "{\"key\":\"b\",\"organization\":\"o\"}").empty());
  CHECK_THROWS_WITH_AS(Keys("/nowhere/at/all"), doctest::Contains("/nowhere/at/all"),
                       std::runtime_error);
}

TEST_CASE("a workspace that is named must be the key's own, where keys have workspaces") {
  const auto status = [](const LoopbackGateway& gateway, const std::string& headers) {
    return ask(gateway, get("/v1/models", headers));
  };
  const LoopbackGateway keyed(with_keys());
  CHECK(status(keyed, "x-api-key: key-alice\r\nanthropic-workspace-id: ws-1\r\n").status == 200);
  const Answer other = status(keyed, "x-api-key: key-alice\r\nanthropic-workspace-id: ws-2\r\n");
  CHECK(other.status == 403);
  CHECK(other.body.find("\"type\":\"permission_error\"") != std::string::npos);
  CHECK(error_message(other).find("'ws-1'") != std::string::npos);
  CHECK(status(LoopbackGateway(), "anthropic-workspace-id: wrkspc_01\r\n").status == 200);
}

TEST_CASE("an answer below /v1 names the organization and all twelve rate limits") {
  const LoopbackGateway gateway(with_keys());
  const Answer answer = ask(gateway, get("/v1/models", "x-api-key: key-alice\r\n"));
  CHECK(answer.header("anthropic-organization-id") == "org-1");
  CHECK(answer.header("anthropic-workspace-id") == "ws-1");
  for (const std::string kind : {"requests", "tokens", "input-tokens", "output-tokens"}) {
    const std::string stem = "anthropic-ratelimit-" + kind + '-';
    CHECK(answer.header(stem + "limit") != "");
    CHECK(answer.header(stem + "remaining") == answer.header(stem + "limit"));
    CHECK(answer.header(stem + "reset").size() == std::string("2026-09-29T08:53:31Z").size());
  }
  const Answer refused = ask(gateway, get("/v1/models?limit=x", "x-api-key: key-alice\r\n"));
  CHECK(refused.status == 400);
  CHECK(refused.header("anthropic-ratelimit-requests-limit").empty());
}

TEST_CASE("the model list pages in both directions and hides retired models") {
  const LoopbackGateway gateway;
  const std::vector<std::string> all = ids(ask(gateway, get("/v1/models?limit=1000")));
  REQUIRE(all.size() > 10);
  const JsonValue first = JsonValue::parse(ask(gateway, get("/v1/models?limit=3")).body);
  CHECK(first.find("data")->as_array().size() == 3);
  CHECK(first.find("has_more")->as_boolean());
  CHECK(first.find("first_id")->as_string() == all[0]);
  CHECK(first.find("last_id")->as_string() == all[2]);
  CHECK(ids(ask(gateway, get("/v1/models?limit=3&after_id=" + all[2])))
        == std::vector<std::string>(all.begin() + 3, all.begin() + 6));
  CHECK(ids(ask(gateway, get("/v1/models?limit=2&before_id=" + all[5])))
        == std::vector<std::string>(all.begin() + 3, all.begin() + 5));
  const JsonValue last =
      JsonValue::parse(ask(gateway, get("/v1/models?after_id=" + all.back())).body);
  CHECK(!last.find("has_more")->as_boolean());
  CHECK(last.find("last_id")->is_null());

  const auto has = [](const std::vector<std::string>& list, std::string_view id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  CHECK(has(all, "claude-opus-5"));
  for (const std::string& id : ids(ask(gateway, get("/v1/models?lifecycle%5B%5D=retired")))) {
    CHECK(!has(all, id));
  }
  CHECK(ids(ask(gateway, get("/v1/models?limit=1000&lifecycle[]=active&lifecycle[]=deprecated")))
        == all);
}

TEST_CASE("the model list without a limit holds at most twenty") {
  const LoopbackGateway gateway;
  const std::size_t all = ids(ask(gateway, get("/v1/models?limit=1000"))).size();
  CHECK(ids(ask(gateway, get("/v1/models"))).size() == std::min<std::size_t>(20, all));
}

TEST_CASE("a page that cannot be is refused with the parameter") {
  const LoopbackGateway gateway;
  for (const auto& [query, parameter] :
       std::vector<std::pair<std::string, std::string>>{{"limit=0", "limit: "},
                                                        {"limit=1001", "limit: "},
                                                        {"limit=ten", "limit: "},
                                                        {"after_id=nobody", "after_id: "},
                                                        {"before_id=nobody", "before_id: "},
                                                        {"after_id=a&before_id=b", "after_id: "},
                                                        {"lifecycle[]=young", "lifecycle: "}}) {
    CAPTURE(query);
    const Answer answer = ask(gateway, get("/v1/models?" + query));
    CHECK(answer.status == 400);
    CHECK(error_message(answer).starts_with(parameter));
  }
}

TEST_CASE("one model is shown by id, by alias and by any claude name") {
  const LoopbackGateway gateway;
  const auto shown = [&](const std::string& name) {
    return JsonValue::parse(ask(gateway, get("/v1/models/" + name)).body).find("id")->as_string();
  };
  CHECK(shown("claude-opus-5") == "claude-opus-5");
  CHECK(shown("claude-haiku-4-5") == shown("claude-haiku-4-5-20251001"));
  CHECK(shown("claude-tomorrow-9") == "claude-tomorrow-9");
  const Answer unknown = ask(gateway, get("/v1/models/gpt%2D4o"));
  CHECK(unknown.status == 404);
  CHECK(error_message(unknown) == "model: gpt-4o");

  const JsonValue model = JsonValue::parse(ask(gateway, get("/v1/models/claude-opus-5")).body);
  CHECK(model.find("type")->as_string() == "model");
  CHECK(model.find("max_input_tokens")->as_integer() == 4096);
  CHECK(!model.find("capabilities")
             ->find("thinking")
             ->find("types")
             ->find("enabled")
             ->find("supported")
             ->as_boolean());
}

TEST_CASE("the loaded model is listed and answers under its own name") {
  const LoopbackGateway gateway;
  const std::vector<std::string> all = ids(ask(gateway, get("/v1/models?limit=1000")));
  const std::string own = all.back();
  CHECK(own == "tiny");
  const std::string body =
      "{\"model\":\"" + own + R"(","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]})";
  const Answer answer = ask(gateway, post("/v1/messages", body));
  CHECK(answer.status == 200);
  CHECK(JsonValue::parse(answer.body).find("model")->as_string() == own);
}

TEST_CASE("the clock can be moved only when it is virtual, and only forward") {
  CHECK(ask(LoopbackGateway(), post("/incipit/clock", R"({"advance_seconds":1})")).status == 404);
  GatewaySetup setup;
  setup.virtual_clock = true;
  const LoopbackGateway gateway(setup);
  CHECK(ask(gateway, post("/incipit/clock", R"({"advance_seconds":1.5})")).status == 200);
  for (const std::string_view body :
       {"", "[]", "{}", R"({"advance_seconds":-1})", R"({"advance_seconds":"1"})",
        R"({"advance_seconds":1e300})", R"({"advance_seconds":1,"and":2})"}) {
    CAPTURE(body);
    CHECK(ask(gateway, post("/incipit/clock", body)).status == 400);
  }
}

TEST_CASE("metrics count what was answered") {
  const LoopbackGateway gateway;
  ask(gateway, post("/v1/messages", message("Hi", 3, false)));
  ask(gateway, get("/v1/nothing"));
  // A request is counted when its answer is out.
  Answer answer;
  CHECK(eventually([&] {
    answer = ask(gateway, get("/metrics"));
    return answer.body.find("status=\"404\"") != std::string::npos
           && answer.body.find("incipit_ttft_seconds_count 1\n") != std::string::npos;
  }));
  CHECK(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
  for (const std::string_view line :
       {"incipit_requests_total{status=\"200\"} ", "incipit_requests_total{status=\"404\"} 1\n",
        "incipit_output_tokens_total 3\n", "incipit_entries 0\n", "incipit_entries_lost_total 0\n",
        "incipit_requests_running 0\n", "incipit_ttft_seconds_count 1\n",
        "incipit_ttft_seconds_bucket{le=\"+Inf\"} 1\n"}) {
    CAPTURE(line);
    CHECK(answer.body.find(line) != std::string::npos);
  }
}
