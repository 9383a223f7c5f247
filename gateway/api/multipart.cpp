#include "gateway/api/multipart.h"

#include "gateway/api/anthropic_fields.h"
#include "gateway/api/error.h"
#include "gateway/api/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace incipit::gateway {

namespace {

// What no client comes near.
constexpr std::size_t most_parts = 32;
constexpr std::size_t most_header_bytes = 16384;  // of one part
constexpr std::size_t longest_boundary = 70;      // RFC 2046

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

// A header value of the form `word; name=token; name="quoted"`.
struct HeaderValue {
  std::string word;  // in lower case
  Parameters parameters;

  [[nodiscard]] const std::string* find(std::string_view name) const {
    const auto found = std::ranges::find(parameters, name, &Parameters::value_type::first);
    return found == parameters.end() ? nullptr : &found->second;
  }
};

// The text up to the closing quote, which `rest` starts behind; empty when there is none.
std::optional<std::string> unquoted(std::string_view& rest) {
  std::string text;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    // Some clients send a path with bare backslashes: they only escape what needs it.
    const bool escapes =
        rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\');
    if (escapes) {
      text += rest[++i];
    } else if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return text;
    } else {
      text += rest[i];
    }
  }
  return std::nullopt;
}

// Nothing when it is not of that form, or names a parameter twice.
std::optional<HeaderValue> parse_header_value(std::string_view text) {
  HeaderValue value;
  const std::size_t end = std::min(text.find(';'), text.size());
  value.word = lower_case(trimmed(text.substr(0, end)));
  std::string_view rest = text.substr(end);
  while (!(rest = trimmed(rest)).empty()) {
    if (rest.front() != ';') return std::nullopt;
    rest = trimmed(rest.substr(1));
    if (rest.empty()) break;
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    std::string name = lower_case(trimmed(rest.substr(0, equals)));
    rest = trimmed(rest.substr(equals + 1));
    std::optional<std::string> content;
    if (rest.starts_with('"')) {
      rest.remove_prefix(1);
      content = unquoted(rest);
    } else {
      const std::size_t length = std::min(rest.find(';'), rest.size());
      content = std::string(trimmed(rest.substr(0, length)));
      rest.remove_prefix(length);
    }
    if (!content || value.find(name) != nullptr) return std::nullopt;
    value.parameters.emplace_back(std::move(name), *std::move(content));
  }
  return value;
}

// What forms encode of a name in quotes (the HTML standard's multipart encoding).
std::string form_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view code = text.substr(i, 3);
    const bool is_coded = code == "%22" || code == "%0D" || code == "%0A";
    out += is_coded ? percent_decoded(code) : std::string(1, text[i]);
    if (is_coded) i += 2;
  }
  return out;
}

// RFC 8187: UTF-8'language'percent-encoded. RFC 7578 forbids it here, and clients send it.
std::optional<std::string> extended(std::string_view text) {
  const std::size_t first = text.find('\'');
  const std::size_t second = first == text.npos ? text.npos : text.find('\'', first + 1);
  if (second == text.npos || lower_case(text.substr(0, first)) != "utf-8") return std::nullopt;
  return percent_decoded(text.substr(second + 1));
}

std::string boundary_of(const std::string* content_type) {
  constexpr std::string_view wanted = "multipart/form-data; boundary=…";
  if (content_type == nullptr) {
    throw invalid_request(fmt::format("content-type: missing; an upload is {}", wanted));
  }
  const std::optional<HeaderValue> value = parse_header_value(*content_type);
  if (!value || value->word != "multipart/form-data") {
    throw invalid_request(
        fmt::format("content-type: '{}'; an upload is {}", shown(*content_type), wanted));
  }
  const std::string* boundary = value->find("boundary");
  const bool usable = boundary != nullptr && !boundary->empty()
                      && boundary->size() <= longest_boundary
                      && boundary->find_first_of("\r\n") == std::string::npos;
  if (!usable) {
    throw invalid_request(
        fmt::format("content-type: the boundary must have 1 to {} characters", longest_boundary));
  }
  return *boundary;
}

