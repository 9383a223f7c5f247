#include "sdk/src/sse_parser.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace incipit {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

void take_all(SseParser& parser, Events& events) {
  while (const auto event = parser.next())
    events.emplace_back(event->name, event->data);
}

Events parsed(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  Events events;
  for (const std::string_view piece : pieces) {
    parser.feed(piece);
    take_all(parser, events);
  }
  parser.finish();
  take_all(parser, events);
  return events;
}

Events parsed(std::string_view text) {
  return parsed(std::vector<std::string_view>{text});
}

Events byte_by_byte(std::string_view text) {
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < text.size(); ++i)
    bytes.push_back(text.substr(i, 1));
  return parsed(bytes);
}

std::string with_line_ends(std::string_view text, std::string_view end) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += end;
    } else {
      out += c;
    }
  }
  return out;
}

// Events of anthropic-wire 10.3 and openai-wire 2.3, and everything that may stand between them.
constexpr std::string_view stream =
    "\xEF\xBB\xBF"
    "event: message_start\n"
    "data: {\"type\":\"message_start\"}\n"
    "\n"
    ": keep-alive\n"
    "\n"
    "event: ping\n"
    "data: {\"type\": \"ping\"}   \n"
    "\n"
    "id: 7\n"
    "retry: 10\n"
    "colour: blue\n"
    "data\n"
    "\n"
    "event: lonely\n"
    "\n"
    "data:first\n"
    "event: late\n"
    "data:  second\n"
    "data\n"
    "data: \xE2\x82\xAC \xF0\x9F\x90\x98\n"
    "\n"
    "\n"
    "data: [DONE]\n"
    "\n";

const Events expected = {{"message_start", "{\"type\":\"message_start\"}"},
                         {"ping", "{\"type\": \"ping\"}   "},
                         {"late", "first\n second\n\n\xE2\x82\xAC \xF0\x9F\x90\x98"},
                         {"", "[DONE]"}};

// The format's rules over a whole text, line by line: slow and plain.
Events reference(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (text[i] == '\r' || text[i] == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += text[i];
    }
  }
  lines.emplace_back();  // the end of the stream ends the last event
  Events events;
  std::string name, data;
  for (const std::string& line : lines) {
    if (line.empty()) {
      if (data.size() > 1) events.emplace_back(name, data.substr(0, data.size() - 1));
      name.clear();
      data.clear();
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::string field = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    if (field == "event") name = value;
    if (field == "data") data += value + "\n";
  }
  return events;
}

TEST_CASE("events have names and data; all else in a stream is skipped") {
  CHECK(parsed(stream) == expected);
  CHECK(reference(std::string(stream)) == expected);
}

TEST_CASE("every split into two reads gives the same events, whatever ends the lines") {
  std::string mixed;
  int line = 0;
  for (const char c : stream)
    mixed += c == '\n' ? std::string(++line % 2 != 0 ? "\r\n" : "\n") : std::string(1, c);
  for (const std::string& text : {with_line_ends(stream, "\n"), with_line_ends(stream, "\r"),
                                  with_line_ends(stream, "\r\n"), mixed}) {
    const std::string_view whole = text;
    for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
      CAPTURE(cut);
      REQUIRE(parsed({whole.substr(0, cut), whole.substr(cut)}) == expected);
    }
    CHECK(byte_by_byte(whole) == expected);
  }
}

TEST_CASE("an event is there as soon as its blank line is, even if that is a lone CR") {
  SseParser parser;
  for (const char* end : {"\n\n", "\r\r", "\r\n\r\n", "\r\n\r"}) {
    parser.feed("data: x");
    CHECK_FALSE(parser.next().has_value());
    parser.feed(end);
    const auto event = parser.next();
    REQUIRE(event.has_value());
    CHECK(event->data == "x");
    CHECK_FALSE(parser.next().has_value());
  }
}

TEST_CASE("a CR at the end of one read and an LF at the start of the next are one line end") {
  CHECK(parsed({"data: a\r", "\ndata: b\r", "\n\r", "\ndata: c\r", "\n\r", "\n"})
        == Events{{"", "a\nb"}, {"", "c"}});
  CHECK(parsed({"data: a\r", "", "\n", "data: b\n\n"}) == Events{{"", "a\nb"}});
}

TEST_CASE("one blank behind the colon is dropped, no more") {
  CHECK(parsed("data:a\n\ndata: a\n\ndata:  a\n\ndata:a \n\ndata:\ta\n\n")
        == Events{{"", "a"}, {"", "a"}, {"", " a"}, {"", "a "}, {"", "\ta"}});
}

