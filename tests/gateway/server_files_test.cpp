// The endpoints below /v1/files, and how large a body may be on which path (sections 2 and 16).
#include "incipit/json.h"
#include "tests/support/loopback_gateway.h"

#include <doctest/doctest.h>

using namespace incipit::gateway;
using namespace incipit::gateway::testing;
using incipit::JsonValue;

namespace {

std::string error_message(const Answer& answer) {
  const JsonValue body = JsonValue::parse(answer.body);
  const JsonValue* error = body.find("error");
  return error == nullptr ? "no error: " + answer.body : error->find("message")->as_string();
}

std::string error_code(const Answer& answer) {
  const JsonValue body = JsonValue::parse(answer.body);
  const JsonValue* details = body.find("error")->find("details");
  return details == nullptr ? "" : details->find("error_code")->as_string();
}

std::string part(std::string_view parameters, std::string_view content) {
  return "--b\r\nContent-Disposition: form-data; " + std::string(parameters) + "\r\n\r\n"
         + std::string(content) + "\r\n";
}

std::string form(const std::string& parts, const std::string& headers = "") {
  return post("/v1/files", parts + "--b--\r\n",
              "content-type: multipart/form-data; boundary=b\r\n" + headers);
}

std::string deletion(const std::string& path) {
  return "DELETE " + path + " HTTP/1.1\r\nhost: a\r\nanthropic-version: 2023-06-01\r\n\r\n";
}

std::string uploaded(const LoopbackGateway& gateway, const std::string& name) {
  const Answer answer = ask(gateway, form(part("name=file; filename=" + name, "content")));
  REQUIRE(answer.status == 200);
  return JsonValue::parse(answer.body).find("id")->as_string();
}

std::vector<std::string> ids(const JsonValue& page) {
  std::vector<std::string> found;
  for (const JsonValue& file : page.find("data")->as_array())
    found.push_back(file.find("id")->as_string());
  return found;
}

using Ids = std::vector<std::string>;

}  // namespace

TEST_CASE("a file goes up, is described, and goes") {
  const LoopbackGateway gateway;
  const Answer answer = ask(gateway, form(part("name=\"file\"; filename=\"notes.txt\"", "hello")
                                          + part("name=\"expires_in_seconds\"", "3600")));
  CHECK(answer.status == 200);
  CHECK(answer.header("request-id").starts_with("req_"));
  CHECK(answer.header("anthropic-workspace-id") == "default");
  const JsonValue file = JsonValue::parse(answer.body);
  const std::string id = file.find("id")->as_string();
  CHECK(file.find("type")->as_string() == "file");
  CHECK(file.find("filename")->as_string() == "notes.txt");
  CHECK(file.find("mime_type")->as_string() == "text/plain");
  CHECK(file.find("size_bytes")->as_integer() == 5);
  CHECK(!file.find("downloadable")->as_boolean());
  CHECK(!file.find("expires_at")->is_null());
  CHECK(ask(gateway, get("/v1/files/" + id)).body == answer.body);
  const Answer gone = ask(gateway, deletion("/v1/files/" + id));
  CHECK(gone.status == 200);
  CHECK(gone.body == "{\"id\":\"" + id + "\",\"type\":\"file_deleted\"}");
  for (const std::string request :
       {get("/v1/files/" + id), get("/v1/files/" + id + "/content"), deletion("/v1/files/" + id)}) {
    const Answer missing = ask(gateway, request);
    CHECK(missing.status == 404);
    CHECK(error_message(missing) == "File not found: " + id);
  }
}

TEST_CASE("uploaded files are not given back, expired ones are gone") {
  GatewaySetup setup;
  setup.virtual_clock = true;
  const LoopbackGateway gateway(setup);
  const Answer answer = ask(gateway, form(part("name=file; filename=a", "hello")
                                          + part("name=expires_in_seconds", "7776000")));
  const std::string id = JsonValue::parse(answer.body).find("id")->as_string();
  const Answer content = ask(gateway, get("/v1/files/" + id + "/content"));
  CHECK(content.status == 400);
  CHECK(error_code(content) == "file_not_downloadable");
  ask(gateway, post("/incipit/clock", R"({"advance_seconds": 7776000})"));
  const Answer expired = ask(gateway, get("/v1/files/" + id + "/content"));
  CHECK(expired.status == 404);
  CHECK(error_code(expired) == "file_expired");
}

