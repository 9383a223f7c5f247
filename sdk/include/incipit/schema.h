// JSON Schemas from C++ types, and values of those types from JSON: for structured output and
// tools. Source: anthropic-wire sections 7.3 and 19.6.
//
//   struct Invoice { std::string number; double total; std::optional<std::string> note; };
//   template <> struct incipit::Described<Invoice> {
//     static constexpr auto fields = std::tuple(
//         field("number", &Invoice::number, "As printed"), field("total", &Invoice::total),
//         field("note", &Invoice::note));
//   };
#pragma once

#include "incipit/anthropic.h"
#include "incipit/json.h"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace incipit {

// One member of a described struct. `description` is for the model.
template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::*member;
  std::string_view description;
};

template <class Struct, class Member>
constexpr Field<Struct, Member> field(std::string_view name, Member Struct::*member,
                                      std::string_view description = {}) {
  return {name, member, description};
}

// Specialise with `fields`, a tuple of `field(…)`, in the order in which they are to be written.
// For an enum: with `values`, an array of pair<Enum, string_view>.
template <class Type>
struct Described;

template <class Type>
concept DescribedStruct = requires {
  Described<Type>::fields;
};

template <class Type>
concept DescribedEnum = requires {
  Described<Type>::values;
};

namespace schema_detail {

template <class Type>
struct IsOptional : std::false_type {};

template <class Type>
struct IsOptional<std::optional<Type>> : std::true_type {};

template <class Type>
struct IsVector : std::false_type {};

template <class Type>
struct IsVector<std::vector<Type>> : std::true_type {};

// Throws ParseError: `path` is not what it should be.
[[noreturn]] void mismatch(std::string_view path, std::string_view wanted);
[[nodiscard]] std::string child(std::string_view path, std::string_view name);
// Throws ParseError: the text of `message` is not what was asked for, with a hint from its stop
// reason.
[[noreturn]] void unfit_output(const Message& message, const ParseError& why);

// Whether a described struct has itself inside, at any depth: its schema would have no end.
template <class Type, class... Outer>
consteval bool contains_itself() {
  if constexpr ((std::same_as<Type, Outer> || ...)) {
    return true;
  } else if constexpr (IsOptional<Type>::value || IsVector<Type>::value) {
    return contains_itself<typename Type::value_type, Outer...>();
  } else if constexpr (DescribedStruct<Type>) {
    return std::apply(
        []<class... Structs, class... Members>(const Field<Structs, Members>&...) {
          return (contains_itself<Members, Outer..., Type>() || ...);
        },
        Described<Type>::fields);
  } else {
    return false;
  }
}

}  // namespace schema_detail

// Writes the schema of a type: bool, integers, floating point, std::string, std::vector,
// std::optional (a property that is not required), JsonText (anything), described structs and
// enums. Objects get `additionalProperties: false`, as the API demands.
template <class Type>
void write_schema(JsonWriter& writer, std::string_view description = {}) {
  using schema_detail::IsOptional;
  using schema_detail::IsVector;
  if constexpr (IsOptional<Type>::value) {
    write_schema<typename Type::value_type>(writer, description);
  } else {
    writer.begin_object();
    if constexpr (std::same_as<Type, bool>) {
      writer.key("type").string("boolean");
    } else if constexpr (std::integral<Type>) {
      writer.key("type").string("integer");
    } else if constexpr (std::floating_point<Type>) {
      writer.key("type").string("number");
    } else if constexpr (std::same_as<Type, std::string>) {
      writer.key("type").string("string");
    } else if constexpr (IsVector<Type>::value) {
      writer.key("type").string("array").key("items");
      write_schema<typename Type::value_type>(writer);
    } else if constexpr (DescribedEnum<Type>) {
      writer.key("type").string("string").key("enum").begin_array();
      for (const auto& [value, name] : Described<Type>::values)
        writer.string(name);
      writer.end_array();
    } else if constexpr (DescribedStruct<Type>) {
      static_assert(!schema_detail::contains_itself<Type>(),
                    "a struct inside itself has no schema");
      writer.key("type").string("object").key("properties").begin_object();
      std::apply(
          [&](const auto&... fields) {
            [[maybe_unused]] const auto property = [&]<class S, class M>(const Field<S, M>& field) {
              writer.key(field.name);
              write_schema<M>(writer, field.description);
            };
            (property(fields), ...);
          },
          Described<Type>::fields);
      writer.end_object().key("required").begin_array();
      std::apply(
          [&](const auto&... fields) {
            [[maybe_unused]] const auto name = [&]<class S, class M>(const Field<S, M>& field) {
              if constexpr (!IsOptional<M>::value) writer.string(field.name);
            };
            (name(fields), ...);
          },
          Described<Type>::fields);
      writer.end_array().key("additionalProperties").boolean(false);
    } else {
      static_assert(std::same_as<Type, JsonText>, "describe this type: see incipit/schema.h");
    }
    if (!description.empty()) writer.key("description").string(description);
    writer.end_object();
  }
}

