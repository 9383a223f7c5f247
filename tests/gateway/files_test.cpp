// The store of uploaded files (section 16), on a clock that the test moves.
#include "gateway/api/files.h"

#include "gateway/api/error.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace incipit::gateway;
using std::chrono::seconds;

namespace {

const Scope home{"org", "home"};
const Scope elsewhere{"org", "elsewhere"};

NewFile file(std::string name, std::string content, std::string mime_type = "",
             std::optional<seconds> lifetime = {}) {
  return {std::move(name), std::move(mime_type), std::move(content), lifetime};
}

}  // namespace

TEST_CASE("a file keeps the last part of its name, and gets a name or a type that it lacks") {
  const Clock clock;
  Files files(clock, 1 << 20);
  const auto name = [&](const std::string& sent, const std::string& type) {
    return files.add(home, file(sent, "x", type)).filename;
  };
  const auto mime_type = [&](const std::string& sent, const std::string& type) {
    return files.add(home, file(sent, "x", type)).mime_type;
  };
  CHECK(name("a.txt", "") == "a.txt");
  CHECK(name("../../etc/passwd", "") == "passwd");
  CHECK(name(R"(C:\folder\a.txt)", "") == "a.txt");
  CHECK(name("", "application/pdf") == "unnamed.pdf");
  CHECK(name("folder/", "text/plain; charset=utf-8") == "unnamed.txt");
  CHECK(name("", "application/x-unheard-of") == "unnamed");
  CHECK(mime_type("a.pdf", "") == "application/pdf");
  CHECK(mime_type("a.pdf", "text/plain") == "text/plain");
  CHECK(mime_type("a", "") == "application/octet-stream");
}

TEST_CASE("a workspace sees its own files only, newest first") {
  const Clock clock;
  Files files(clock, 1 << 20);
  const StoredFile first = files.add(home, file("1", "one"));
  const StoredFile second = files.add(home, file("2", "two"));
  CHECK(first.id.starts_with("file_"));
  CHECK(files.list(home).size() == 2);
  CHECK(files.list(home).front().id == second.id);
  CHECK(files.list(elsewhere).empty());
  CHECK(*files.find(home, first.id)->content == "one");
  CHECK(!files.find(elsewhere, first.id));
  CHECK(!files.remove(elsewhere, first.id));
  CHECK(files.remove(home, first.id));
  CHECK(!files.remove(home, first.id));
  CHECK(!files.find(home, first.id));
}

TEST_CASE("an expired file has no content any more, and its place is free") {
  Clock clock = Clock::frozen();
  Files files(clock, 12'000);
  const StoredFile brief = files.add(home, file("a", std::string(8000, 'x'), "", seconds(3600)));
  const StoredFile lasting = files.add(home, file("b", "y"));
  CHECK(brief.expires_at.size() == brief.created_at.size());
  CHECK(brief.expires_at > brief.created_at);
  CHECK(lasting.expires_at.empty());
  clock.advance(seconds(3599));
  CHECK(files.find(home, brief.id)->content);
  CHECK_THROWS_AS(files.add(home, file("c", std::string(8000, 'x'))), ApiError);
  clock.advance(seconds(1));
  CHECK(!files.find(home, brief.id)->content);
  CHECK(files.find(home, brief.id)->size == 8000);
  CHECK(files.find(home, lasting.id)->content);
  CHECK_NOTHROW(files.add(home, file("c", std::string(8000, 'x'))));
  CHECK(files.remove(home, brief.id));
}

TEST_CASE("all files together have a bound, and what is deleted makes room") {
  const Clock clock;
  Files files(clock, 10'000);
  const StoredFile large = files.add(home, file("a", std::string(9000, 'x')));
  try {
    files.add(elsewhere, file("b", std::string(9000, 'x')));
    FAIL("was taken");
  } catch (const ApiError& error) {
    CHECK(error.status == 400);
    CHECK(error.error_code == "storage_quota_exceeded");
    CHECK(std::string(error.what()).find("--files-memory") != std::string::npos);
  }
  files.remove(home, large.id);
  for (int i = 0; i < 100; ++i) {  // nothing leaks
    const StoredFile again =
        files.add(elsewhere, file("b", std::string(9000, 'x'), "", seconds(3600)));
    CHECK(files.remove(elsewhere, again.id));
  }
}

TEST_CASE("threads add, look and delete at the same time") {
  Clock clock = Clock::frozen();
  Files files(clock, 1 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const StoredFile added = files.add(home, file("a", "content", "", seconds(3600)));
        files.list(home);
        clock.advance(seconds(10));
        files.remove(home, added.id);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(files.list(home).empty());
}