TEST_CASE("what an upload lacks or has too much of is named") {
  const LoopbackGateway gateway;
  const auto complaint = [&](const std::string& request) {
    const Answer answer = ask(gateway, request);
    CHECK(answer.status == 400);
    CHECK(answer.header("x-should-retry") == "false");
    return error_message(answer);
  };
  const std::string file = part("name=file; filename=a", "x");
  CHECK(complaint(form("")) == "file: Field required");
  CHECK(complaint(form(file + file)) == "file: given more than once");
  CHECK(complaint(form(file + part("name=purpose", "x")))
        == "purpose: Extra inputs are not permitted");
  const auto lifetime = [&](const std::string& text) {
    return complaint(form(file + part("name=expires_in_seconds", text)));
  };
  CHECK(lifetime("3599") == "expires_in_seconds: Input should be greater than or equal to 3600");
  CHECK(lifetime("7776001") == "expires_in_seconds: Input should be less than or equal to 7776000");
  for (const std::string text : {"", "1e4", "3600.5", "an hour", "99999999999999999999"})
    CHECK(lifetime(text) == "expires_in_seconds: Input should be a valid integer");
  CHECK(complaint(post("/v1/files", "{}", "content-type: application/json\r\n"))
            .find("'application/json'")
        != std::string::npos);
  CHECK(complaint(post("/v1/files", "x")).find("content-type: missing") != std::string::npos);
  CHECK(complaint(post("/v1/files", file, "content-type: multipart/form-data; boundary=b\r\n"))
            .find("the body ends within a part")
        != std::string::npos);
}

TEST_CASE("lists page by cursor and by ids at once, newest first") {
  const LoopbackGateway gateway;
  Ids all;
  for (const std::string name : {"a", "b", "c", "d", "e"})
    all.insert(all.begin(), uploaded(gateway, name));
  const auto list = [&](const std::string& query) {
    const Answer answer = ask(gateway, get("/v1/files" + query));
    REQUIRE(answer.status == 200);
    return JsonValue::parse(answer.body);
  };
  const JsonValue whole = list("");
  CHECK(ids(whole) == all);
  CHECK(whole.find("next_page")->is_null());
  CHECK(!whole.find("has_more")->as_boolean());

  const JsonValue first = list("?limit=2");
  CHECK(ids(first) == Ids(all.begin(), all.begin() + 2));
  CHECK(first.find("has_more")->as_boolean());
  CHECK(first.find("first_id")->as_string() == all[0]);
  CHECK(first.find("last_id")->as_string() == all[1]);
  const std::string cursor = first.find("next_page")->as_string();
  CHECK(cursor.starts_with("page_"));
  CHECK(ids(list("?limit=2&page=" + cursor)) == Ids(all.begin() + 2, all.begin() + 4));
  CHECK(ids(list("?limit=2&after_id=" + all[1])) == Ids(all.begin() + 2, all.begin() + 4));
  CHECK(ids(list("?limit=2&before_id=" + all[3])) == Ids(all.begin() + 1, all.begin() + 3));
  ask(gateway, deletion("/v1/files/" + all[1]));  // a cursor outlives its file
  const JsonValue last = list("?page=" + cursor);
  CHECK(ids(last) == Ids(all.begin() + 2, all.end()));
  CHECK(last.find("next_page")->is_null());

  for (const std::string query : {"?ids=" + all[4] + "&ids=" + all[2] + "&ids=file_x",
                                  "?ids[]=" + all[4] + "&ids%5B%5D=" + all[2],
                                  "?ids=" + all[4] + "," + all[2] + "," + all[2]}) {
    CAPTURE(query);
    CHECK(ids(list(query)) == Ids{all[2], all[4]});
    CHECK(list(query).find("next_page")->is_null());
  }
}

