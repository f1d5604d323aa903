/// Walks programs side by side: what is the same stays, numbers that differ become arithmetic on the extents, and the
/// instructions that read them take their dynamic forms.
#include "ferrite/exchange/stablehlo/hlo_merge.h"

#include <algorithm>

#include "ferrite/exchange/emit/same_bits.h"
#include "ferrite/exchange/stablehlo/open_forms.h"
#include "ferrite/exchange/stablehlo/row.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

using Blocks = std::vector<const HloBlock*>;  ///< the same one of all programs

/// What the elements of constants of rank 0 are: written in front of the program.
HloValue number(const HloRow& row, HloBuilder& b, ExtentArithmetic& arithmetic) {
  const Dtype dtype = row->results[0].dtype();
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  for (std::size_t t = 0; t < row.size(); ++t)
    visit_dtype(dtype, [&](auto zero) {
      const auto value = row[t].get<Tensor>("").to_vector<decltype(zero)>()[0];
      integers.push_back(is_float(dtype) ? 0 : static_cast<std::int64_t>(value));
      reals.push_back(static_cast<double>(value));
    });
  if (is_integer(dtype))
    if (const auto n = row.extents().explain(integers)) return b.convert(arithmetic.number(*n), dtype);
  if (is_float(dtype))
    if (const auto r = row.extents().explain(reals, dtype)) return arithmetic.real(*r, dtype);
  row.refuse("no arithmetic on the extents gives the constant " + Scalar(reals[0]).str());
}

/// A pad in two parts: what negative amounts leave of the operand, then amounts not below 0.
struct Padding {
  explicit Padding(const HloRow& row) : low(row.lists("low")), high(row.lists("high")) {
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
  std::vector<Shape> low, high, start{}, limit{}, between{};  ///< by program
  bool crops = false;
};

class Merger {
 public:
  Merger(const std::vector<HloProgram>& programs, const Extents& extents, const StablehloOptions& options)
      : programs_(programs),
        extents_(extents),
        b_(HloStyle{}),
        arithmetic_(b_, extents, options.dynamic, out_.main.arguments),
        forms_(b_, arithmetic_, options.dynamic_forms),
        values_(static_cast<std::size_t>(programs[0].values)) {}

  HloProgram merged() {
    Blocks mains;
    for (const HloProgram& p : programs_) mains.push_back(&p.main);
    out_.main.arguments = arguments(mains);
    walk(mains);
    out_.main.results = values_of(mains[0]->results);
    std::vector<HloInstruction>& all = arithmetic_.instructions();
    std::ranges::move(b_.instructions(), std::back_inserter(all));
    out_.main.instructions = std::move(all);
    out_.values = b_.values();
    out_.notes = programs_[0].notes;
    note("%arg", mains[0]->arguments);
    note("result ", mains[0]->results);
    return std::move(out_);
  }

 private:
  /// "// %arg0: axis 0 is batch".
  void note(const std::string& what, const HloValues& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ExtentNumbers& shape = at(values[i]).shape;
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (!shape[axis].is_constant())
          out_.notes.push_back(what + std::to_string(i) + ": axis " + std::to_string(axis) + " is " +
                               extents_.text(shape[axis]));
    }
  }

  OpenValue& at(const HloValue& old) { return values_[static_cast<std::size_t>(old.id)]; }
  HloValues values_of(const HloValues& old) {
    HloValues all;
    for (const HloValue& v : old) all.push_back(at(v).value);
    return all;
  }
  HloValues values_from(const HloInstruction& i, std::ptrdiff_t first) {
    return values_of({i.operands.begin() + first, i.operands.end()});
  }

  /// New values for what blocks or instructions give.
  HloValues given(const HloRow& row) {
    HloValues made;
    for (std::size_t k = 0; k < row->results.size(); ++k) {
      const ExtentNumbers shape = row.shape(k);
      made.push_back(b_.fresh({open_shape(shape), row->results[k].dtype()}));
      at(row->results[k]) = {made.back(), shape};
    }
    return made;
  }
  HloValues arguments(const Blocks& blocks) {
    std::vector<HloInstruction> heads;
    std::vector<const HloInstruction*> row;
    for (const HloBlock* b : blocks) heads.push_back({.op = "func", .results = b->arguments, .blocks = {}});
    for (const HloInstruction& head : heads) row.push_back(&head);
    return given({extents_, row});
  }

  void walk(const Blocks& blocks) {
    const std::vector<HloInstruction>& first = blocks[0]->instructions;
    for (std::size_t i = 0; i < first.size(); ++i) {
      std::vector<const HloInstruction*> row;
      for (const HloBlock* b : blocks) {
        if (b->instructions.size() <= i) HloRow(extents_, {&first[i]}).refuse("at another extent it is not there");
        row.push_back(&b->instructions[i]);
      }
      write({extents_, row});
    }
    for (const HloBlock* b : blocks)
      if (b->instructions.size() > first.size())
        HloRow(extents_, {&b->instructions[first.size()]}).refuse("at another extent it is not there");
  }

