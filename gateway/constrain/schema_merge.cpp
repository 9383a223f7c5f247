#include "gateway/constrain/schema_merge.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace incipit::constrain {
namespace {

using Property = Alternative::Property;
using Index = std::unordered_map<std::string_view, const Property*>;

void append(Conjunction& to, const Conjunction& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Index index_of(const std::vector<Property>& properties) {
  Index index;
  for (const Property& property : properties)
    index.emplace(property.name, &property);
  return index;
}

// A property that one side names is to the other side an additional one.
std::vector<Property> merge_properties(const Alternative& left, const Alternative& right) {
  const Index in_left = index_of(left.properties);
  const Index in_right = index_of(right.properties);
  std::vector<Property> merged;
  for (const Property& property : left.properties) {
    const auto other = in_right.find(property.name);
    if (other == in_right.end() && right.is_closed) continue;
    merged.push_back(property);
    append(merged.back().schemas,
           other == in_right.end() ? right.additional : other->second->schemas);
  }
  for (const Property& property : right.properties) {
    if (in_left.contains(property.name) || left.is_closed) continue;
    merged.push_back(property);
    append(merged.back().schemas, left.additional);
  }
  return merged;
}

std::vector<const JsonValue*> merge_values(const std::vector<const JsonValue*>& left,
                                           const std::vector<const JsonValue*>& right) {
  std::unordered_set<std::string> known;
  for (const JsonValue* value : right)
    known.insert(value->minified());
  std::vector<const JsonValue*> merged = left;
  std::erase_if(merged, [&](const JsonValue* value) { return !known.contains(value->minified()); });
  return merged;
}

}  // namespace

std::optional<Alternative> merge(const Alternative& left, const Alternative& right) {
  Alternative merged;
  merged.types = left.types & right.types;
  merged.says_type = left.says_type || right.says_type;
  if (merged.types == 0) return std::nullopt;
  if (left.values && right.values) {
    merged.values = merge_values(*left.values, *right.values);
  } else {
    merged.values = left.values ? left.values : right.values;
  }
  if (merged.values && merged.values->empty()) return std::nullopt;
  if (!left.format.empty() && !right.format.empty() && left.format != right.format) {
    return std::nullopt;
  }
  merged.format = left.format.empty() ? right.format : left.format;
  merged.properties = merge_properties(left, right);
  merged.required = left.required;
  merged.required.insert(merged.required.end(), right.required.begin(), right.required.end());
  merged.is_closed = left.is_closed || right.is_closed;
  merged.additional = left.additional;
  append(merged.additional, right.additional);
  merged.items = left.items;
  append(merged.items, right.items);
  merged.says_items = left.says_items || right.says_items;
  merged.min_items = std::max(left.min_items, right.min_items);
  return merged;
}

}  // namespace incipit::constrain
