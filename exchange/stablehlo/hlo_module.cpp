/// Lowers traced programs to StableHLO functions, and merges those of one function at several extents.
#include <algorithm>
#include <map>

#include "ferrite/exchange/emit/same_bits.h"
#include "ferrite/exchange/stablehlo/hlo_lowering.h"
#include "ferrite/exchange/stablehlo/hlo_module.h"
#include "ferrite/exchange/stablehlo/open_forms.h"

namespace ferrite::exchange::detail {
namespace {

class Module {
 public:
  Module(const Graph& g, const StablehloOptions& o, bool comparable)
      : g_(g),
        options_(o),
        values_(g.values.size()),
        body_({.unrolled = o.scan == ScanExport::unrolled, .comparable = comparable}) {}

  ExportProgram program() {
    declare_arguments();
    program_.main.results = lower_graph(body_, g_, values_);
    for (const Value& r : program_.main.results)
      if (!r.exists())
        throw ExportError("to_stablehlo: a result " + r.spec.str() +
                          " has no lowering: it is what a sequence keeps for its gradient; do not return it");
    for (std::size_t i = 0; i < g_.writes.size(); ++i)
      note("result " + std::to_string(g_.outputs.size() + i) + ": variable " + variable_name(g_.writes[i]));
    program_.main.instructions = std::move(body_.instructions());
    program_.values = body_.values();
    return std::move(program_);
  }

 private:
  std::string variable_name(const Graph::VariableValue& c) const {
    return "'" + std::string(g_.variables[c.variable].name()) + "'";
  }
  void note(const std::string& what) { program_.notes.push_back(what); }

  /// Returns the name of an argument in the text.
  std::string argument(ValueId v) {
    values_[v] = body_.fresh(g_.values[v]);
    program_.main.arguments.push_back(values_[v]);
    return "%arg" + std::to_string(program_.main.arguments.size() - 1);
  }

  bool is_written(std::uint32_t variable) const {
    return std::any_of(g_.writes.begin(), g_.writes.end(), [&](const auto& w) { return w.variable == variable; });
  }

  void declare_arguments() {
    for (const ValueId v : g_.inputs) argument(v);
    for (const Graph::VariableValue& r : g_.reads) {
      if (options_.inline_variables && !is_written(r.variable)) {
        values_[r.value] = body_.constant(g_.variables[r.variable].peek());
      } else {
        note(argument(r.value) + ": variable " + variable_name(r));
      }
    }
    if (!options_.constants_as_arguments) return;
    for (std::size_t i = 0; i < g_.constants.size(); ++i)
      if (g_.constants[i].tensor.numel() > 1) note(argument(g_.constants[i].value) + ": constant " + std::to_string(i));
  }

  const Graph& g_;
  const StablehloOptions& options_;
  std::vector<Value> values_;
  HloBuilder body_;
  ExportProgram program_;
};

}  // namespace

ExportProgram hlo_program(const Graph& graph, const StablehloOptions& options, bool comparable) {
  graph.validate();
  return Module(graph, options, comparable).program();
}

// ---- merging: instructions that read numbers that differ take their dynamic forms ----------------------------------

namespace {

/// Writes the formula of a constant's only element in front of the program.
Value number(const InstructionRow& row, HloBuilder& b, ExtentArithmetic& arithmetic) {
  const Dtype dtype = row->results[0].dtype();
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  for (std::size_t t = 0; t < row.size(); ++t)
    visit_dtype(dtype, [&](auto zero) {
      const auto value = row[t].get<Tensor>("value").to_vector<decltype(zero)>()[0];
      integers.push_back(is_float(dtype) ? 0 : static_cast<std::int64_t>(value));
      reals.push_back(static_cast<double>(value));
    });
  if (is_integer(dtype))
    if (const auto n = row.extents().explain(integers)) return b.convert(arithmetic.number(*n), dtype);
  if (is_float(dtype))
    if (const auto r = row.extents().explain(reals, dtype)) return arithmetic.real(*r, dtype);
  row.refuse("no arithmetic on the extents gives the constant " + Scalar(reals[0]).str());
}

/// A pad in two parts: the slice of the operand that negative amounts leave, then amounts not below 0.
struct Padding {
  explicit Padding(const InstructionRow& row) : low(row.lists("low")), high(row.lists("high")) {
    const Shape first_low = low[0], first_high = high[0];
    for (std::size_t t = 0; t < row.size(); ++t) {
      const Shape& x = row[t].operands[0].shape();
      start.push_back(x), limit.push_back(x), between.push_back(x);
      for (int k = 0; k < x.rank(); ++k) {
        if ((low[t][k] < 0) != (first_low[k] < 0) || (high[t][k] < 0) != (first_high[k] < 0))
          row.refuse("at another extent it crops where it pads here");
        start[t][k] = std::max<std::int64_t>(0, -low[t][k]);
        limit[t][k] = x[k] + std::min<std::int64_t>(0, high[t][k]);
        between[t][k] = limit[t][k] - start[t][k];
        crops |= between[t][k] != x[k];
        low[t][k] = std::max<std::int64_t>(0, low[t][k]);
        high[t][k] = std::max<std::int64_t>(0, high[t][k]);
      }
    }
  }
  std::vector<Shape> low, high, start{}, limit{}, between{};  ///< amounts and bounds of each program
  bool crops = false;
};

class HloMerge final : public ProgramMerge {
 public:
  HloMerge(const std::vector<ExportProgram>& programs, const Extents& extents, const StablehloOptions& options,
           HloBuilder& b, HloBuilder& front)
      : ProgramMerge(programs, extents, options.dynamic, b, front),
        b_(b),
        forms_(b, arithmetic(), options.dynamic_forms),
        shapes_(static_cast<std::size_t>(programs[0].values)) {}