class Reader {
 public:
  Reader(std::string_view body, const std::string& boundary)
      : body_(body), delimiter_("\r\n--" + boundary) {}

  std::vector<FormPart> read() {
    skip_preamble();
    std::vector<FormPart> parts;
    while (!ends_here()) {
      if (parts.size() == most_parts) fail(fmt::format("there are more than {} parts", most_parts));
      parts.push_back(read_part());
    }
    return parts;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw invalid_request(fmt::format("malformed multipart body: {} (byte {})", what, at_));
  }

  void skip_preamble() {
    const std::string_view first = std::string_view(delimiter_).substr(2);
    if (body_.starts_with(first)) {
      at_ = first.size();
      return;
    }
    const std::size_t found = body_.find(delimiter_);
    if (found == std::string_view::npos) fail("the boundary of the content-type is nowhere in it");
    at_ = found + delimiter_.size();
  }

  // Behind a delimiter: either the end, or the line end that a part follows.
  bool ends_here() {
    if (body_.substr(at_).starts_with("--")) return true;
    const std::size_t line = body_.find_first_not_of(" \t", at_);
    if (line == std::string_view::npos || !body_.substr(line).starts_with("\r\n")) {
      fail("a boundary must be followed by a line end, or by -- at the end of the body");
    }
    at_ = line + 2;
    return false;
  }

  FormPart read_part() {
    FormPart part;
    bool is_disposed = false;
    const std::size_t start = at_;
    for (std::string_view line = next_line(start); !line.empty(); line = next_line(start)) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos || line.front() == ' ' || line.front() == '\t') {
        fail("a header line of a part is not like 'Name: value'");
      }
      const std::string name = lower_case(line.substr(0, colon));
      const std::string_view value = trimmed(line.substr(colon + 1));
      if (name == "content-disposition") {
        if (std::exchange(is_disposed, true)) fail("a part has two Content-Disposition headers");
        read_disposition(value, part);
      } else if (name == "content-type") {
        part.content_type = std::string(value);
      } else if (name == "content-transfer-encoding") {
        const std::string encoding = lower_case(value);
        if (encoding != "binary" && encoding != "8bit" && encoding != "7bit") {
          fail("the content-transfer-encoding '" + shown(encoding)
               + "' is not supported; send the bytes as they are");
        }
      }
    }
    if (!is_disposed) fail("a part has no Content-Disposition header");
    // An empty part's delimiter starts with the line end of its headers.
    const std::size_t end = body_.find(delimiter_, at_ - 2);
    if (end == std::string_view::npos) fail("the body ends within a part");
    part.content = body_.substr(at_, std::max(end, at_) - at_);
    at_ = end + delimiter_.size();
    return part;
  }

  std::string_view next_line(std::size_t start) {
    const std::size_t limit = most_header_bytes - (at_ - start);
    const std::size_t length = body_.substr(at_, limit).find("\r\n");
    if (length == std::string_view::npos) {
      fail(body_.size() - at_ < limit
               ? "the body ends within the headers of a part"
               : fmt::format("the headers of a part are longer than {} bytes", most_header_bytes));
    }
    const std::string_view line = body_.substr(at_, length);
    at_ += length + 2;
    return line;
  }

  void read_disposition(std::string_view text, FormPart& part) const {
    const std::optional<HeaderValue> value = parse_header_value(text);
    const std::string* name = value ? value->find("name") : nullptr;
    if (name == nullptr || value->word != "form-data") {
      fail("a part's Content-Disposition is not like form-data; name=\"file\"");
    }
    part.name = form_decoded(*name);
    if (const std::string* coded = value->find("filename*")) part.filename = extended(*coded);
    if (const std::string* plain = value->find("filename"); plain != nullptr && !part.filename) {
      part.filename = form_decoded(*plain);
    }
  }

  std::string_view body_;
  std::string delimiter_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<FormPart> parse_form_data(const std::string* content_type, std::string_view body) {
  return Reader(body, boundary_of(content_type)).read();
}

}  // namespace incipit::gateway
