/// Writes the inputs, variables and outputs of a program, and merges programs at several extents.
#include "ferrite/exchange/onnx_export/export_model.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "ferrite/exchange/emit/program_merge.h"
#include "ferrite/exchange/emit/same_bits.h"
#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/exchange/onnx_export/export_builder.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

class Model {
 public:
  Model(const Graph& g, const onnx::ExportOptions& o) : g_(g), options_(o), values_(g.values.size()) {}

  ExportProgram program() {
    claim_outputs();
    declare_inputs();
    declare_variables();
    program_.main.results = lower_graph(body_, g_, values_);
    for (const Value& r : program_.main.results)
      if (!r.exists())
        throw ExportError("to_onnx: a result " + r.spec.str() +
                          " has no lowering: it is what a sequence keeps for its gradient; do not return it");
    program_.main.instructions = std::move(body_.instructions());
    program_.values = body_.values();
    return std::move(program_);
  }

 private:
  static std::string name_at(const std::vector<std::string>& names, std::size_t i, const char* otherwise) {
    return i < names.size() ? names[i] : otherwise + std::to_string(i);
  }
  std::string variable_name(std::uint32_t variable) {
    std::string& name = variables_[variable];
    if (name.empty()) {
      const std::string own = g_.variables[variable].name();
      name = names_.claim(own.empty() ? "variable" : own);
    }
    return name;
  }
  bool is_written(std::uint32_t variable) const {
    return std::any_of(g_.writes.begin(), g_.writes.end(), [&](const auto& w) { return w.variable == variable; });
  }
  /// Returns a name that a caller chose. Throws where it is taken.
  std::string chosen(const std::string& name) {
    if (name.empty() || names_.claim(name) != name)
      throw ValueError("to_onnx: names of inputs and outputs must differ and not be empty: '" + name + "'");
    return name;
  }

  void claim_outputs() {
    check_count("inputs", options_.inputs.size(), g_.inputs.size());
    check_count("outputs", options_.outputs.size(), g_.outputs.size());
    for (std::size_t i = 0; i < g_.outputs.size(); ++i)
      program_.result_names.push_back(chosen(name_at(options_.outputs, i, "output")));
  }
  static void check_count(const char* what, std::size_t names, std::size_t count) {
    if (names > count)
      throw ValueError("to_onnx: there are more names of " + std::string(what) + " than " + what + ": " +
                       std::to_string(names) + " and " + std::to_string(count));
  }

  void declare(ValueId v, const std::string& name) {
    values_[v] = body_.fresh(g_.values[v]);
    program_.main.arguments.push_back(values_[v]);
    program_.main.names.push_back(name);
  }
  void declare_inputs() {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i)
      declare(g_.inputs[i], chosen(name_at(options_.inputs, i, "input")));
  }
  void declare_variables() {
    for (const Graph::VariableValue& r : g_.reads) {
      const std::string name = variable_name(r.variable);
      if (is_written(r.variable) ? options_.states_as_inputs : options_.variables_as_inputs)
        declare(r.value, name);
      else
        values_[r.value] = body_.variable(name, g_.variables[r.variable].peek());
    }
    for (const Graph::VariableValue& w : g_.writes)
      program_.result_names.push_back(names_.claim(variable_name(w.variable) + ".next"));
  }

  const Graph& g_;
  const onnx::ExportOptions& options_;
  Values values_;
  UniqueNames names_;
  OnnxBuilder body_;
  ExportProgram program_;
  std::map<std::uint32_t, std::string> variables_;
};

// ---- windows with open extents -----------------------------------------------------------------------------------

bool is_windowed(const InstructionRow& row) {
  return row->op == "Conv" || row->op == "MaxPool" || row->op == "AveragePool";
}
bool has_open_windows(const InstructionRow& row) {
  for (std::size_t t = 1; t < row.size(); ++t)
    for (int axis = 2; axis < row->results[0].shape().rank(); ++axis)
      if (row[t].operands[0].shape()[axis] != row->operands[0].shape()[axis]) return true;
  return false;
}
Instruction with_pads(Instruction i, const Integers& pads) {
  for (Attribute& a : i.attributes)
    if (a.name == "pads") a.value = pads;
  return i;
}
/// The paddings at the end that give the windows of an axis in all programs.
struct Paddings {
  std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();
  bool all_rests = false;  ///< whether every possible remainder of a division by the stride was seen
};
Paddings paddings(const InstructionRow& row, std::size_t i, std::int64_t before) {
  Paddings p;
  std::vector<std::int64_t> elements;
  std::set<std::int64_t> rests;
  const auto number = [&](std::string_view name) { return row->get<Integers>(name)[i]; };
  const std::int64_t stride = number("strides"), dilation = row->op == "AveragePool" ? 1 : number("dilations");
  const int axis = static_cast<int>(i) + 2;
  for (std::size_t t = 0; t < row.size(); ++t) {
    elements.push_back(row[t].operands[0].shape()[axis]);
    rests.insert(elements.back() % stride);
    const std::int64_t reach =
        (row[t].results[0].shape()[axis] - 1) * stride + (number("kernel_shape") - 1) * dilation + 1;
    p.least = std::max(p.least, reach - before - elements.back());
    p.most = std::min(p.most, reach - before - elements.back() + stride - 1);
  }
  const std::optional<SymbolicNumber> n = row.extents().explain(elements);
  p.all_rests = n && static_cast<std::int64_t>(rests.size()) >= row.extents().rests(*n, stride);
  return p;
}

