#include "incipit/json.h"
#include "json_fault.h"
#include "utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace incipit {
namespace {

namespace ondemand = simdjson::ondemand;

// Something simdjson accepts and we do not; `find_json_fault` will find it too.
struct Malformed {};

struct TooManyValues {};

struct DuplicateKey {
  std::string name;
  std::size_t offset;
};

std::string_view trimmed(std::string_view token) {
  const std::size_t end = token.find_last_not_of(" \t\n\r");
  return token.substr(0, end == token.npos ? 0 : end + 1);
}

class TreeBuilder {
 public:
  // `text` is the document that is read: offsets count from its start.
  TreeBuilder(const JsonLimits& limits, const char* text) : limits_(limits), text_(text) {}

  JsonValue build(ondemand::value value, int depth) {
    if (++values_ > limits_.values) throw TooManyValues{};
    switch (value.type().value()) {
      case ondemand::json_type::array:
        return build_array(value.get_array().value(), depth);
      case ondemand::json_type::object:
        return build_object(value.get_object().value(), depth);
      case ondemand::json_type::string:
        return JsonValue::string(std::string(value.get_string().value()));
      default:
        return build_literal(trimmed(value.raw_json_token()));
    }
  }

  JsonValue build_array(ondemand::array array, int depth) {
    check_depth(depth);
    JsonValue::Array items;
    for (auto item : array)
      items.push_back(build(item.value(), depth + 1));
    return JsonValue::array(std::move(items));
  }

  JsonValue build_object(ondemand::object object, int depth) {
    check_depth(depth);
    JsonValue::Object members;
    std::unordered_map<std::string, std::size_t> index;  // once scanning would be slow
    for (auto field : object) {
      // The place is to be asked for first: unescaping consumes the key.
      const auto offset = static_cast<std::size_t>(field.key().value().raw() - 1 - text_);
      std::string name(field.unescaped_key().value());
      JsonValue value = build(field.value(), depth + 1);
      const std::size_t at = place_of(name, members, index);
      if (at < members.size()) {
        if (limits_.unique_keys) throw DuplicateKey{std::move(name), offset};
        members[at].value = std::move(value);
      } else {
        members.push_back({std::move(name), std::move(value)});
      }
    }
    return JsonValue::object(std::move(members));
  }

 private:
  static JsonValue build_literal(std::string_view token) {
    if (token == "null") return {};
    if (token == "true" || token == "false") return JsonValue::boolean(token == "true");
    if (token.empty() || json_number_length(token) != token.size()) throw Malformed{};
    return JsonValue::number(std::string(token));
  }

  // Where a member of that name is, or members.size().
  static std::size_t place_of(const std::string& name, const JsonValue::Object& members,
                              std::unordered_map<std::string, std::size_t>& index) {
    constexpr std::size_t few = 16;
    if (members.size() < few) {
      return static_cast<std::size_t>(std::ranges::find(members, name, &JsonMember::name)
                                      - members.begin());
    }
    if (index.empty()) {
      for (std::size_t i = 0; i < members.size(); ++i)
        index.emplace(members[i].name, i);
    }
    return index.emplace(name, members.size()).first->second;
  }

  void check_depth(int depth) const {
    if (depth >= limits_.depth) throw Malformed{};
  }

  const JsonLimits& limits_;
  const char* text_;
  std::size_t values_ = 0;
};

// simdjson 3.0 lets some lone surrogates pass and makes broken UTF-8 of them.
bool may_hold_surrogates(std::string_view text) {
  for (std::size_t at = text.find("\\u"); at != text.npos; at = text.find("\\u", at + 2)) {
    if (at + 2 < text.size() && (text[at + 2] | 0x20) == 'd') return true;
  }
  return false;
}

// `text` holds an array or object.
JsonValue build_container(std::string_view text, const JsonLimits& limits, int outer) {
  const simdjson::padded_string padded(text);
  ondemand::parser parser;
  ondemand::document document = parser.iterate(padded).value();
  TreeBuilder builder(limits, padded.data());
  JsonValue root = document.type().value() == ondemand::json_type::object
                       ? builder.build_object(document.get_object().value(), outer)
                       : builder.build_array(document.get_array().value(), outer);
  // At the end there is no location any more.
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) throw Malformed{};
  return root;
}

}  // namespace

