// Bodies of uploads, well-formed and not (RFC 7578, RFC 2046 section 5.1).
#include "gateway/api/multipart.h"

#include "gateway/api/error.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace incipit::gateway;

namespace {

const std::string type = "multipart/form-data; boundary=AaB03x";

std::vector<FormPart> parts_of(std::string_view body) {
  return parse_form_data(&type, body);
}

std::string refusal(const std::string* content_type, std::string_view body) {
  try {
    static_cast<void>(parse_form_data(content_type, body));
    return "";
  } catch (const ApiError& error) {
    CHECK(error.status == 400);
    return error.what();
  }
}

std::string refusal(std::string_view body) {
  return refusal(&type, body);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string part(std::string_view disposition, std::string_view content) {
  return "--AaB03x\r\nContent-Disposition: " + std::string(disposition) + "\r\n\r\n"
         + std::string(content) + "\r\n";
}

std::string filename(const std::string& parameters) {
  const std::string body = part("form-data; name=\"file\"; " + parameters, "x") + "--AaB03x--\r\n";
  return parts_of(body).at(0).filename.value_or("none");
}

}  // namespace

TEST_CASE("parts come with name, file name, type and bytes") {
  const std::string content("line\r\n--AaB03 and \0 bytes\r\n", 26);
  const std::string body =
      "a preamble\r\n" + part("form-data; name=\"expires_in_seconds\"", "3600")
      + "--AaB03x  \r\ncontent-type: text/plain; charset=utf-8\r\n"
        "CONTENT-DISPOSITION: Form-Data; NAME=file; filename=\"a.txt\"\r\n\r\n"
      + content + "\r\n--AaB03x--\r\nan epilogue";
  const std::vector<FormPart> parts = parts_of(body);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].name == "expires_in_seconds");
  CHECK(!parts[0].filename);
  CHECK(parts[0].content_type.empty());
  CHECK(parts[0].content == "3600");
  CHECK(parts[1].name == "file");
  CHECK(parts[1].filename == "a.txt");
  CHECK(parts[1].content_type == "text/plain; charset=utf-8");
  CHECK(parts[1].content == content);
}

TEST_CASE("a part may be empty, and so may a form") {
  CHECK(parts_of(part("form-data; name=a", "") + "--AaB03x--").at(0).content.empty());
  CHECK(parts_of("--AaB03x\r\nContent-Disposition: form-data; name=a\r\n\r\n--AaB03x--")
            .at(0)
            .content.empty());
  CHECK(parts_of("--AaB03x--\r\n").empty());
}

TEST_CASE("file names in each of the ways that clients write them") {
  CHECK(filename("filename=plain.txt") == "plain.txt");
  CHECK(filename(R"(filename="with space; and semicolon.txt")") == "with space; and semicolon.txt");
  CHECK(filename(R"(filename="C:\folder\a.txt")") == R"(C:\folder\a.txt)");
  CHECK(filename(R"(filename="a\"b\\c")") == R"(a"b\c)");
  CHECK(filename(R"(filename="a%22b%0Ac%41")") == "a\"b\nc%41");
  CHECK(filename(R"(filename="ascii.txt"; filename*=UTF-8''na%C3%AFve.txt)") == "na\u00efve.txt");
  CHECK(filename(R"(filename="kept.txt"; filename*=latin-1''x)") == "kept.txt");
  CHECK(filename(R"(filename="")") == "");
}

TEST_CASE("a content type that is no form is named") {
  const std::string json = "application/json";
  const std::string without = "multipart/form-data";
  const std::string empty = "multipart/form-data; boundary=\"\"";
  const std::string longest = "multipart/form-data; boundary=" + std::string(71, 'b');
  const std::string open = "multipart/form-data; boundary=\"b";
  CHECK(has(refusal(nullptr, ""), "content-type: missing"));
  CHECK(has(refusal(&json, ""), "'application/json'"));
  for (const std::string* wrong : {&without, &empty, &longest})
    CHECK(has(refusal(wrong, "--b--"), "the boundary must have 1 to 70 characters"));
  CHECK(has(refusal(&open, "--b--"), "content-type: "));
}

TEST_CASE("what is malformed is said with the byte where it is") {
  CHECK(has(refusal(""), "the boundary of the content-type is nowhere in it (byte 0)"));
  CHECK(has(refusal("--other\r\n"), "nowhere in it"));
  CHECK(has(refusal("--AaB03x"), "must be followed by a line end"));
  CHECK(has(refusal("--AaB03xyz\r\n"), "must be followed by a line end"));
  CHECK(has(refusal("--AaB03x\r\nContent-Disp"), "ends within the headers of a part (byte 10)"));
  CHECK(has(refusal("--AaB03x\r\n\r\nx\r\n--AaB03x--"), "no Content-Disposition"));
  CHECK(has(refusal("--AaB03x\r\nno colon\r\n\r\nx\r\n--AaB03x--"), "not like 'Name: value'"));
  for (const std::string disposition :
       {"form-data", "attachment; name=a", "form-data; name", "form-data; name=a; name=b",
        "form-data; name=\"a", "form-data; name=\"a\"x"}) {
    CAPTURE(disposition);
    CHECK(has(refusal(part(disposition, "x") + "--AaB03x--"), "Content-Disposition"));
  }
  CHECK(has(refusal("--AaB03x\r\nContent-Disposition: form-data; name=a\r\n"
                    "Content-Transfer-Encoding: base64\r\n\r\nx\r\n--AaB03x--"),
            "'base64' is not supported"));
}

TEST_CASE("a body that is cut anywhere is refused, never misread") {
  const std::string whole = part("form-data; name=file; filename=a", "content") + "--AaB03x--";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(refusal(whole.substr(0, length)) != "");
  }
  CHECK(refusal(whole) == "");
}

TEST_CASE("many parts and long headers are refused, and take no time") {
  std::string many;
  for (int i = 0; i < 10'000; ++i)
    many += part("form-data; name=a", "x");
  CHECK(has(refusal(many + "--AaB03x--"), "more than 32 parts"));
  const std::string headers = "--AaB03x\r\nX: " + std::string(20'000, 'h') + "\r\n\r\n";
  CHECK(has(refusal(headers), "longer than 16384 bytes"));
  std::string nearly;  // each line begins like a boundary
  while (nearly.size() < 8'000'000)
    nearly += "\r\n--AaB03";
  const auto begun = std::chrono::steady_clock::now();
  CHECK(refusal(part("form-data; name=a", nearly) + "--AaB03x--") == "");
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
}