/// Returns one padding for all extents. Several may give the windows that were seen. All rules that choose one of them
/// (as much as in front, none, either with the last window beyond it, and a last window that begins inside) have to
/// agree, unless every remainder was seen.
Integers common_pads(const InstructionRow& row) {
  Integers pads = row->get<Integers>("pads");
  const std::size_t axes = pads.size() / 2;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t before = pads[i], stride = row->get<Integers>("strides")[i];
    for (std::size_t t = 0; t < row.size(); ++t)
      if (row[t].get<Integers>("pads")[i] != before) row.refuse("its padding depends on the extent");
    const Paddings p = paddings(row, i, before);
    const std::int64_t dilation = row->op == "AveragePool" ? 1 : row->get<Integers>("dilations")[i];
    const std::int64_t inside = (row->get<Integers>("kernel_shape")[i] - 1) * dilation;
    std::set<std::int64_t> rules;
    for (const std::int64_t rule : {before, std::int64_t{0}, before + stride - 1, stride - 1, inside})
      if (rule >= p.least && rule <= p.most) rules.insert(rule);
    const bool known = p.least == p.most || (p.least <= p.most && (p.all_rests || rules.size() == 1));
    if (!known)
      row.refuse("its padding at the end depends on the extent, or on rests of a division by " +
                 std::to_string(stride) + " that no trial has; say with `multiple` what divides the extent");
    pads[axes + i] = p.all_rests || rules.empty() ? p.least : *rules.begin();
    if (rules.contains(before)) pads[axes + i] = before;
    const std::int64_t window = row->get<Integers>("kernel_shape")[i];
    if (row->op != "Conv" && pads[axes + i] >= window) row.refuse("its padding is longer than its windows");
  }
  return pads;
}

// ---- merging -----------------------------------------------------------------------------------------------------

/// Merges nodes: all stay as they are, except for constants whose numbers differ.
class OnnxMerge final : public ProgramMerge {
 public:
  OnnxMerge(const std::vector<ExportProgram>& programs, const Extents& extents, const std::vector<DynamicAxis>& axes,
            OnnxBuilder& b, OnnxBuilder& front)
      : ProgramMerge(programs, extents, axes, b, front), front_(front), readers_(reads_of(programs[0])) {}

 private:
  struct Reader {
    const Instruction* node = nullptr;  ///< null: the end of a block
    std::size_t operand = 0;
  };
  using Readers = std::vector<std::vector<Reader>>;  ///< readers of each value

