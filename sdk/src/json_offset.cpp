#include "incipit/json.h"
#include "json_place.h"
#include "json_slices.h"

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace incipit {
namespace {

struct Step {
  std::string_view value;  // empty: the path leads nowhere
  std::string_view rest;
};

// A name may hold dots itself: of the members that the path may mean, that with the longest name.
Step into_object(std::string_view object, std::string_view path) {
  Step step;
  std::size_t longest = 0;
  for (const JsonMemberSlice& member : json_members(object)) {
    const std::string name = json_unescaped(member.key);
    if (!path.starts_with(name) || name.size() < longest) continue;
    const bool ends_there = name.size() == path.size();
    if (!ends_there && path[name.size()] != '.') continue;
    step = {member.value, ends_there ? std::string_view() : path.substr(name.size() + 1)};
    longest = name.size();
  }
  return step;
}

Step into_array(std::string_view array, std::string_view path) {
  const std::string_view name = path.substr(0, path.find('.'));
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const auto items = json_items(array);
  if (error != std::errc{} || end != name.data() + name.size() || index >= items.size()) return {};
  return {items[index],
          name.size() == path.size() ? std::string_view() : path.substr(name.size() + 1)};
}

bool holds(std::string_view value, const char* place) {
  return value.data() <= place && place < value.data() + value.size();
}

}  // namespace

std::size_t json_offset(std::string_view document, std::string_view path) {
  const std::size_t start = document.find_first_not_of(" \t\n\r");
  if (start == document.npos) return 0;
  std::string_view value = document.substr(start);
  while (!path.empty()) {
    Step step;
    if (value.front() == '{') step = into_object(value, path);
    if (value.front() == '[') step = into_array(value, path);
    if (step.value.empty()) break;
    value = step.value;
    path = step.rest;
  }
  return static_cast<std::size_t>(value.data() - document.data());
}

std::string json_path(std::string_view document, std::size_t offset) {
  const char* const place = document.data() + offset;
  std::string path;
  std::string_view value = document.substr(json_offset(document, ""));
  while (!value.empty() && value.data() != place) {
    std::string_view inner;
    std::string name;
    if (value.front() == '{') {
      for (const JsonMemberSlice& member : json_members(value)) {
        if (!holds(member.value, place)) continue;
        inner = member.value;
        name = json_unescaped(member.key);
      }
    } else if (value.front() == '[') {
      const auto items = json_items(value);
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (!holds(items[i], place)) continue;
        inner = items[i];
        name = std::to_string(i);
      }
    }
    if (inner.empty()) break;
    if (!path.empty()) path += '.';
    path += name;
    value = inner;
  }
  return path;
}

}  // namespace incipit
