#pragma once
/// Builds the graphs of a model from its messages.
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ferrite/exchange/onnx/graph.h"
#include "ferrite/exchange/onnx_error.h"

namespace ferrite::onnx::detail {

inline bool is_main_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }
inline std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

/// The names that a graph's nodes see.
struct Scope {
  std::unordered_map<std::string_view, std::int32_t> slots{};
  const Scope* outer = nullptr;
  int depth = 0;
};

/// Builds the graphs of one model: reader.cpp those of the model, its functions and bodies, reader_nodes.cpp their
/// nodes.
class Reader {
 public:
  Reader(Program& program, std::filesystem::path folder, bool frozen)
      : program_(program), folder_(std::move(folder)), frozen_(frozen) {}
  void read();

 private:
  [[noreturn]] void fail(const std::string& what) const { throw OnnxError(program_.where + ": " + what); }
  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    fail("node " + node.label() + ": " + what);
  }
  void add_function(std::string_view message);
  Function* find_function(std::string_view domain, std::string_view name, std::string_view overload) const {
    for (const auto& f : program_.functions)
      if (f->name == name && f->domain == domain && f->overload == overload) return f.get();
    return nullptr;
  }
  void resolve_function(Function& f, const Node& node);
  std::int32_t define(Graph& g, Scope& scope, std::string_view name) {
    if (name.empty()) fail("a value of graph " + quoted(g.name) + " has no name");
    if (!scope.slots.emplace(name, g.slots).second) fail("two values have the name " + quoted(name));
    return g.slots++;
  }
  Reference find(const Scope& scope, std::string_view name, const char* what, const std::string& of) const;
  Graph read_graph(std::string_view message, const Scope* outer);
  Attribute read_attribute(std::string_view message, const Scope& scope, const Node& node);
  std::string where(const Node& node, std::string_view attribute) const {
    return program_.where + ": node " + node.label() + ": attribute " + quoted(attribute);
  }
  Node read_node(std::string_view message, Graph& g, Scope& scope);
  void read_attributes(Node& node, std::string_view message, const Scope& scope);
  void find_meaning(Node& node, std::string_view overload);
  /// Counts nodes, and refuses functions that call each other until these are more than any model has.
  void count(std::uint64_t nodes, const Node& node);
  /// Initialisers of floats are parameters, unless their numbers decide on shapes.
  void choose_parameters(Graph& g);
  /// Notes with each node which slots nobody reads behind it.
  static void release(Graph& g);
  static void keep_captured(const Graph& inner, std::int32_t depth, std::vector<char>& stays);
  Program& program_;
  std::filesystem::path folder_;
  bool frozen_;
  const Imports* imports_ = nullptr;
  int functions_open_ = 0;
  std::uint64_t size_ = 0;  ///< nodes so far, those of functions counted wherever these are called
  std::unordered_set<std::string> parameter_names_{};
};

}  // namespace ferrite::onnx::detail
