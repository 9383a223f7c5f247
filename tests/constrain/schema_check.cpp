#include "tests/constrain/schema_check.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

namespace incipit::constrain {
namespace {

using Kind = JsonValue::Kind;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_in(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

bool all_of(std::string_view text, bool (*is)(char)) {
  return std::ranges::all_of(text, is);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0;;) {
    const auto end = text.find(separator, start);
    parts.push_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

// A number of exactly `digits` digits.
std::optional<int> number(std::string_view text, std::size_t digits) {
  if (text.size() != digits || !all_of(text, is_digit)) return std::nullopt;
  return std::stoi(std::string(text));
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto year = number(text.substr(0, 4), 4);
  const auto month = number(text.substr(5, 2), 2);
  const auto day = number(text.substr(8, 2), 2);
  if (!year || *year == 0 || !month || !day) return false;
  return std::chrono::year_month_day(std::chrono::year(*year),
                                     std::chrono::month(static_cast<unsigned>(*month)),
                                     std::chrono::day(static_cast<unsigned>(*day)))
      .ok();
}

bool is_clock(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return false;
  const auto hour = number(text.substr(0, 2), 2);
  const auto minute = number(text.substr(3, 2), 2);
  return hour && *hour < 24 && minute && *minute < 60;
}

bool is_time(std::string_view text) {
  if (text.size() < 9 || !is_clock(text.substr(0, 5)) || text[5] != ':') return false;
  const auto second = number(text.substr(6, 2), 2);
  if (!second || *second > 59) return false;
  text.remove_prefix(8);
  if (text[0] == '.') {
    const auto end = text.find_first_not_of("0123456789", 1);
    if (end == 1 || end == std::string_view::npos) return false;
    text.remove_prefix(end);
  }
  return text == "Z" || ((text[0] == '+' || text[0] == '-') && is_clock(text.substr(1)));
}

bool is_date_time(std::string_view text) {
  return text.size() > 11 && text[10] == 'T' && is_date(text.substr(0, 10))
         && is_time(text.substr(11));
}

// Numbers with units from `units`, each the one that follows in it; how many were read.
std::optional<int> amounts(std::string_view text, std::string_view units) {
  std::size_t last = std::string_view::npos;
  int count = 0;
  while (!text.empty()) {
    const auto end = text.find_first_not_of("0123456789");
    if (end == 0 || end == std::string_view::npos) return std::nullopt;
    const auto unit = units.find(text[end]);
    if (unit == std::string_view::npos) return std::nullopt;
    if (last != std::string_view::npos && unit != last + 1) return std::nullopt;
    last = unit;
    ++count;
    text.remove_prefix(end + 1);
  }
  return count;
}

bool is_duration(std::string_view text) {
  if (text.size() < 3 || text[0] != 'P') return false;
  text.remove_prefix(1);
  if (text.back() == 'W') return all_of(text.substr(0, text.size() - 1), is_digit);
  const auto t = text.find('T');
  const auto days = amounts(text.substr(0, t), "YMD");
  if (!days) return false;
  if (t == std::string_view::npos) return *days > 0;
  const auto seconds = amounts(text.substr(t + 1), "HMS");
  return seconds && *seconds > 0;
}

bool is_hostname(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  return std::ranges::all_of(split(text, '.'), [](std::string_view label) {
    return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-'
           && std::ranges::all_of(label,
                                  [](char c) { return is_alpha(c) || is_digit(c) || c == '-'; });
  });
}

bool is_email(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos || at > 64) return false;
  const std::string_view host = text.substr(at + 1);
  if (!is_hostname(host) || host.find('.') == std::string_view::npos) return false;
  if (std::ranges::any_of(split(host, '.').back(), is_digit)) return false;
  return std::ranges::all_of(split(text.substr(0, at), '.'), [](std::string_view atom) {
    return !atom.empty() && std::ranges::all_of(atom, [](char c) {
      return is_alpha(c) || is_digit(c) || is_in(c, "!#$%&'*+-/=?^_`{|}~");
    });
  });
}

bool is_ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() == 4 && std::ranges::all_of(parts, [](std::string_view part) {
           return !part.empty() && part.size() <= 3 && all_of(part, is_digit)
                  && (part.size() == 1 || part[0] != '0') && std::stoi(std::string(part)) < 256;
         });
}

// Groups separated by colons; -1 when they are not.
int groups(std::string_view text) {
  if (text.empty()) return 0;
  const auto parts = split(text, ':');
  const bool are_good = std::ranges::all_of(parts, [](std::string_view part) {
    return !part.empty() && part.size() <= 4 && all_of(part, is_hex);
  });
  return are_good ? static_cast<int>(parts.size()) : -1;
}

bool is_ipv6(std::string_view text) {
  const auto gap = text.find("::");
  if (gap == std::string_view::npos) return groups(text) == 8;
  const int before = groups(text.substr(0, gap));
  const int after = groups(text.substr(gap + 2));
  return before >= 0 && after >= 0 && before + after <= 7;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_hyphen ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

bool has_uri_characters(std::string_view text, std::string_view besides) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) return false;
      i += 2;
    } else if (!is_alpha(text[i]) && !is_digit(text[i]) && !is_in(text[i], "-._~!$&'()*+,;=:@")
               && !is_in(text[i], besides)) {
      return false;
    }
  }
  return true;
}