 private:
  ExtentNumbers& shape_at(const Value& old) { return shapes_[static_cast<std::size_t>(old.id)]; }
  OpenValue open(const Value& old) { return {at(old), shape_at(old)}; }
  Values values_from(const Instruction& i, std::ptrdiff_t first) {
    return values_of({i.operands.begin() + first, i.operands.end()});
  }

  Spec spec_of(const InstructionRow& row, std::size_t result) override {
    const ExtentNumbers shape = row.shape(result);
    shape_at(row->results[result]) = shape;
    return {open_shape(shape), row->results[result].dtype()};
  }
  Values write(const InstructionRow& row) override {
    const ExtentNumbers shape = row.shape();
    shape_at(row->results[0]) = shape;
    return {made(row, shape)};
  }
  void within(Block& block, const std::function<Values()>& write) override { forms_.within(block, write); }

  Value made(const InstructionRow& row, const ExtentNumbers& shape) {
    const Instruction& i = row.first();
    const auto operand = [&](std::size_t k) { return open(i.operands[k]); };
    if (i.op == "constant") return constant(row, shape);
    if (i.op == "slice" && (row.differs("start") || row.differs("limit"))) return slice(row, shape);
    if (i.op == "dynamic_slice" && row.differs("sizes"))
      return forms_.dynamic_slice(operand(0), values_from(i, 1), row.list("sizes"));
    if (i.op == "gather" && row.differs("slice_sizes")) return gather(row, shape);
    if (i.op == "dot_general" && (!are_constant(shape) || operand(0).is_open())) return dot(row, shape);
    if (i.op == "pad" && (!are_constant(shape) || operand(0).is_open())) return pad(row, shape);
    if (!are_constant(shape)) {
      if (i.op == "dynamic_update_slice") return forms_.dynamic_update_slice(operand(0), operand(1), values_from(i, 2));
      if (i.op == "iota") return forms_.iota(std::stoi(i.get<std::string>("dim")), i.results[0].dtype(), shape);
      if (i.op == "broadcast_in_dim") return forms_.broadcast(operand(0), i.get<Shape>("dims"), shape);
      if (i.op == "reshape") return forms_.reshape(operand(0), shape);
    }
    row.check_attributes();
    return b_.emit_one(i.op, values_of(i.operands), {open_shape(shape), i.results[0].dtype()}, i.attributes, i.types);
  }

  Value constant(const InstructionRow& row, const ExtentNumbers& shape) {
    const auto& first = row->get<Tensor>("value");
    bool same = true;
    for (std::size_t t = 0; t < row.size(); ++t) same &= same_bits(row[t].get<Tensor>("value"), first);
    if (first.rank() > 0) {
      if (same) return b_.constant(first);
      std::vector<Tensor> all;
      for (std::size_t t = 0; t < row.size(); ++t) all.push_back(row[t].get<Tensor>("value"));
      const Tensor element = only_element(all);
      if (element.defined()) return forms_.filled(b_.filled(element, element.spec()), shape);
      if (first.dtype() != Dtype::i64 || first.rank() != 1 || first.numel() > Shape::kMaxRank || !are_constant(shape))
        row.refuse("its elements depend on the extent");
      std::vector<Shape> lists;
      for (const Tensor& t : all) lists.emplace_back(t.to_vector<std::int64_t>());
      return arithmetic().list(row.explained(lists, "its elements"));
    }
    if (same && are_constant(shape)) return b_.filled(first, {open_shape(shape), first.dtype()});
    const Value one = same ? b_.filled(first, first.spec()) : number(row, b_, arithmetic());
    return shape.empty() ? one : forms_.filled(one, shape);
  }

