#include "incipit/client.h"
#include "tests/support/fake_transport.h"

#include <doctest/doctest.h>

#include <string>

namespace incipit {
namespace {

using testing::Environment;
using testing::FakeTransport;
using testing::header;

constexpr const char* metadata =
    R"({"id":"file_1","type":"file","filename":"a.pdf","mime_type":"application/pdf","size_bytes":102400,"created_at":"2026-12-01T00:00:00Z","downloadable":true,"expires_at":null})";

struct Fixture {
  Environment environment;
  std::shared_ptr<FakeTransport> transport = std::make_shared<FakeTransport>();
  Client client{{.api_key = "key", .transport = transport}};
};

TEST_CASE_FIXTURE(Fixture, "a file goes up as multipart/form-data") {
  transport->answer(200, metadata);
  const FileMetadata file = client.files().upload({.filename = "a \"b\"\r\n\xC3\xA9.pdf",
                                                   .content = std::string("%PDF\0\r\n--", 9),
                                                   .mime_type = "application/pdf",
                                                   .expires_in_seconds = 3600});
  CHECK(file.id == "file_1");
  CHECK(file.filename == "a.pdf");
  CHECK(file.mime_type == "application/pdf");
  CHECK(file.size_bytes == 102400);
  CHECK(file.created_at == "2026-12-01T00:00:00Z");
  CHECK(file.downloadable);
  CHECK(file.expires_at.empty());
  CHECK(file.json.text() == metadata);

  const HttpRequest& request = transport->request();
  CHECK(request.method + request.url == "POSThttps://api.anthropic.com/v1/files");
  const std::string type = header(request, "content-type");
  const std::string prefix = "multipart/form-data; boundary=";
  REQUIRE(type.starts_with(prefix));
  const std::string line = "--" + type.substr(prefix.size());
  CHECK(*request.body
        == line + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a %22b%22%0D%0A\xC3\xA9.pdf\"\r\n"
               "Content-Type: application/pdf\r\n\r\n"
               + std::string("%PDF\0\r\n--", 9) + "\r\n" + line
               + "\r\nContent-Disposition: form-data; name=\"expires_in_seconds\"\r\n\r\n3600\r\n" + line + "--\r\n");
}

TEST_CASE_FIXTURE(Fixture, "the boundary does not occur in the content") {
  const auto boundary = [&](const std::string& content) {
    transport->answer(200, metadata);
    (void)client.files().upload({.filename = "f", .content = content});
    const std::string type = header(transport->requests().back(), "content-type");
    return type.substr(type.find('=') + 1);
  };
  std::string content;
  for (int round = 0; round < 3; ++round) {
    const std::string found = boundary(content);
    CHECK(content.find(found) == std::string::npos);
    content += found + "\r\n";
  }
  CHECK(boundary(content) == boundary(content));
}

TEST_CASE_FIXTURE(Fixture, "a MIME type cannot smuggle in a header") {
  CHECK_THROWS_AS((void)client.files().upload({.filename = "f", .mime_type = "a\r\nb: c"}),
                  PromptError);
  CHECK_THROWS_AS((void)client.files().upload({.filename = "f", .mime_type = ""}), PromptError);
}

TEST_CASE_FIXTURE(Fixture, "a file is described, downloaded byte for byte, and removed") {
  const std::string content("\x89PNG\0\xff", 6);
  transport->answer(200, metadata)
      .answer(200, content)
      .answer(200, R"({"id":"file_1","type":"file_deleted"})");
  CHECK(client.files().get("file_1").id == "file_1");
  CHECK(client.files().download("file_1") == content);
  client.files().remove("a?b");
  const std::string base = "https://api.anthropic.com/v1/files/";
  CHECK(transport->request(0).method + transport->request(0).url == "GET" + base + "file_1");
  CHECK(transport->request(1).method + transport->request(1).url
        == "GET" + base + "file_1/content");
  CHECK(transport->request(2).method + transport->request(2).url == "DELETE" + base + "a%3Fb");
  CHECK_THROWS_AS((void)client.files().download("."), PromptError);
}

TEST_CASE_FIXTURE(Fixture, "a file that cannot be downloaded is the server's refusal") {
  transport->answer(
      400,
      R"({"type":"error","error":{"type":"invalid_request_error","message":"no","details":{"error_code":"file_not_downloadable"}}})");
  try {
    (void)client.files().download("file_1");
    FAIL("nothing was thrown");
  } catch (const ApiError& error) {
    CHECK(error.error_code == "file_not_downloadable");
  }
}

}  // namespace
}  // namespace incipit
