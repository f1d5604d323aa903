#pragma once
/// A model that was read, and the graphs that are made from its messages when it runs: nodes with resolved names and
/// views of the messages.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/exchange/onnx/constant.h"
#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/outline.h"
#include "ferrite/exchange/onnx/training_rule.h"
#include "ferrite/exchange/onnx/value.h"

namespace ferrite::onnx::detail {

struct Graph;
struct Function;

/// The place of a node's input: a slot of the graph that lies `depth` levels further out. Slot -1: it is left out.
struct Reference {
  std::int32_t depth = 0;
  std::int32_t slot = -1;
};

/// An attribute of a node.
struct Attribute {
  std::string_view name;
  AttributeType type = AttributeType::undefined;
  std::string_view reference{};  ///< in a function's body: the name of the function's attribute that it refers to
  std::string_view message{};    ///< bytes of the AttributeProto
  const Constant* tensor = nullptr;
  std::unique_ptr<Graph> graph{};
};

/// Many short lists of numbers in few blocks of memory, which stay where they are.
class Lists {
 public:
  template <class T>
  std::span<T> make(std::size_t n) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) == alignof(std::int32_t));
    const std::size_t words = n * sizeof(T) / sizeof(std::int32_t);
    if (words > left_) {
      constexpr std::size_t kBlock = 2048;
      left_ = std::max(words, kBlock);
      next_ = blocks_.emplace_back(std::make_unique<std::int32_t[]>(left_)).get();
    }
    T* const first = reinterpret_cast<T*>(next_);
    std::uninitialized_value_construct_n(first, n);
    next_ += words;
    left_ -= words;
    return {first, n};
  }

 private:
  std::vector<std::unique_ptr<std::int32_t[]>> blocks_{};
  std::int32_t* next_ = nullptr;
  std::size_t left_ = 0;
};

/// An application of an operation or of a function of the model.
struct Node {
  std::string_view operation;
  std::string_view title{};                  ///< the name of the node, or of its first output
  std::span<Reference> inputs{};             ///< stored in Graphs::lists, like the next two
  std::span<std::int32_t> outputs{};         ///< slots of the outputs; -1: not wanted
  std::span<const std::int32_t> released{};  ///< slots that no later node reads
  std::vector<Attribute> attributes{};
  std::int64_t version = 0;
  const Operation* row = nullptr;      ///< the operation; null for a function
  const Function* function = nullptr;  ///< the function; null for an operation

  /// Returns the node's title and operation, `"encoder/Gru_3" (GRU)`.
  std::string label() const;
};

/// An extent in the shape of a Port.
struct Dimension {
  std::int64_t extent = -1;  ///< -1: symbolic or unknown
  std::string_view symbol{};
};

/// Returns whether the name of a dimension permits any extent, not only one that is the same wherever the name occurs:
/// exporters give such names to all axes that they know nothing about.
inline bool is_placeholder(std::string_view symbol) {
  return symbol.empty() || symbol == "?" || symbol == "-1" || symbol == "None";
}

/// An input or output of a graph.
struct Port {
  std::string_view name;
  ElementType type = ElementType::undefined;
  bool ranked = false;  ///< whether the file gives its shape
  std::vector<Dimension> shape{};
  bool tensor = true;  ///< false for a sequence, optional or map
};

/// A tensor of the file that is a value of a graph.
struct Initialiser {
  std::int32_t slot = 0;
  std::int32_t parameter = -1;      ///< its number among the model's parameters; -1: a constant
  const Constant* value = nullptr;  ///< the value of a constant
  std::string_view name{};
  Reason reason = Reason::named;
  std::string because{};  ///< the node that needs the numbers of a folded one
};

/// A graph of a model, the body of a function, or a graph within a node.
struct Graph {
  std::string_view name;
  std::vector<Port> inputs{};
  std::vector<Port> outputs{};
  std::vector<std::int32_t> input_slots{};
  std::vector<Reference> results{};
  std::vector<Initialiser> initialisers{};
  /// First values, by slot, of parameters that are also used as running statistics: as statistics they do not train.
  std::map<std::int32_t, const Constant*> statistics{};
  std::deque<Node> nodes{};
  std::int32_t slots = 0;
};