  void write(const HloRow& row) {
    row.check();
    b_.set_origin(row->origin);
    if (row->op == "while") return write_loop(row);
    const ExtentNumbers shape = row.shape();
    at(row->results[0]) = {made(row, shape), shape};
  }

  HloValue made(const HloRow& row, const ExtentNumbers& shape) {
    const HloInstruction& i = row.first();
    const auto operand = [&](std::size_t k) -> const OpenValue& { return at(i.operands[k]); };
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
    return b_.emit(i.op, values_of(i.operands), {open_shape(shape), i.results[0].dtype()}, i.attributes, i.types);
  }

  HloValue constant(const HloRow& row, const ExtentNumbers& shape) {
    const auto& first = row->get<Tensor>("");
    bool same = true;
    for (std::size_t t = 0; t < row.size(); ++t) same &= same_bits(row[t].get<Tensor>(""), first);
    if (first.rank() > 0) {
      if (same) return b_.constant(first);
      std::vector<Tensor> all;
      for (std::size_t t = 0; t < row.size(); ++t) all.push_back(row[t].get<Tensor>(""));
      const Tensor element = only_element(all);
      if (element.defined()) return forms_.filled(b_.filled(element, element.spec()), shape);
      if (first.dtype() != Dtype::i64 || first.rank() != 1 || first.numel() > Shape::kMaxRank || !are_constant(shape))
        row.refuse("its elements depend on the extent");
      std::vector<Shape> lists;
      for (const Tensor& t : all) lists.emplace_back(t.to_vector<std::int64_t>());
      return arithmetic_.list(row.explained(lists, "its elements"));
    }
    if (same && are_constant(shape)) return b_.filled(first, {open_shape(shape), first.dtype()});
    const HloValue one = same ? b_.filled(first, first.spec()) : number(row, b_, arithmetic_);
    return shape.empty() ? one : forms_.filled(one, shape);
  }

  HloValue slice(const HloRow& row, const ExtentNumbers& shape) {
    if (row.differs("stride")) row.refuse("its stride depends on the extent");
    return forms_.slice(at(row->operands[0]), row.list("start"), row.list("limit"), row->get<Shape>("stride"), shape);
  }

  /// What is cropped is sliced first.
  HloValue pad(const HloRow& row, const ExtentNumbers& shape) {
    const Padding p(row);
    OpenValue x = at(row->operands[0]);
    if (p.crops) {
      const ExtentNumbers rest = row.explained(p.between, "what it crops to");
      const Shape stride = Shape::filled(p.limit[0].rank(), 1);
      const ExtentNumbers start = row.explained(p.start, "its start"), limit = row.explained(p.limit, "its limit");
      x = {forms_.slice(x, start, limit, stride, rest), rest};
    }
    return forms_.pad(x, at(row->operands[1]).value, row.explained(p.low, "its low"), row.explained(p.high, "its high"),
                      shape);
  }

  /// Operands and result with their leading axes as one: matrices, or stacks of matrices.
  HloValue dot(const HloRow& row, const ExtentNumbers& shape) {
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
    return forms_.dot(row.first(), at(row->operands[0]), at(row->operands[1]),
                      {explained(a), explained(b), explained(result)}, shape);
  }

  HloValue gather(const HloRow& row, const ExtentNumbers& shape) {
    const auto axis = static_cast<int>(row->get<Shape>("axis")[0]);
    return forms_.gather_slices(at(row->operands[0]), row.first(), at(row->operands[1]), axis, shape);
  }

  void write_loop(const HloRow& row) {
    HloInstruction loop{.op = row->op, .operands = values_of(row->operands), .blocks = {}, .origin = row->origin};
    for (std::size_t k = 0; k < row->blocks.size(); ++k) {
      Blocks blocks;
      for (std::size_t t = 0; t < row.size(); ++t) blocks.push_back(&row[t].blocks[k]);
      loop.blocks.emplace_back();
      loop.blocks.back().arguments = arguments(blocks);
      forms_.within(loop.blocks.back(), [&] {
        walk(blocks);
        return values_of(blocks[0]->results);
      });
    }
    loop.results = given(row);
    b_.append(std::move(loop));
  }

  const std::vector<HloProgram>& programs_;
  const Extents& extents_;
  HloProgram out_{};
  HloBuilder b_;
  ExtentArithmetic arithmetic_;
  OpenForms forms_;
  std::vector<OpenValue> values_;  ///< by id in the programs
};

}  // namespace

HloProgram merged(const std::vector<HloProgram>& programs, const Extents& extents, const StablehloOptions& options) {
  const NewFrame frame;
  return Merger(programs, extents, options).merged();
}

}  // namespace ferrite::exchange::detail
