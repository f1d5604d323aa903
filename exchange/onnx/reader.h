#pragma once
/// Builds the graphs of a model from its messages.
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "ferrite/exchange/onnx/graph.h"
#include "ferrite/exchange/onnx_error.h"

namespace ferrite::onnx::detail {

inline bool is_main_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }
inline std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

/// Slots by name, with few bytes for each.
class Names {
 public:
  /// -1: there is none.
  std::int32_t find(std::string_view name) const {
    if (table_.empty()) return -1;
    for (std::size_t at = place(name);; at = (at + 1) & (table_.size() - 1)) {
      const std::int32_t slot = table_[at];
      if (slot < 0 || names_[static_cast<std::size_t>(slot)] == name) return slot;
    }
  }
  /// Gives the next slot to a name that has none.
  void add(std::string_view name) {
    names_.push_back(name);
    if (2 * names_.size() <= table_.size()) return enter(static_cast<std::int32_t>(names_.size()) - 1);
    table_ = std::vector<std::int32_t>(std::max<std::size_t>(2 * table_.size(), 16), -1);
    for (std::size_t slot = 0; slot < names_.size(); ++slot) enter(static_cast<std::int32_t>(slot));
  }

 private:
  std::size_t place(std::string_view name) const { return std::hash<std::string_view>()(name) & (table_.size() - 1); }
  void enter(std::int32_t slot) {
    std::size_t at = place(names_[static_cast<std::size_t>(slot)]);
    while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = slot;
  }

  std::deque<std::string_view> names_{};
  std::vector<std::int32_t> table_{};
};

/// The names that a graph's nodes see.
struct Scope {
  Names slots{};
  const Scope* outer = nullptr;
  int depth = 0;
};

/// Builds the graphs of one model: reader.cpp those of the model, its functions and bodies, reader_nodes.cpp their
/// nodes.
class Reader {
 public:
  Reader(Program& program, Elsewhere elsewhere, bool frozen)
      : program_(program), elsewhere_(std::move(elsewhere)), frozen_(frozen) {}
  void read();

 private:
  [[noreturn]] void fail(const std::string& what) const { throw OnnxError(program_.where + ": " + what); }
  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    fail("node " + node.label() + ": " + what);
  }
  void add_function(std::string_view message);
  Function* find_function(std::string_view domain, std::string_view name, std::string_view overload) const {
    const auto found = functions_.find({domain, name, overload});
    return found == functions_.end() ? nullptr : found->second;
  }
  void resolve_function(Function& f, const Node& node);
  std::int32_t define(Graph& g, Scope& scope, std::string_view name) {
    if (name.empty()) fail("a value of graph " + quoted(g.name) + " has no name");
    if (scope.slots.find(name) >= 0) fail("two values have the name " + quoted(name));
    scope.slots.add(name);
    return g.slots++;
  }
  /// Where a value is; `of` says in an error what needs it.
  Reference find(const Scope& scope, std::string_view name, const char* what,
                 const std::function<std::string()>& of) const;
  Reference find(const Scope& scope, std::string_view name, const char* what, const Node& node) const;
  Graph read_graph(std::string_view message, const Scope* outer);
  Attribute read_attribute(std::string_view message, const Scope& scope, const Node& node);
  std::string where(const Node& node, std::string_view attribute) const {
    return program_.where + ": node " + node.label() + ": attribute " + quoted(attribute);
  }
  Node read_node(std::string_view message, Graph& g, Scope& scope);
  void read_attributes(Node& node, std::string_view message, const Scope& scope);
  void find_meaning(Node& node, std::string_view domain, std::string_view overload);
  /// Counts nodes, and refuses functions that call each other until these are more than any model has.
  void count(std::uint64_t nodes, const Node& node);
  /// Initialisers of floats are parameters, unless their numbers decide on shapes.
  void choose_parameters(Graph& g);
  /// Notes with each node which slots nobody reads behind it.
  void release(Graph& g);
  static void keep_captured(const Graph& inner, std::int32_t depth, std::vector<char>& stays);
  Program& program_;
  Elsewhere elsewhere_;
  bool frozen_;
  const Imports* imports_ = nullptr;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Function*> functions_{};
  int functions_open_ = 0;
  std::uint64_t size_ = 0;  ///< nodes so far, those of functions counted wherever these are called
  std::unordered_set<std::string> parameter_names_{};
};

}  // namespace ferrite::onnx::detail