template <class Type>
[[nodiscard]] JsonText schema_of() {
  std::string json;
  JsonWriter writer(json);
  write_schema<Type>(writer);
  return JsonText::trusted(std::move(json));
}

// The value that `json` spells. Throws ParseError with the path of what does not fit; unknown
// members are ignored, missing ones an error unless optional.
template <class Type>
[[nodiscard]] Type from_json(const JsonValue& json, const std::string& path = {}) {
  using schema_detail::IsOptional;
  using schema_detail::IsVector;
  using schema_detail::mismatch;
  if constexpr (IsOptional<Type>::value) {
    if (json.is_null()) return std::nullopt;
    return from_json<typename Type::value_type>(json, path);
  } else if constexpr (std::same_as<Type, bool>) {
    if (!json.is_boolean()) mismatch(path, "a boolean");
    return json.as_boolean();
  } else if constexpr (std::integral<Type>) {
    const std::optional<std::int64_t> number = json.as_integer();
    if (!number || !std::in_range<Type>(*number)) {
      mismatch(path, "an integer from " + std::to_string(std::numeric_limits<Type>::min()) + " to "
                         + std::to_string(std::numeric_limits<Type>::max()));
    }
    return static_cast<Type>(*number);
  } else if constexpr (std::floating_point<Type>) {
    const std::optional<double> number = json.as_double();
    if (!number) mismatch(path, "a number");
    return static_cast<Type>(*number);
  } else if constexpr (std::same_as<Type, std::string>) {
    if (!json.is_string()) mismatch(path, "a string");
    return json.as_string();
  } else if constexpr (IsVector<Type>::value) {
    if (!json.is_array()) mismatch(path, "an array");
    Type list;
    for (const JsonValue& item : json.as_array()) {
      list.push_back(from_json<typename Type::value_type>(
          item, schema_detail::child(path, std::to_string(list.size()))));
    }
    return list;
  } else if constexpr (DescribedEnum<Type>) {
    if (!json.is_string()) mismatch(path, "a string");
    for (const auto& [value, name] : Described<Type>::values) {
      if (json.as_string() == name) return value;
    }
    std::string words;
    for (const auto& [value, name] : Described<Type>::values)
      words.append(words.empty() ? "one of \"" : ", \"").append(name) += '"';
    mismatch(path, words);
  } else if constexpr (DescribedStruct<Type>) {
    if (!json.is_object()) mismatch(path, "an object");
    Type result{};
    std::apply(
        [&](const auto&... fields) {
          [[maybe_unused]] const auto read = [&]<class S, class M>(const Field<S, M>& field) {
            const std::string at = schema_detail::child(path, field.name);
            const JsonValue* value = json.find(field.name);
            if (value != nullptr) {
              result.*field.member = from_json<M>(*value, at);
            } else if constexpr (!IsOptional<M>::value) {
              mismatch(at, "present");
            }
          };
          (read(fields), ...);
        },
        Described<Type>::fields);
    return result;
  } else {
    static_assert(std::same_as<Type, JsonText>, "describe this type: see incipit/schema.h");
    return JsonText(json);
  }
}

// A schema as structured output and strict tools take it, from any JSON Schema: keeps $defs, $ref,
// type, enum, const, anyOf (oneOf becomes it), allOf, title, description, properties, required,
// items, known string formats and minItems 0 or 1; sets additionalProperties to false; what else
// constrained a value is told in its description instead. Throws PromptError, with the path, for a
// part without any type.
[[nodiscard]] JsonText supported_schema(const JsonText& schema);

// output_config.format for a schema that is supported already.
[[nodiscard]] JsonText json_schema_format(const JsonText& schema);

// For Parameters::output_format: the reply's first text block will be such a value.
template <class Type>
[[nodiscard]] JsonText output_format() {
  return json_schema_format(schema_of<Type>());
}

// The value in the first text block of a reply. Throws ParseError when there is none, or it does
// not fit: after stop reason max_tokens or refusal that is to be expected.
[[nodiscard]] JsonValue parsed_output(const Message& message);

template <class Type>
[[nodiscard]] Type parsed_output(const Message& message) {
  const JsonValue value = parsed_output(message);
  try {
    return from_json<Type>(value);
  } catch (const ParseError& error) {
    schema_detail::unfit_output(message, error);
  }
}

}  // namespace incipit