TEST_CASE("queries that make no sense are refused") {
  const LoopbackGateway gateway;
  std::string many = "?ids=";
  for (int i = 0; i < 101; ++i)
    many += "f" + std::to_string(i) + ",";
  for (const std::string query :
       {std::string("?limit=0"), std::string("?limit=1001"), std::string("?page=2"),
        std::string("?page=page_x"), std::string("?page=page_1&after_id=f"),
        std::string("?ids=f&limit=5"), std::string("?after_id=file_x"), many}) {
    CAPTURE(query);
    CHECK(ask(gateway, get("/v1/files" + query)).status == 400);
  }
  const Answer verb = ask(gateway, deletion("/v1/files"));
  CHECK(verb.status == 405);
  CHECK(verb.header("allow") == "POST, GET, HEAD, OPTIONS");
  CHECK(ask(gateway, get("/v1/files/")).status == 404);
  CHECK(ask(gateway, get("/v1/files/a/b")).status == 404);
}

TEST_CASE("workspaces have their own files, also where a document names one") {
  GatewaySetup setup;
  setup.keys = R"({"key": "a", "workspace": "one"}
{"key": "b", "workspace": "two"})";
  const LoopbackGateway gateway(setup);
  const Answer answer =
      ask(gateway, form(part("name=file; filename=a.txt", "hello"), "x-api-key: a\r\n"));
  const std::string id = JsonValue::parse(answer.body).find("id")->as_string();
  CHECK(ask(gateway, get("/v1/files/" + id, "x-api-key: a\r\n")).status == 200);
  CHECK(ask(gateway, get("/v1/files/" + id, "x-api-key: b\r\n")).status == 404);
  const std::string body =
      R"({"model":"claude-sonnet-4-6","messages":[{"role":"user","content":[{"type":"document",)"
      R"("source":{"type":"file","file_id":")"
      + id + R"("}},{"type":"text","text":"?"}]}]})";
  const auto count = [&](const std::string& key) {
    return ask(gateway, post("/v1/messages/count_tokens", body, "x-api-key: " + key + "\r\n"));
  };
  CHECK(number_in(count("a").body, "input_tokens") > 5);
  CHECK(count("b").status == 404);
  CHECK(error_message(count("b")) == "File not found: " + id);
}

TEST_CASE("each path has a body limit of its own, and large bodies need a key that is known") {
  GatewaySetup setup;
  setup.server.body_limits = {.message = 1000, .batch = 2000, .file = 3000};
  setup.keys = R"({"key": "a"})";
  const LoopbackGateway gateway(setup);
  const auto announce = [&](const std::string& path, int length, const std::string& headers) {
    Client client(gateway);
    client.send("POST " + path + " HTTP/1.1\r\nhost: a\r\n" + headers
                + "content-length: " + std::to_string(length) + "\r\n\r\n");
    return client.answer().status;
  };
  const std::string key = "x-api-key: a\r\n";
  CHECK(announce("/v1/messages", 1001, key) == 413);
  CHECK(announce("/v1/messages/count_tokens", 1001, key) == 413);
  CHECK(announce("/v1/messages/batches", 2001, key) == 413);
  CHECK(announce("/v1/files", 3001, key) == 413);
  CHECK(announce("/v1/files", 3000, "") == 401);
  CHECK(announce("/v1/messages/batches", 10, "x-api-key: wrong\r\n") == 401);
  const auto read = [&](const std::string& path, std::size_t length) {
    return ask(gateway, post(path, std::string(length, 'x'), key)).status;
  };
  CHECK(read("/v1/messages", 1000) == 400);
  CHECK(read("/v1/messages/batches", 2000) == 400);
  CHECK(read("/v1/files", 3000) == 400);
  Client client(gateway);
  client.send("POST /v1/files HTTP/1.1\r\nhost: a\r\n" + key
              + "transfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 4; ++i)
    client.send("3e8\r\n" + std::string(1000, 'x') + "\r\n");
  CHECK(client.answer().status == 413);
}