bool is_uri(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_alpha(text[0])) return false;
  if (!std::ranges::all_of(text.substr(0, colon), [](char c) {
        return is_alpha(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
      })) {
    return false;
  }
  text.remove_prefix(colon + 1);
  if (const auto hash = text.find('#'); hash != std::string_view::npos) {
    if (!has_uri_characters(text.substr(hash + 1), "/?")) return false;
    text = text.substr(0, hash);
  }
  if (const auto mark = text.find('?'); mark != std::string_view::npos) {
    if (!has_uri_characters(text.substr(mark + 1), "/?")) return false;
    text = text.substr(0, mark);
  }
  if (!text.starts_with("//")) return !text.empty() && has_uri_characters(text, "/");
  text.remove_prefix(2);
  const auto slash = text.find('/');
  std::string_view host = text.substr(0, slash);
  if (slash != std::string_view::npos && !has_uri_characters(text.substr(slash), "/")) return false;
  if (const auto port = host.find(':'); port != std::string_view::npos) {
    const std::string_view digits = host.substr(port + 1);
    if (digits.empty() || digits.size() > 5 || !all_of(digits, is_digit)) return false;
    if (std::stoi(std::string(digits)) > 65535) return false;
    host = host.substr(0, port);
  }
  if (host.empty()) return slash != std::string_view::npos;
  // No length: that is a matter of resolving the name.
  for (const std::string_view label : split(host, '.')) {
    if (label.empty() || label.front() == '-' || label.back() == '-') return false;
  }
  return !is_digit(split(host, '.').back().front()) || is_ipv4(host);
}

bool equal(const JsonValue& left, const JsonValue& right) {
  if (left.is_number() && right.is_number()) return left.as_double() == right.as_double();
  if (left.kind() != right.kind()) return false;
  if (left.is_array()) {
    return std::ranges::equal(left.as_array(), right.as_array(), equal);
  }
  if (!left.is_object()) return left == right;
  return left.as_object().size() == right.as_object().size()
         && std::ranges::all_of(left.as_object(), [&](const JsonMember& member) {
              const JsonValue* other = right.find(member.name);
              return other && equal(member.value, *other);
            });
}

class Check {
 public:
  explicit Check(const JsonValue& root) : root_(root) {}

  [[nodiscard]] bool operator()(const JsonValue& value, const JsonValue& schema) const {
    if (schema.kind() == Kind::boolean) return schema.as_boolean();
    return std::ranges::all_of(schema.as_object(), [&](const JsonMember& keyword) {
      return holds(value, keyword.name, keyword.value, schema);
    });
  }