TEST_CASE("field names count whole and in lower case") {
  CHECK(parsed("datax: a\nDATA: a\n data: a\ndata : a\nevents: e\ndata: b\n\n")
        == Events{{"", "b"}});
}

TEST_CASE("the last name counts, and none is carried over to the next event") {
  CHECK(parsed("event: a\nevent: b\ndata: 1\n\ndata: 2\n\nevent: c\n\ndata: 3\n\nevent: "
               "d\nevent\ndata: 4\n\n")
        == Events{{"b", "1"}, {"", "2"}, {"", "3"}, {"", "4"}});
}

TEST_CASE("an event with empty data is none, one of two empty lines is") {
  CHECK(parsed("event: a\ndata:\n\nevent: b\ndata\ndata\n\n") == Events{{"b", "\n"}});
}

TEST_CASE("the byte order mark is skipped at the very start only") {
  CHECK(parsed("\xEF\xBB\xBF\xEF\xBB\xBF"
               "data: a\n\ndata: b\n\n")
        == Events{{"", "b"}});
  CHECK(parsed("\n\xEF\xBB\xBF"
               "data: a\n\n")
            .empty());
  CHECK(parsed("\xEF\xBB").empty());
}

TEST_CASE("the end of the stream completes an event that lacks its blank line or its line end") {
  for (const char* text :
       {"event: e\ndata: x\n\n", "event: e\ndata: x\n", "event: e\ndata: x",
        "event: e\r\ndata: x\r\n\r", "event: e\r\ndata: x\r", "event: e\rdata: x\r"}) {
    CAPTURE(text);
    CHECK(parsed(text) == Events{{"e", "x"}});
  }
  CHECK(parsed("").empty());
  CHECK(parsed("event: e\n").empty());
  CHECK(parsed(": comment").empty());
}

TEST_CASE("a line of 32 MB in pieces of 1 KB takes time in proportion") {
  const std::string piece(1024, 'x');
  SseParser parser;
  parser.feed("event: long\ndata: ");
  for (int i = 0; i < 32 * 1024; ++i) {
    parser.feed(piece);
    REQUIRE_FALSE(parser.next().has_value());
  }
  parser.feed("\n\ndata: short\n\n");
  const auto event = parser.next();
  REQUIRE(event.has_value());
  CHECK(event->name == "long");
  CHECK(event->data.size() == 32U * 1024 * 1024);
  CHECK(event->data.find_first_not_of('x') == std::string_view::npos);
  CHECK(parser.next()->data == "short");
}

TEST_CASE("many data lines fed apart make one event") {
  SseParser parser;
  std::string whole;
  for (int i = 0; i < 5000; ++i) {
    const std::string line = "line " + std::to_string(i);
    parser.feed("data: " + line + "\r\n: comment\r\n");
    REQUIRE_FALSE(parser.next().has_value());
    whole += (i == 0 ? "" : "\n") + line;
  }
  parser.feed("event: e\r\n\r\n");
  const auto event = parser.next();
  REQUIRE(event.has_value());
  CHECK(event->name == "e");
  CHECK(event->data == whole);
}

TEST_CASE("events that are taken later than the next read are not lost") {
  SseParser parser;
  for (int i = 0; i < 100; ++i)
    parser.feed("data: " + std::to_string(i) + "\n\n");
  for (int i = 0; i < 100; ++i) {
    parser.feed(": more\n");
    const auto event = parser.next();
    REQUIRE(event.has_value());
    CHECK(event->data == std::to_string(i));
  }
  CHECK_FALSE(parser.next().has_value());
}

TEST_CASE("random streams in random pieces give what the rules give line by line") {
  const std::vector<std::string_view> parts = {
      "data", "event",     ":",          ": ",           " ",    "\n",       "\n", "\r", "\r\n",
      "x",    "data: y\n", "event: z\r", "\xEF\xBB\xBF", "\n\n", "id: 3\r\n"};
  std::mt19937 random(1);  // NOLINT: the same streams in every run
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (unsigned n = random() % 40; n > 0; --n)
      text += parts[random() % parts.size()];
    std::vector<std::string_view> pieces;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % 9);
      pieces.push_back(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    CAPTURE(text);
    REQUIRE(parsed(pieces) == reference(text));
  }
}

}  // namespace
}  // namespace incipit
