#include "visible_json.h"

#include "json_slices.h"

#include <algorithm>
#include <iterator>

namespace incipit {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_opaque(std::string_view key) {
  return key == "\"input\"" || key == "\"input_schema\"" || key == "\"input_examples\"";
}

bool is_part_of_number(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

class Filter {
 public:
  explicit Filter(std::string_view json) : json_(json) {}

  VisibleJson run() {
    visible_.text.reserve(json_.size());
    while (at_ < json_.size()) {
      const char c = json_[at_];
      if (is_space(c)) {
        skip_to(at_ + 1);
      } else if (c == '"') {
        take_string();
      } else {
        if (c == '{' || c == '[') ++depth_;
        if (c == '}' || c == ']') --depth_;
        ++at_;
      }
    }
    skip_to(at_);
    return std::move(visible_);
  }

 private:
  void take_string() {
    const std::size_t end = json_string_end(json_, at_);
    const std::size_t colon = json_token(json_, end);
    if (colon == json_.size() || json_[colon] != ':' || at_ < opaque_) {
      at_ = end;
      return;
    }
    const std::string_view key = json_.substr(at_, end - at_);
    const std::size_t value = json_token(json_, colon + 1);
    if (key == "\"cache_control\"") {
      drop_member(json_value_end(json_, value));
    } else {
      if (depth_ == 1 && is_opaque(key)) opaque_ = json_value_end(json_, value);
      at_ = end;
    }
  }

  // And one of the commas beside it.
  void drop_member(std::size_t end) {
    skip_to(at_);
    const std::size_t next = json_token(json_, end);
    if (visible_.text.ends_with(',')) {
      visible_.text.pop_back();
    } else if (next < json_.size() && json_[next] == ',') {
      end = next + 1;
    }
    skip_to(end);
  }

  // Takes over what has been passed since the last call, and goes on at `next`.
  void skip_to(std::size_t next) {
    if (at_ > kept_) {
      visible_.runs.push_back({visible_.text.size(), kept_});
      visible_.text.append(json_, kept_, at_ - kept_);
    }
    at_ = kept_ = next;
  }

  std::string_view json_;
  VisibleJson visible_;
  std::size_t at_ = 0;
  std::size_t kept_ = 0;    // up to here all is in the visible text, or left out of it
  std::size_t opaque_ = 0;  // where the caller's own JSON ends
  int depth_ = 0;
};

// The member or element of `value` in which `at` stands, or which begins there.
struct Part {
  std::string name;
  std::size_t begin = 0, end = 0;
};

Part part_at(std::string_view whole, std::string_view value, const auto& holds) {
  const auto part = [&](std::string name, std::string_view inner) {
    const auto begin = static_cast<std::size_t>(inner.data() - whole.data());
    return Part{std::move(name), begin, begin + inner.size()};
  };
  if (value.starts_with('{')) {
    for (const JsonMemberSlice& member : json_members(value)) {
      Part found = part({}, member.value);
      if (!holds(found)) continue;
      found.name = json_unescaped(member.key);
      return found;
    }
  } else if (value.starts_with('[')) {
    std::size_t index = 0;
    for (const std::string_view item : json_items(value)) {
      const Part found = part({}, item);
      if (holds(found)) return part(std::to_string(index), item);
      ++index;
    }
  }
  return {};
}

}  // namespace

std::size_t VisibleJson::source(std::size_t at) const {
  const auto next = std::ranges::upper_bound(runs, at, {}, &Run::at);
  if (next == runs.begin()) return at;
  return std::prev(next)->source + at - std::prev(next)->at;
}

VisibleJson visible_json(std::string_view json) {
  return Filter(json).run();
}

std::string path_of_difference(std::string_view before, std::string_view after, std::size_t at) {
  // A number that goes on in `before` only differs right behind its end.
  const auto holds = [&](const Part& part) {
    return at < part.end
           || (at == part.end && is_part_of_number(after[at - 1]) && at < before.size()
               && is_part_of_number(before[at]));
  };
  std::string path;
  std::string_view value = after;
  while (true) {
    const Part part = part_at(after, value, holds);
    if (part.end == 0) return path;
    if (!path.empty()) path += '.';
    path += part.name;
    if (at < part.begin) return path;
    value = after.substr(part.begin, part.end - part.begin);
  }
}

}  // namespace incipit