  static Readers reads_of(const ExportProgram& p) {
    Readers all(static_cast<std::size_t>(p.values));
    add_reads(p.main, all);
    return all;
  }
  static void add_reads(const Block& block, Readers& all) {
    const auto add = [&](const Values& values, const Instruction* node) {
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i].exists()) all[static_cast<std::size_t>(values[i].id)].push_back({node, i});
    };
    for (const Instruction& i : block.instructions) {
      add(i.operands, &i);
      for (const Block& inner : i.blocks) add_reads(inner, all);
    }
    add(block.results, nullptr);
  }
  const std::vector<Reader>& readers(const Value& v) const { return readers_[static_cast<std::size_t>(v.id)]; }
  static bool is_shape_of_reshape(const Reader& r) { return r.node && r.node->op == "Reshape" && r.operand == 1; }
  static bool is_bound_of_slice(const Reader& r) {
    return r.node && r.node->op == "Slice" && (r.operand == 1 || r.operand == 2);
  }

  /// Returns the type of a result, with extents open only where they differ: runtimes infer them.
  Spec spec_of(const InstructionRow& row, std::size_t result) override {
    Spec spec = row->results[result].spec;
    for (const Shape& s : row.shapes(result)) {
      if (s.rank() != spec.shape.rank()) row.refuse("its result has another rank at another extent");
      for (int k = 0; k < s.rank(); ++k)
        if (s[k] != row->results[result].shape()[k]) spec.shape[k] = kOpenExtent;
    }
    return spec;
  }

  Values write(const InstructionRow& row) override {
    if (row->op == "Constant") return {constant(row)};
    if (is_windowed(row) && has_open_windows(row)) {
      const Integers pads = common_pads(row);
      std::vector<Instruction> same;
      for (std::size_t t = 0; t < row.size(); ++t) same.push_back(with_pads(row[t], pads));
      std::vector<const Instruction*> all;
      for (const Instruction& i : same) all.push_back(&i);
      return plain({builder().format(), extents(), all});
    }
    return plain(row);
  }
  Values plain(const InstructionRow& row) {
    row.check_attributes();
    std::vector<Spec> specs;
    for (std::size_t k = 0; k < row->results.size(); ++k) specs.push_back(spec_of(row, k));
    return builder().emit(row->op, values_of(row->operands), specs, row->attributes);
  }

  Value constant(const InstructionRow& row) {
    const std::vector<Tensor> values = row.tensors();
    if (std::ranges::all_of(values, [&](const Tensor& t) { return same_bits(t, values[0]); }))
      return builder().constant(values[0]);
    for (const auto form : {&OnnxMerge::reshaping, &OnnxMerge::integers, &OnnxMerge::real, &OnnxMerge::repeated})
      if (const Value v = (this->*form)(row, values); v.exists()) return v;
    row.refuse("its elements depend on the extent");
  }

  /// Returns the values that each element of an integer tensor has in all programs; empty for other tensors.
  static std::vector<Integers> by_place(const std::vector<Tensor>& values) {
    std::vector<Integers> places;
    for (const Tensor& t : values) {
      if (t.dtype() != Dtype::i64 || t.shape() != values[0].shape() || t.rank() > 1) return {};
      const Integers elements = t.to_vector<std::int64_t>();
      places.resize(elements.size());
      for (std::size_t i = 0; i < elements.size(); ++i) places[i].push_back(elements[i]);
    }
    return places;
  }

  /// Writes a constant that is only the shape of Reshapes, with -1 for the one extent that depends on the others.
  Value reshaping(const InstructionRow& row, const std::vector<Tensor>& values) {
    Integers shape;
    for (const Integers& v : by_place(values))
      shape.push_back(std::ranges::all_of(v, [&](std::int64_t n) { return n == v[0]; }) ? v[0] : -1);
    const std::vector<Reader>& all = readers(row->results[0]);
    const bool fits =
        std::ranges::count(shape, -1) == 1 && !all.empty() && std::ranges::all_of(all, is_shape_of_reshape);
    return fits ? builder().integers(shape) : Value();
  }

  /// Writes integers that differ. In the bounds of a slice they must not be below 0, where they would count from the
  /// end.
  Value integers(const InstructionRow& row, const std::vector<Tensor>& values) {
    ExtentNumbers elements;
    const bool bounds = std::ranges::any_of(readers(row->results[0]), is_bound_of_slice);
    for (const Integers& v : by_place(values)) {
      const std::optional<SymbolicNumber> n = bounds ? extents().explain_bounds(v) : extents().explain(v);
      if (!n) return {};
      elements.push_back(*n);
    }
    if (elements.empty()) return {};
    const Value x = values[0].rank() == 0 ? arithmetic().number(elements[0]) : arithmetic().list(elements);
    const auto negative = [&](const SymbolicNumber& n) { return extents().may_be_negative(n); };
    if (!bounds || std::ranges::none_of(elements, negative)) return x;
    return front_.elementwise("Max", {x, front_.integers({0})});
  }

  /// Writes a float of rank 0 that differs.
  Value real(const InstructionRow&, const std::vector<Tensor>& values) {
    std::vector<double> numbers;
    for (const Tensor& t : values) {
      if (!is_float(t.dtype()) || t.rank() != 0) return {};
      numbers.push_back(
          visit_dtype(t.dtype(), [&](auto zero) { return static_cast<double>(t.to_vector<decltype(zero)>()[0]); }));
    }
    const std::optional<ExtentReal> r = extents().explain(numbers, values[0].dtype());
    return r ? arithmetic().real(*r, values[0].dtype()) : Value();
  }

  /// Writes a constant whose elements are all equal, of any dtype and rank: for example states that start as zeros.
  Value repeated(const InstructionRow& row, const std::vector<Tensor>& values) {
    const Tensor element = only_element(values);
    if (!element.defined()) return {};
    std::vector<Shape> shapes;
    for (const Tensor& t : values) shapes.push_back(t.shape());
    const std::optional<ExtentNumbers> shape = extents().explain(shapes);
    if (!shape) return {};
    return front_.node("Expand", {front_.constant(element), arithmetic().list(*shape)}, spec_of(row, 0));
  }

  OnnxBuilder& front_;
  Readers readers_;
};

}  // namespace

ExportProgram onnx_program(const Graph& graph, const onnx::ExportOptions& options) {
  if (options.name.empty()) throw ValueError("to_onnx: the graph's name must not be empty");
  graph.validate();
  return Model(graph, options).program();
}

ExportProgram merged(const std::vector<ExportProgram>& programs, const Extents& extents,
                     const onnx::ExportOptions& options) {
  OnnxBuilder b, front(&b);
  return OnnxMerge(programs, extents, options.dynamic, b, front).merged();
}

}  // namespace ferrite::exchange::detail
