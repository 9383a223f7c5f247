#include "incipit/client.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <string>

namespace incipit {
namespace {

using testing::Environment;
using testing::FakeTransport;

// A page of models with these ids, one letter each, or of files.
std::string page(const std::string& ids, const std::string& rest) {
  std::string data;
  for (const char id : ids)
    data += std::string(data.empty() ? "" : ",") + R"({"type":"model","id":")" + id + "\"}";
  return R"({"data":[)" + data + "]," + rest + "}";
}

std::string edges(const std::string& first, const std::string& last, bool more = true) {
  return R"("has_more":)" + std::string(more ? "true" : "false") + R"(,"first_id":")" + first
         + R"(","last_id":")" + last + "\"";
}

struct Fixture {
  Environment environment;
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  Client client{{.api_key = "key", .transport = transport}};

  template <class List>
  std::string ids(List list) {
    std::string result;
    for (const auto& value : list.all())
      result += value.id;
    return result;
  }

  [[nodiscard]] std::string query(std::size_t index) const {
    const std::string& url = transport->request(index).url;
    return url.substr(url.find('/', 8));
  }
};

TEST_CASE_FIXTURE(Fixture, "a list goes on behind the last id of each page (section 19.5)") {
  transport->answer(200, page("ab", edges("a", "b")))
      .answer(200, page("cd", edges("c", "d&")))
      .answer(200, page("e", edges("e", "e", false)));
  CHECK(ids(client.models({.limit = 2}, {.query = {{"lifecycle[]", "active"}}})) == "abcde");
  REQUIRE(transport->requests().size() == 3);
  CHECK(query(0) == "/v1/models?lifecycle%5B%5D=active&limit=2");
  CHECK(query(1) == "/v1/models?lifecycle%5B%5D=active&limit=2&after_id=b");
  CHECK(query(2) == "/v1/models?lifecycle%5B%5D=active&limit=2&after_id=d%26");
}

TEST_CASE_FIXTURE(Fixture, "a list before an id goes backwards, by the first id of each page") {
  transport->answer(200, page("cd", edges("c", "d")))
      .answer(200, page("ab", edges("a", "b", false)));
  CHECK(ids(client.models({.before_id = "e"})) == "cdab");
  CHECK(query(0) == "/v1/models?before_id=e");
  CHECK(query(1) == "/v1/models?before_id=c");
}

TEST_CASE_FIXTURE(Fixture,
                  "a list ends with has_more false, an empty page, or ids that are missing") {
  transport->answer(200, page("", edges("a", "b")));
  CHECK(ids(client.models()).empty());
  transport->answer(200, page("a", R"("has_more":true,"first_id":null,"last_id":null)"));
  CHECK(ids(client.models()) == "a");
  transport->answer(200, R"({"data":[]})");
  CHECK(ids(client.models()).empty());
  CHECK(transport->requests().size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "files go on by token, or by id where the server has no tokens") {
  transport->answer(200, page("a", R"("next_page":"tok en")"))
      .answer(200, page("b", R"("next_page":null)"));
  CHECK(ids(client.files().list({.limit = 1})) == "ab");
  CHECK(query(0) == "/v1/files?limit=1");
  CHECK(query(1) == "/v1/files?limit=1&page=tok%20en");
  transport->answer(200, page("a", R"("next_page":null,)" + edges("a", "a")))
      .answer(200, page("b", edges("b", "b", false)));
  CHECK(ids(client.files().list()) == "ab");
  CHECK(query(3) == "/v1/files?after_id=a");
}

TEST_CASE_FIXTURE(Fixture, "the list of a temporary lives as long as its sequence") {
  transport->answer(200, page("a", edges("a", "a"))).answer(200, page("b", edges("b", "b", false)));
  std::string all;
  for (const ModelInfo& model : client.models().all())
    all += model.id;
  CHECK(all == "ab");
}

TEST_CASE_FIXTURE(Fixture, "pages can be turned by hand, and are fetched when they are due") {
  transport->answer(200, page("ab", edges("a", "b")))
      .answer(200, page("c", edges("c", "c", false)));
  Paged<ModelInfo> models = client.models({.after_id = "0"});
  CHECK(query(0) == "/v1/models?after_id=0");
  CHECK(models.page().data.size() == 2);
  CHECK(models.page().has_more);
  CHECK(transport->requests().size() == 1);
  CHECK(models.next_page());
  CHECK(models.page().data.at(0).id == "c");
  CHECK_FALSE(models.page().has_more);
  CHECK_FALSE(models.next_page());
  CHECK(models.page().data.at(0).id == "c");
}

TEST_CASE_FIXTURE(Fixture,
                  "a list outlives its client, and an error on the way can be tried again") {
  transport->answer(200, page("a", edges("a", "a")))
      .answer(404, "{}")
      .answer(200, page("b", edges("b", "b", false)));
  Paged<ModelInfo> models =
      Client({.api_key = "key", .transport = transport}).models({}, {.max_retries = 0});
  CHECK_THROWS_AS((void)models.next_page(), ApiError);
  CHECK(models.page().data.at(0).id == "a");
  CHECK(models.next_page());
  CHECK(models.page().data.at(0).id == "b");
}

TEST_CASE_FIXTURE(Fixture, "a list in both directions, or of a negative size, is refused") {
  CHECK_THROWS_AS((void)client.models({.after_id = "a", .before_id = "b"}), PromptError);
  CHECK_THROWS_AS((void)client.models({.limit = -1}), PromptError);
}

TEST_CASE_FIXTURE(Fixture, "batches are listed like models") {
  transport->answer(
      200,
      R"({"data":[{"id":"msgbatch_1","processing_status":"ended","request_counts":{}}],"has_more":false,"first_id":"msgbatch_1","last_id":"msgbatch_1"})");
  CHECK(ids(client.batches().list({.limit = 20})) == "msgbatch_1");
  CHECK(query(0) == "/v1/messages/batches?limit=20");
}

TEST_CASE_FIXTURE(Fixture, "a page that is none is a ParseError with its path") {
  transport->answer(200, R"({"data":[{"id":1}]})");
  try {
    (void)client.models();
    FAIL("nothing was thrown");
  } catch (const ParseError& error) {
    CHECK(error.path == "data.0.id");
  }
}

}  // namespace
}  // namespace incipit
