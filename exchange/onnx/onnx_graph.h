#pragma once
/// A model as it was read, and the graphs that its messages become when it runs: nodes whose names are resolved, on
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

/// Where a node finds an input: so many graphs outwards, at that slot. Slot -1: it is left out.
struct Reference {
  std::int32_t depth = 0;
  std::int32_t slot = -1;
};

struct Attribute {
  std::string_view name;
  AttributeType type = AttributeType::undefined;
  std::string_view reference{};  ///< of a function's body: the attribute of the function that is meant
  std::string_view message{};    ///< the AttributeProto
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

struct Node {
  std::string_view operation;
  std::string_view title{};                  ///< its name, or that of its first output
  std::span<Reference> inputs{};             ///< of Graphs::lists, like the next two
  std::span<std::int32_t> outputs{};         ///< slots; -1: not wanted
  std::span<const std::int32_t> released{};  ///< slots that no later node reads
  std::vector<Attribute> attributes{};
  std::int64_t version = 0;
  const Operation* row = nullptr;  ///< or a function of the model
  const Function* function = nullptr;

  /// `"encoder/Gru_3" (GRU)`.
  std::string label() const;
};

struct Dimension {
  std::int64_t extent = -1;  ///< -1: symbolic or unknown
  std::string_view symbol{};
};

/// Whether a name stands for any extent, not for one that is the same wherever it stands: exporters write these to all
/// axes that they know nothing of.
inline bool is_placeholder(std::string_view symbol) {
  return symbol.empty() || symbol == "?" || symbol == "-1" || symbol == "None";
}

/// An input or output of a graph.
struct Port {
  std::string_view name;
  ElementType type = ElementType::undefined;
  bool ranked = false;  ///< whether the file says its shape
  std::vector<Dimension> shape{};
  bool tensor = true;  ///< no sequence, optional or map
};

struct Initialiser {
  std::int32_t slot = 0;
  std::int32_t parameter = -1;      ///< its number among the model's parameters; -1: a constant
  const Constant* value = nullptr;  ///< of a constant
  std::string_view name{};
  Reason reason = Reason::named;
  std::string because{};  ///< of one that is folded: the node that needs its numbers
};

struct Graph {
  std::string_view name;
  std::vector<Port> inputs{};
  std::vector<Port> outputs{};
  std::vector<std::int32_t> input_slots{};
  std::vector<Reference> results{};
  std::vector<Initialiser> initialisers{};
  /// By slot, first values of parameters that are running statistics, too: those do not train.
  std::map<std::int32_t, const Constant*> statistics{};
  std::deque<Node> nodes{};
  std::int32_t slots = 0;
};

/// Opsets that a model or function imports.
struct Imports {
  std::vector<std::pair<std::string_view, std::int64_t>> versions{};
  /// -1: it is not imported.
  std::int64_t of(std::string_view domain) const;
};

struct Function {
  /// What a call needs.
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
  std::unique_ptr<Body> body{};  ///< of one that is called
  int state = 0;                 ///< 0: not read yet, 1: being read, 2: read
  std::uint64_t size = 0;        ///< nodes, those of the functions that it calls counted
  int depth = 0;                 ///< the most graphs and functions within each other in it, itself one
  /// Bit i: the numbers of input i have to be known while a program is traced.
  std::uint64_t static_inputs = 0;
};

/// The graphs of a model: its own, and the functions that it calls.
struct Graphs {
  Graph main{};
  std::deque<Function> functions{};
  std::deque<Constant> constants{};
  Lists lists{};
};

/// An initialiser that is a parameter, or a tensor whose elements a model's messages lack.
struct Held {
  std::int32_t parameter = -1;  ///< its number; -1: a constant
  Constant value{};             ///< of a constant; of a parameter that is a running statistic, too, its first value
};

/// A model whose messages were all checked. Its graphs are made of them when it runs or reports: nodes take many times
/// the bytes of their messages, which no bound on the memory of reading a file would allow.
class CheckedModel {
 public:
  explicit CheckedModel(std::string name) : where(std::move(name)) {}

  std::string where;
  std::vector<char> bytes{};  ///< an Outline's
  Imports imports{};
  std::vector<Port> inputs{};
  std::vector<Port> outputs{};
  std::size_t nodes = 0;                                    ///< of the main graph
  std::vector<std::pair<std::string, Value>> parameters{};  ///< first values; taken out by the Model
  std::vector<ElementType> parameter_types{};
  std::vector<Reason> reasons{};                   ///< of all initialisers, in the order in which a Reader sees them
  std::set<std::string, std::less<>> constants{};  ///< inputs that are the same in every call
  std::map<std::size_t, Held> held{};              ///< by the place of their messages in `bytes`

  std::string_view messages() const { return {bytes.data(), bytes.size()}; }
  std::size_t place_of(std::string_view message) const {
    return static_cast<std::size_t>(message.data() - bytes.data());
  }
  /// Made at the first call. Several threads may ask.
  const Graphs& graphs() const;

 private:
  mutable std::once_flag once_{};
  mutable std::unique_ptr<const Graphs> graphs_{};
};

/// Reads a model. `folder` is where external data may be; empty: it is refused. Throws OnnxError, and ValueError where
/// ReadOptions::trains does not fit the model.
std::shared_ptr<CheckedModel> read_model(Input& input, std::string where, const std::filesystem::path& folder,
                                         const Training& training = {},
                                         std::set<std::string, std::less<>> constants = {});

/// Where elements of tensors may be that are not in their messages.
struct Elsewhere {
  std::filesystem::path folder{};  ///< of external data; empty: it is refused
  Input* input = nullptr;          ///< what an outline has left out
  std::string_view outline{};      ///< its bytes
  std::map<std::size_t, Outline::Range> ranges{};

  const Outline::Range* left_out(std::string_view tensor) const;
};
/// What a message of a tensor is.
enum class Storage { dense, sparse };  // TensorProto, SparseTensorProto

/// The name of a tensor; nothing is checked.
std::string_view name_of_tensor(std::string_view message, Storage storage);
/// The elements of a tensor: their number and type are checked, they themselves when they are asked for. Sparse ones
/// are made dense. Throws OnnxError, its message beginning with `where`.
Constant read_constant(std::string_view message, Storage storage, const std::string& where, const Elsewhere& elsewhere);
/// A TensorProto that is whole.
Value read_tensor(std::string_view message, const std::string& where, const std::filesystem::path& folder);

}  // namespace ferrite::onnx::detail
