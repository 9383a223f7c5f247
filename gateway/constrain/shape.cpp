#include "gateway/constrain/shape.h"

#include <utility>

namespace incipit::constrain {
namespace {

void check_times(int min, std::optional<int> max) {
  if (min < 0 || (max && (*max < min || *max == 0))) {
    throw ShapeError("a shape that comes at least " + std::to_string(min) + " and at most "
                     + std::to_string(max.value_or(0)) + " times");
  }
}

}  // namespace

Shape::Shape(Parts parts) : parts_(std::make_shared<const Parts>(std::move(parts))) {}

Shape Shape::literal(std::string text) {
  Parts parts;
  parts.text = std::move(text);
  return Shape(std::move(parts));
}

Shape Shape::schema(JsonValue schema, Dialect dialect, std::string path) {
  Parts parts;
  parts.kind = Kind::schema;
  parts.text = std::move(path);
  parts.schema = std::move(schema);
  parts.dialect = dialect;
  return Shape(std::move(parts));
}

Shape Shape::sequence(std::vector<Shape> shapes) {
  Parts parts;
  parts.kind = Kind::sequence;
  parts.shapes = std::move(shapes);
  return Shape(std::move(parts));
}

Shape Shape::any_of(std::vector<Shape> alternatives) {
  if (alternatives.empty()) throw ShapeError("a choice between no shapes");
  Parts parts;
  parts.kind = Kind::any_of;
  parts.shapes = std::move(alternatives);
  return Shape(std::move(parts));
}

Shape Shape::repeated(Shape item, std::string separator, int min, std::optional<int> max) {
  check_times(min, max);
  Parts parts;
  parts.kind = Kind::repeated;
  parts.text = std::move(separator);
  parts.shapes.push_back(std::move(item));
  parts.min = min;
  parts.max = max;
  return Shape(std::move(parts));
}

Shape Shape::free_until(std::string trigger, Shape then, int min, std::optional<int> max) {
  check_times(min, max);
  if (trigger.empty() || trigger.size() > 1000) {
    throw ShapeError("a trigger of " + std::to_string(trigger.size()) + " bytes; 1 to 1000 work");
  }
  Parts parts;
  parts.kind = Kind::free_until;
  parts.text = std::move(trigger);
  parts.shapes.push_back(std::move(then));
  parts.min = min;
  parts.max = max;
  return Shape(std::move(parts));
}

std::string Shape::key() const {
  std::string key;
  append_key(key);
  return key;
}

void Shape::append_key(std::string& key) const {
  const auto text = [&](const std::string& s) { key += std::to_string(s.size()) + ":" + s; };
  const Parts& p = *parts_;
  key += std::to_string(static_cast<int>(p.kind)) + (p.dialect == Dialect::strict ? "s" : "l")
         + std::to_string(p.min) + "," + (p.max ? std::to_string(*p.max) : "") + ";";
  // A schema's path shows in errors alone.
  text(p.kind == Kind::schema ? p.schema.minified() : p.text);
  key += std::to_string(p.shapes.size()) + "(";
  for (const Shape& shape : p.shapes)
    shape.append_key(key);
  key += ")";
}

}  // namespace incipit::constrain
