#include "gateway/constrain/formats.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace incipit::constrain {
namespace {

// Well-formed UTF-8 (Unicode, table 3-7) and the escapes of RFC 8259; of surrogates only pairs.
std::string any_string() {
  const std::string tail = "[\\x80-\\xbf]";
  const std::string hex = "[\\da-fA-F]";
  return "([\\x20\\x21\\x23-\\x5b\\x5d-\\x7f]|[\\xc2-\\xdf]" + tail + "|\\xe0[\\xa0-\\xbf]" + tail
         + "|[\\xe1-\\xec\\xee\\xef]" + tail + "{2}|\\xed[\\x80-\\x9f]" + tail
         + "|\\xf0[\\x90-\\xbf]" + tail + "{2}|[\\xf1-\\xf3]" + tail + "{3}|\\xf4[\\x80-\\x8f]"
         + tail + "{2}|\\\\([\"\\\\/bfnrt]|u([\\dabcefABCEF]" + hex + "{3}|[dD][0-7]" + hex
         + "{2}|[dD][89abAB]" + hex + "{2}\\\\u[dD][c-fC-F]" + hex + "{2})))*";
}

// RFC 3339 full-date: years 0001 to 9999, the 29th of February in leap years only.
std::string date() {
  const std::string year = "(000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d\\d\\d)";
  const std::string day =
      "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)"
      "|02-(0[1-9]|1\\d|2[0-8]))";
  const std::string fours = "(0[48]|[2468][048]|[13579][26])";
  return "(" + year + "-" + day + "|(\\d\\d" + fours + "|" + fours + "00)-02-29)";
}

// RFC 3339 full-time, without leap seconds.
std::string time() {
  const std::string clock = "([01]\\d|2[0-3]):[0-5]\\d";
  return clock + ":[0-5]\\d(\\.\\d{1,9})?(Z|[+-]" + clock + ")";
}

// RFC 3339, appendix A: no unit may be left out between two.
std::string duration() {
  const std::string n = "\\d{1,9}";
  const std::string seconds = n + "S";
  const std::string minutes = n + "M(" + seconds + ")?";
  const std::string clock = "T(" + n + "H(" + minutes + ")?|" + minutes + "|" + seconds + ")";
  const std::string days = n + "D";
  const std::string months = n + "M(" + days + ")?";
  return "P((" + n + "Y(" + months + ")?|" + months + "|" + days + ")(" + clock + ")?|" + clock
         + "|" + n + "W)";
}

// No two hyphens in a row: such labels are reserved for encoded names, which checkers decode.
std::string label() {
  return "[\\da-zA-Z]+(-[\\da-zA-Z]+)*";
}

std::string hostname() {
  return label() + "(\\." + label() + ")*";
}

// A dot-atom at a host of two labels or more whose last one is letters.
std::string email() {
  const std::string atom = "[\\da-zA-Z!#$%&'*\\+/=\\?^_`{\\|}~-]+";
  return atom + "(\\." + atom + ")*@(" + label() + "\\.)+[a-zA-Z][a-zA-Z]+";
}

std::string ipv4() {
  const std::string part = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return part + "(\\." + part + "){3}";
}

// RFC 3986 with a scheme and either a host or one of the schemes that have none. A host that ends
// in a number is an IPv4 address.
std::string uri() {
  const std::string common = "[\\da-zA-Z._~!$&'\\(\\)\\*\\+,;=:@-]";
  const std::string escaped = "%[\\da-fA-F]{2}";
  const std::string in_path = "(" + common + "|/|" + escaped + ")";
  const std::string in_query = "(" + common + "|[/\\?]|" + escaped + ")";
  const std::string host =
      "((" + label() + "\\.)*[a-zA-Z][\\da-zA-Z]*(-[\\da-zA-Z]+)*|" + ipv4() + ")";
  const std::string port = "(:([1-9]\\d{0,3}|[1-5]\\d{4}))?";
  return "([a-zA-Z][\\da-zA-Z\\+.-]*://" + host + port + "(/" + in_path + "*)?|file:///" + in_path
         + "*|(mailto|urn|tel|data|news):(" + common + "|" + escaped + ")" + in_path + "*)(\\?"
         + in_query + "*)?(#" + in_query + "*)?";
}

// RFC 4291 in hexadecimal groups; `::` stands for one group or more.
std::string ipv6() {
  const std::string h = "[\\da-fA-F]{1,4}";
  std::string pattern = "((" + h + ":){7}" + h + "|::(" + h + "(:" + h + "){0,6})?";
  for (int before = 1; before <= 7; ++before) {
    const int after = 7 - before;  // at most
    pattern += "|" + h + "(:" + h + "){" + std::to_string(before - 1) + "}::";
    if (after > 0) pattern += "(" + h + "(:" + h + "){0," + std::to_string(after - 1) + "})?";
  }
  return pattern + ")";
}

std::string uuid() {
  const std::string h = "[\\da-fA-F]";
  return h + "{8}(-" + h + "{4}){3}-" + h + "{12}";
}

struct Entry {
  std::string_view name;
  std::string (*pattern)();
  std::size_t most_bytes = 0;
};

// A host has at most 253 bytes and labels of at most 63, an address 64 before the @: a limit on the
// whole keeps all of these with the fewest states.
constexpr std::array formats = {
    Entry{"date-time", [] { return date() + "T" + time(); }},
    Entry{"time", time},
    Entry{"date", date},
    Entry{"duration", duration},
    Entry{"email", email, 64},
    Entry{"hostname", hostname, 63},
    Entry{"uri", uri},
    Entry{"ipv4", ipv4},
    Entry{"ipv6", ipv6},
    Entry{"uuid", uuid},
};

const Entry* find(std::string_view name) {
  const auto* const found = std::ranges::find(formats, name, &Entry::name);
  return found == formats.end() ? nullptr : found;
}

}  // namespace

bool is_known_format(std::string_view name) {
  return find(name) != nullptr;
}

StringFormat string_format(std::string_view name) {
  if (name.empty()) return {.pattern = any_string()};
  const Entry* entry = find(name);
  if (!entry) throw std::logic_error("no such format: " + std::string(name));
  return {.pattern = entry->pattern(), .most_bytes = entry->most_bytes};
}

std::string known_formats() {
  std::string names;
  for (const Entry& entry : formats)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

}  // namespace incipit::constrain