bool is_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

JsonValue JsonValue::parse(std::string_view text, const JsonLimits& limits) {
  const std::size_t start = text.find_first_not_of(" \t\n\r");
  const bool container = start != text.npos && (text[start] == '{' || text[start] == '[');
  if (!container || may_hold_surrogates(text)) require_json(text, limits.depth);
  try {
    if (container) return build_container(text, limits, 0);
    // simdjson gives a scalar document another interface: read it as the only item of an array.
    return build_container("[" + std::string(text) + "]", limits, -1).as_array().front();
  } catch (const TooManyValues&) {
    throw_parse_error(text, "more than " + std::to_string(limits.values) + " values", 0);
  } catch (const DuplicateKey& duplicate) {
    std::string name;
    JsonWriter(name).string(duplicate.name.substr(0, 80));
    throw_parse_error(text, "duplicate key " + name, duplicate.offset);
  } catch (const Malformed&) {
    require_json(text, limits.depth);
    throw_parse_error(text, "not a JSON document", 0);
  } catch (const simdjson::simdjson_error& error) {
    require_json(text, limits.depth);
    throw_parse_error(text, error.what(), 0);
  }
}

JsonValue JsonValue::boolean(bool truth) {
  JsonValue value;
  value.value_ = truth;
  return value;
}

JsonValue JsonValue::number(std::string text) {
  JsonValue value;
  value.value_ = Number{std::move(text)};
  return value;
}

JsonValue JsonValue::string(std::string text) {
  JsonValue value;
  value.value_ = String{std::move(text)};
  return value;
}

JsonValue JsonValue::array(Array items) {
  JsonValue value;
  value.value_ = std::move(items);
  return value;
}

JsonValue JsonValue::object(Object members) {
  JsonValue value;
  value.value_ = std::move(members);
  return value;
}

std::optional<std::int64_t> JsonValue::as_integer() const {
  if (!is_number()) return std::nullopt;
  const std::string& text = number_text();
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error == std::errc{} && end == text.data() + text.size()) return integer;
  if (text.find_first_of(".eE") == text.npos) return std::nullopt;  // out of range
  // Beyond 2^53 a double cannot tell whether there was a fraction.
  constexpr double exact = 9007199254740992.0;
  const double number = *as_double();
  if (!(number >= -exact && number <= exact)) return std::nullopt;
  integer = static_cast<std::int64_t>(number);
  if (static_cast<double>(integer) != number) return std::nullopt;
  return integer;
}

std::optional<double> JsonValue::as_double() const {
  if (!is_number()) return std::nullopt;
  const std::string& text = number_text();
  double number = 0;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
  if (error != std::errc::result_out_of_range) return number;
  // from_chars does not say which end of the range was left: the exponent's sign does, or, without
  // one, whether there are digits before the point.
  const std::size_t e = text.find_first_of("eE");
  const bool tiny = e != text.npos ? text[e + 1] == '-' : text.find('.') <= 2;
  const double magnitude = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return text.front() == '-' ? -magnitude : magnitude;
}

const JsonValue* JsonValue::find(std::string_view name) const {
  if (!is_object()) return nullptr;
  for (const JsonMember& member : as_object()) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

void JsonValue::write(JsonWriter& writer) const {
  switch (kind()) {
    case Kind::null:
      writer.null();
      break;
    case Kind::boolean:
      writer.boolean(as_boolean());
      break;
    case Kind::number:
      writer.raw(number_text());
      break;
    case Kind::string:
      writer.string(as_string());
      break;
    case Kind::array:
      writer.begin_array();
      for (const JsonValue& item : as_array())
        item.write(writer);
      writer.end_array();
      break;
    case Kind::object:
      writer.begin_object();
      for (const JsonMember& member : as_object()) {
        writer.key(member.name);
        member.value.write(writer);
      }
      writer.end_object();
      break;
  }
}

std::string JsonValue::minified() const {
  std::string out;
  JsonWriter writer(out);
  write(writer);
  return out;
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  return a.value_ == b.value_;
}

}  // namespace incipit