 private:
  [[nodiscard]] static bool has_type(const JsonValue& value, const std::string& name) {
    switch (value.kind()) {
      case Kind::null:
        return name == "null";
      case Kind::boolean:
        return name == "boolean";
      case Kind::string:
        return name == "string";
      case Kind::array:
        return name == "array";
      case Kind::object:
        return name == "object";
      case Kind::number:
        break;
    }
    return name == "number" || (name == "integer" && value.as_integer());
  }

  [[nodiscard]] bool holds(const JsonValue& value, const std::string& keyword,
                           const JsonValue& argument, const JsonValue& schema) const {
    const auto by_schema = [&](const JsonValue& other) { return (*this)(value, other); };
    if (keyword == "type") {
      if (argument.is_string()) return has_type(value, argument.as_string());
      return std::ranges::any_of(argument.as_array(), [&](const JsonValue& name) {
        return has_type(value, name.as_string());
      });
    }
    if (keyword == "const") return equal(value, argument);
    if (keyword == "enum") {
      return std::ranges::any_of(argument.as_array(),
                                 [&](const JsonValue& one) { return equal(value, one); });
    }
    if (keyword == "anyOf") return std::ranges::any_of(argument.as_array(), by_schema);
    if (keyword == "allOf") return std::ranges::all_of(argument.as_array(), by_schema);
    if (keyword == "$ref") return by_schema(target(argument.as_string()));
    if (keyword == "format" && value.is_string()) {
      return is_of_format(value.as_string(), argument.as_string());
    }
    if (value.is_array()) return holds_for_array(value, keyword, argument);
    if (value.is_object()) return holds_for_object(value, keyword, argument, schema);
    return true;
  }

  [[nodiscard]] bool holds_for_array(const JsonValue& value, const std::string& keyword,
                                     const JsonValue& argument) const {
    if (keyword == "minItems") {
      return value.as_array().size() >= static_cast<std::size_t>(*argument.as_integer());
    }
    if (keyword != "items") return true;
    return std::ranges::all_of(value.as_array(),
                               [&](const JsonValue& item) { return (*this)(item, argument); });
  }

  [[nodiscard]] bool holds_for_object(const JsonValue& value, const std::string& keyword,
                                      const JsonValue& argument, const JsonValue& schema) const {
    if (keyword == "required") {
      return std::ranges::all_of(argument.as_array(), [&](const JsonValue& name) {
        return value.find(name.as_string()) != nullptr;
      });
    }
    if (keyword == "properties") {
      return std::ranges::all_of(argument.as_object(), [&](const JsonMember& property) {
        const JsonValue* found = value.find(property.name);
        return !found || (*this)(*found, property.value);
      });
    }
    if (keyword != "additionalProperties") return true;
    const JsonValue* listed = schema.find("properties");
    return std::ranges::all_of(value.as_object(), [&](const JsonMember& member) {
      return (listed && listed->find(member.name)) || (*this)(member.value, argument);
    });
  }

  [[nodiscard]] const JsonValue& target(const std::string& reference) const {
    const JsonValue* value = &root_;
    for (const std::string_view step : split(std::string_view(reference).substr(2), '/')) {
      value = value->find(step);
    }
    return *value;
  }

  const JsonValue& root_;
};

}  // namespace

bool is_of_format(const std::string& text, const std::string& format) {
  if (format == "date-time") return is_date_time(text);
  if (format == "time") return is_time(text);
  if (format == "date") return is_date(text);
  if (format == "duration") return is_duration(text);
  if (format == "email") return is_email(text);
  if (format == "hostname") return is_hostname(text);
  if (format == "uri") return is_uri(text);
  if (format == "ipv4") return is_ipv4(text);
  if (format == "ipv6") return is_ipv6(text);
  return format == "uuid" && is_uuid(text);
}

bool is_valid(const JsonValue& value, const JsonValue& schema) {
  return Check(schema)(value, schema);
}

}  // namespace incipit::constrain