/// The opsets that a model or function imports.
struct Imports {
  std::vector<std::pair<std::string_view, std::int64_t>> versions{};
  /// Returns the imported version of a domain, or -1.
  std::int64_t of(std::string_view domain) const;
};

/// A function that an ONNX model defines for its nodes to call.
struct Function {
  /// The parts of a function that a call needs.
  struct Body {
    Imports imports{};
    std::vector<std::string_view> attributes{};
    std::vector<Attribute> defaults{};
    Graph graph{};
  };
  std::string_view domain{};
  std::string_view name{};
  std::string_view overload{};
  std::string_view message{};
  std::unique_ptr<Body> body{};  ///< null unless the function is called
  int state = 0;                 ///< 0: not read yet, 1: being read, 2: read
  std::uint64_t size = 0;        ///< number of nodes, including those of the functions that it calls
  int depth = 0;                 ///< largest number of nested graphs and functions in it, including itself
  /// Bit i says that the numbers of input i have to be known while a program is traced.
  std::uint64_t static_inputs = 0;
};

/// The graphs of a model: the main graph and the functions that it calls.
struct Graphs {
  Graph main{};
  std::deque<Function> functions{};
  std::deque<Constant> constants{};
  Lists lists{};
};

/// An initialiser that is a parameter, or a tensor whose elements a model's messages lack.
struct Held {
  std::int32_t parameter = -1;  ///< its number; -1: a constant
  Constant value{};  ///< the value of a constant; the first value of a parameter that is also a running statistic
};

/// A model whose messages were all checked. Its graphs are made when it runs or reports, since nodes take many times
/// the bytes of their messages, which would break the bound on memory for reading a file.
class CheckedModel {
 public:
  explicit CheckedModel(std::string name) : where(std::move(name)) {}

  std::string where;
  std::vector<char> bytes{};  ///< bytes of the messages, Outline::bytes
  Imports imports{};
  std::vector<Port> inputs{};
  std::vector<Port> outputs{};
  std::size_t nodes = 0;                                    ///< number of nodes in the main graph
  std::vector<std::pair<std::string, Value>> parameters{};  ///< names and first values; moved out by the Model
  std::vector<ElementType> parameter_types{};
  std::vector<Reason> reasons{};                   ///< reasons of all initialisers, in the order of the Reader
  std::set<std::string, std::less<>> constants{};  ///< names of inputs that are the same in every call
  std::map<std::size_t, Held> held{};              ///< tensors by the position of their messages in `bytes`

  std::string_view messages() const { return {bytes.data(), bytes.size()}; }
  std::size_t place_of(std::string_view message) const {
    return static_cast<std::size_t>(message.data() - bytes.data());
  }
  /// Returns the graphs, which the first call makes. Several threads may call it.
  const Graphs& graphs() const;

 private:
  mutable std::once_flag once_{};
  mutable std::unique_ptr<const Graphs> graphs_{};
};

/// Reads and checks a model. `folder` may hold external data, which is refused if it is empty. Throws OnnxError, and
/// ValueError where ReadOptions::trains does not fit the model.
std::shared_ptr<CheckedModel> read_model(Input& input, std::string where, const std::filesystem::path& folder,
                                         const Training& training = {},
                                         std::set<std::string, std::less<>> constants = {});

/// The sources of tensor elements that are not in their messages.
struct Elsewhere {
  std::filesystem::path folder{};  ///< folder of external data, which is refused if empty
  Input* input = nullptr;          ///< the file, which has the elements that the outline left out
  std::string_view outline{};      ///< bytes of the outline
  std::map<std::size_t, Outline::Range> ranges{};

  const Outline::Range* left_out(std::string_view tensor) const;
};
/// The kind of message that holds a tensor.
enum class Storage { dense, sparse };  // TensorProto, SparseTensorProto

/// Returns the name of a tensor without checking anything.
std::string_view name_of_tensor(std::string_view message, Storage storage);
/// Reads a tensor, sparse ones made dense. The number and type of elements are checked now, the elements when they are
/// asked for. Throws OnnxError, its message beginning with `where`.
Constant read_constant(std::string_view message, Storage storage, const std::string& where, const Elsewhere& elsewhere);
/// Reads a TensorProto that holds all of its elements or names external data in `folder`.
Value read_tensor(std::string_view message, const std::string& where, const std::filesystem::path& folder);

}  // namespace ferrite::onnx::detail
