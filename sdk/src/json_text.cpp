#include "incipit/json.h"

#include <string>
#include <utility>

namespace incipit {
namespace {

constexpr const char* white_space = " \t\n\r";

}  // namespace

JsonText::JsonText(std::string text) {
  (void)JsonValue::parse(text);
  const std::size_t begin = text.find_first_not_of(white_space);
  const std::size_t end = text.find_last_not_of(white_space) + 1;
  text_ = begin == 0 && end == text.size() ? std::move(text) : text.substr(begin, end - begin);
}

JsonText JsonText::trusted(std::string text) {
  JsonText result;
  result.text_ = std::move(text);
  return result;
}

JsonValue JsonText::value() const {
  return text_.empty() ? JsonValue() : JsonValue::parse(text_);
}

}  // namespace incipit
