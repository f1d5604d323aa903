#pragma once
/// The reader that checks the messages of a model and makes its graphs from them.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ferrite/exchange/onnx/names.h"
#include "ferrite/exchange/onnx/onnx_graph.h"
#include "ferrite/exchange/onnx/wire.h"
#include "ferrite/exchange/onnx_error.h"

namespace ferrite::onnx::detail {

inline bool is_main_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }
inline std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

/// Calls `each` with every initialiser of a graph.
template <class F>
void each_tensor(std::string_view graph, const F& each) {
  for (Message m(graph); m.next();) {
    if (m.tag() == graph_field::initializer)
      each(m.bytes(), Storage::dense);
    else if (m.tag() == graph_field::sparse_initializer)
      each(m.bytes(), Storage::sparse);
    else
      m.skip();
  }
}

/// The names that the nodes of a graph can refer to.
struct Scope {
  Names slots;
  const Scope* outer = nullptr;
  int depth = 0;
};

/// Walks over the messages of a model twice: first it checks all of them and takes from the file what the messages
/// lack, parameters and elements; when the model runs, it makes the graphs.
class Reader {
 public:
  /// Checks `program.messages()` and fills in the other members of `program`.
  static void check(CheckedModel& program, const Elsewhere& elsewhere, const Training& training);
  /// Returns the graphs of a program that was checked.
  static std::unique_ptr<const Graphs> graphs_of(const CheckedModel& program);

 private:
  /// The inputs and results of checking a model.
  struct Check {
    CheckedModel& program;
    const Elsewhere& elsewhere;
    const Training& training;
    std::unordered_set<std::string_view> asked{};  ///< names in ReadOptions::trains that were found
    std::unordered_set<std::string> parameter_names{};
    std::unordered_map<std::string, int> given{};  ///< number of repetitions of a parameter's name in the file
    std::int64_t sparse = 0;                       ///< elements of sparse tensors beyond what their messages allow
  };

  /// Makes a reader that checks a model or, with a null `check`, makes its graphs.
  Reader(const CheckedModel& program, Check* check) : program_(program), check_(check), imports_(&program.imports) {}
  [[noreturn]] void fail(const std::string& what) const { throw OnnxError(program_.where + ": " + what); }
  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    fail("node " + node.label() + ": " + what);
  }
  std::string_view read_model(CheckedModel& program);
  void find_functions();
  void add_function(std::string_view message);
  Function* find_function(std::string_view domain, std::string_view name, std::string_view overload) const {
    const auto found = functions_.find({domain, name, overload});
    return found == functions_.end() ? nullptr : found->second;
  }
  void read_import(Imports& imports, Message message) const;
  /// Adds `levels` to the number of graphs and functions that are being read, one within the other.
  void enter(int levels);
  void resolve_function(Function& f, const Node& node);
  void read_body(Function& f, const Node& node);
  Port read_port(std::string_view message) const;
  void read_type(Port& port, Message type) const;
  std::int32_t define(const Graph& g, Scope& scope, std::string_view name) const {
    if (name.empty()) fail("a value of graph " + quoted(g.name) + " has no name");
    if (scope.slots.find(name) >= 0) fail("two values have the name " + quoted(name));
    scope.slots.add(name);
    return scope.slots.size() - 1;
  }
  /// Returns the place of a value; `of` says in an error what needs it.
  Reference find(const Scope& scope, std::string_view name, const char* what,
                 const std::function<std::string()>& of) const;
  Reference find(const Scope& scope, std::string_view name, const char* what, const Node& node) const;
  /// Reads a graph. While a model is checked, an inner graph is only checked and not kept.
  Graph read_graph(std::string_view message, const Scope* outer);
  void read_inputs(Graph& g, Scope& scope, std::string_view message) const;

  // ---- nodes
  Attribute read_attribute(std::string_view message, const Scope& scope, const Node& node);
  void read_node(std::string_view message, Graph& g, Scope& scope);
  void read_attributes(Node& node, std::string_view message, const Scope& scope);
  void find_meaning(Node& node, std::string_view domain, std::string_view overload);
  /// Counts nodes, and refuses functions whose calls multiply to more nodes than any model has.
  void count(std::uint64_t nodes, const Node& node);
  /// Fills in for each node the slots that no later node reads.
  void release(Graph& g);
  static void keep_captured(const Graph& inner, std::int32_t depth, std::vector<char>& stays);

  // ---- tensors
  /// Returns a tensor of an attribute, or null while the model is checked.
  const Constant* read_attribute_tensor(std::string_view message, Storage storage, const std::string& where);
  /// Reads a tensor while a model is checked. Refuses sparse ones with many more elements than a file of that size has.
  Constant read_checked(std::string_view message, Storage storage, const std::string& where);
  /// Holds a constant whose elements its message lacks, or checks its elements, while a model is checked.
  void check_constant(std::string_view message, Constant c);
  /// Reads the initialisers of a graph whose names are known. While the model is checked, those of floats become
  /// parameters by the rule of training_rule.h.
  void read_initialisers(Graph& g, const Scope& scope, std::string_view message);
  void check_initialiser(std::string_view message, Storage storage, std::uint16_t uses, bool decides);
  /// A function that is called once for each slot that `deciding` finds, with the node that needs its numbers.
  using Because = std::function<void(std::int32_t slot, std::string_view node)>;
  /// Returns which slots of a graph hold numbers that have to be known while a program is traced, and do not depend on
  /// data. `nodes` is the number of the field with nodes, `data` has a bit for each slot that is data.
  std::vector<bool> deciding(const Scope& scope, std::string_view message, std::uint32_t nodes, std::vector<bool> data,
                             const Because& because = {}) const;
  /// Returns a bit for each slot: whether it is an input of the model that differs between calls.
  std::vector<bool> inputs_that_are_data(const Scope& scope, std::string_view message) const;
  /// Returns the uses, as a set of `Use`, of each of the first n initialisers of a graph.
  std::vector<std::uint16_t> uses_of_initialisers(const Scope& scope, std::string_view message, std::size_t n) const;
  /// The operation or the function that a node applies; both are null where it is unknown.
  struct Meaning {
    const Operation* row = nullptr;
    const Function* function = nullptr;
    std::string_view operation{};
    bool takes(std::size_t i) const;  ///< returns whether the numbers of input i have to be known
  };
  Meaning meaning_of(std::string_view node) const;

  const CheckedModel& program_;
  Check* check_;
  const Imports* imports_;
  std::unique_ptr<Graphs> graphs_ = std::make_unique<Graphs>();
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Function*> functions_{};
  int functions_open_ = 0;
  int open_ = 0;                  ///< number of graphs and functions that are being read, each within the last
  int deepest_ = 0;               ///< largest value of open_, functions counted wherever they are called
  std::uint64_t size_ = 0;        ///< number of nodes so far, those of functions counted wherever they are called
  std::size_t initialisers_ = 0;  ///< number of initialisers made so far
};

}  // namespace ferrite::onnx::detail
