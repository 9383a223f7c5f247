// The automaton of a schema's values.
#pragma once

#include "gateway/constrain/nfa.h"
#include "gateway/constrain/region.h"
#include "gateway/constrain/schema_reader.h"

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace incipit::constrain {

// Puts a region behind a node and returns the node behind it.
using PutRegion = std::function<Nfa::Node(Nfa::Node, std::shared_ptr<const Region>)>;

class SchemaWriter {
 public:
  // All arguments must outlive this.
  SchemaWriter(Nfa& nfa, const Regions& regions, const PutRegion& put_region,
               const Shape::Parts& schema, const Limits& limits);

  // Adds the schema's values behind `from`, a node that has no other ways to go on, and returns the
  // node behind them. Throws SchemaError; TooManyStates.
  Nfa::Node write(Nfa::Node from);

  [[nodiscard]] int optional_properties() const { return static_cast<int>(optionals_.size()); }

  [[nodiscard]] int union_types() const { return reader_.union_types(); }

 private:
  using Node = Nfa::Node;

  struct Member {
    std::string name;
    Conjunction schemas;
    bool is_required;
  };

  // `freedom`: how many arrays and objects around the value no schema asked for.
  Node write_value(Node from, const Conjunction& schemas, int freedom);
  // Whether there was anything to write.
  bool write_alternative(Node from, const Alternative& way, const Conjunction& schemas, int freedom,
                         Node end);
  bool write_listed(Node from, const Alternative& way, unsigned types, Node end);
  [[nodiscard]] unsigned types_to_write(const Alternative& way, const Conjunction& schemas,
                                        int freedom) const;
  Node write_number(Node from, bool is_integer);
  Node write_string(Node from, const std::string& format);
  Node write_array(Node from, const Alternative& way, int freedom);
  Node write_object(Node from, const Alternative& way, const Conjunction& schemas, int freedom);
  Node write_members(Node from, const std::vector<Member>& members, int freedom);
  Node write_map(Node from, const Conjunction& schemas, int freedom);
  [[nodiscard]] std::vector<Member> members_of(const Alternative& way, const Conjunction& schemas);
  Node write_json(Node from, const JsonValue& value);
  // One blank at most.
  Node after_separator(Node from, char separator);

  Nfa& nfa_;
  const Regions& regions_;
  const PutRegion& put_region_;
  const Shape::Parts& schema_;
  SchemaReader reader_;
  std::unordered_set<const JsonValue*> optionals_;
};

}  // namespace incipit::constrain