  Value slice(const InstructionRow& row, const ExtentNumbers& shape) {
    const std::vector<Shape> strides = row.lists("stride"), sizes = row.shapes(0);
    Shape stride = strides[0];
    for (std::size_t t = 0; t < row.size(); ++t)  // it is irrelevant for a single element
      for (int k = 0; k < sizes[t].rank(); ++k)
        if (sizes[t][k] > 1) stride[k] = strides[t][k];
    for (std::size_t t = 0; t < row.size(); ++t)
      for (int k = 0; k < sizes[t].rank(); ++k)
        if (strides[t][k] != stride[k] && sizes[t][k] > 1) row.refuse("its stride depends on the extent");
    return forms_.slice(open(row->operands[0]), row.list("start"), row.list("limit"), stride, shape);
  }

  /// Writes a pad as a slice that crops, followed by a pad.
  Value pad(const InstructionRow& row, const ExtentNumbers& shape) {
    const Padding p(row);
    OpenValue x = open(row->operands[0]);
    if (p.crops) {
      const ExtentNumbers rest = row.explained(p.between, "what it crops to");
      const Shape stride = Shape::filled(p.limit[0].rank(), 1);
      const ExtentNumbers start = row.explained(p.start, "its start"), limit = row.explained(p.limit, "its limit");
      x = {forms_.slice(x, start, limit, stride, rest), rest};
    }
    return forms_.pad(x, open(row->operands[1]).value, row.explained(p.low, "its low"),
                      row.explained(p.high, "its high"), shape);
  }

  /// Writes a product with the leading axes of operands and result merged into one: matrices, or stacks of matrices.
  Value dot(const InstructionRow& row, const ExtentNumbers& shape) {
    const bool stacks = row->operands[1].shape().rank() > 2;
    std::vector<Shape> a, b, result;
    for (std::size_t t = 0; t < row.size(); ++t) {
      const auto flat = [&](const Shape& s) {
        Shape last = stacks ? Shape{1, s[-2], s[-1]} : Shape{s[-2], s[-1]};
        for (int k = 0; k + 2 < s.rank(); ++k) last[0] *= s[k];
        return last;
      };
      a.push_back(flat(row[t].operands[0].shape()));
      b.push_back(flat(row[t].operands[1].shape()));
      result.push_back(flat(row[t].results[0].shape()));
    }
    const auto explained = [&](const std::vector<Shape>& s) { return row.explained(s, "the number of its rows"); };
    return forms_.dot(row.first(), open(row->operands[0]), open(row->operands[1]),
                      {explained(a), explained(b), explained(result)}, shape);
  }

  Value gather(const InstructionRow& row, const ExtentNumbers& shape) {
    const auto axis = static_cast<int>(row->get<Shape>("axis")[0]);
    return forms_.gather_slices(open(row->operands[0]), row.first(), open(row->operands[1]), axis, shape);
  }

  HloBuilder& b_;
  OpenForms forms_;
  std::vector<ExtentNumbers> shapes_;  ///< formulas of the extents of each value, by id in the programs
};

}  // namespace

ExportProgram merged(const std::vector<ExportProgram>& programs, const Extents& extents,
                     const StablehloOptions& options) {
  HloBuilder b(HloStyle{}), front(&b);
  ExportProgram all = HloMerge(programs, extents, options, b, front).merged();
  const auto note = [&](const std::string& what, const std::vector<std::vector<std::string>>& axes) {
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (std::size_t axis = 0; axis < axes[i].size(); ++axis)
        if (!axes[i][axis].empty())
          all.notes.push_back(what + std::to_string(i) + ": axis " + std::to_string(axis) + " is " + axes[i][axis]);
  };
  note("%arg", all.argument_axes);
  note("result ", all.result_axes);
  return all;
}

}  // namespace ferrite::exchange::detail
