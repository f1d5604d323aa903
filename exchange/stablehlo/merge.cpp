/// Walks programs side by side: what is the same stays, numbers that differ become arithmetic on the extents, and the
/// instructions that read them take their dynamic forms.
#include "ferrite/exchange/stablehlo/merge.h"

#include <algorithm>
#include <cstring>

#include "ferrite/exchange/stablehlo/open_forms.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::exchange::detail {
namespace {

/// The same instruction of all programs.
using Row = std::vector<const HloInstruction*>;
using Blocks = std::vector<const HloBlock*>;
using Numbers = std::vector<std::int64_t>;  ///< of all programs

[[noreturn]] void refuse(const HloInstruction& i, const std::string& what) {
  const auto& [operation, layer] = i.origin;
  std::string where(operation.empty() ? "the program" : operation);
  if (!layer.empty()) where += " in '" + std::string(layer.path()) + "'";
  throw ExportError("to_stablehlo: an extent that should stay open is fixed: " + where + " (stablehlo." + i.op +
                    "): " + what + "; write the function for any extent, or export it without this dynamic axis");
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.spec() != b.spec()) return false;
  const Tensor p = ferrite::detail::dense(a), q = ferrite::detail::dense(b);
  return visit_dtype(p.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto n = static_cast<std::size_t>(p.numel()) * sizeof(T);
    return n == 0 || std::memcmp(p.data<T>(), q.data<T>(), n) == 0;
  });
}

bool same(const HloAttribute& a, const HloAttribute& b) {
  if (a.value.index() != b.value.index()) return false;
  const auto* elements = std::get_if<Tensor>(&a.value);
  if (elements) return same_bits(*elements, std::get<Tensor>(b.value));
  const auto* list = std::get_if<Shape>(&a.value);
  return list ? *list == std::get<Shape>(b.value) : std::get<std::string>(a.value) == std::get<std::string>(b.value);
}

class Merger {
 public:
  Merger(const std::vector<HloProgram>& programs, const Extents& extents, const StablehloOptions& options)
      : programs_(programs),
        extents_(extents),
        options_(options),
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

  /// What the extents of a value are.
  ExtentNumbers shape_of(const Row& row, std::size_t result) {
    std::vector<Shape> shapes;
    for (const HloInstruction* i : row) shapes.push_back(i->results[result].shape());
    return explained(*row[0], shapes, "its result");
  }
  ExtentNumbers explained(const HloInstruction& i, const std::vector<Shape>& lists, const std::string& what) const {
    ExtentNumbers all;
    for (int k = 0; k < lists[0].rank(); ++k) {
      Numbers numbers;
      for (const Shape& s : lists) {
        if (s.rank() != lists[0].rank()) refuse(i, what + " has another rank at another extent");
        numbers.push_back(s[k]);
      }
      const std::optional<ExtentNumber> n = extents_.explain(numbers);
      if (!n) refuse(i, "no arithmetic on the extents gives " + what + " " + lists[0].str());
      all.push_back(*n);
    }
    return all;
  }
  static std::vector<Shape> lists_of(const Row& row, std::string_view attribute) {
    std::vector<Shape> all;
    for (const HloInstruction* i : row) all.push_back(i->get<Shape>(attribute));
    return all;
  }
  ExtentNumbers list_of(const Row& row, std::string_view attribute) const {
    return explained(*row[0], lists_of(row, attribute), "its " + std::string(attribute));
  }
  static bool differ(const Row& row, std::string_view attribute) {
    const std::vector<Shape> all = lists_of(row, attribute);
    return std::ranges::any_of(all, [&](const Shape& s) { return s != all[0]; });
  }

  HloValues arguments(const Blocks& blocks) {
    HloValues made;
    const HloInstruction none{.op = "func"};
    for (std::size_t k = 0; k < blocks[0]->arguments.size(); ++k) {
      const HloValue& old = blocks[0]->arguments[k];
      std::vector<Shape> shapes;
      for (const HloBlock* b : blocks) shapes.push_back(b->arguments[k].shape());
      const ExtentNumbers shape = explained(none, shapes, "an argument");
      made.push_back(b_.fresh({open_shape(shape), old.dtype()}));
      at(old) = {made.back(), shape};
    }
    return made;
  }

  void walk(const Blocks& blocks) {
    const std::vector<HloInstruction>& first = blocks[0]->instructions;
    for (std::size_t i = 0; i < first.size(); ++i) {
      Row row;
      for (const HloBlock* b : blocks) {
        if (b->instructions.size() <= i) refuse(first[i], "at another extent it is not there");
        row.push_back(&b->instructions[i]);
      }
      check(row);
      write(row);
    }
    for (const HloBlock* b : blocks)
      if (b->instructions.size() > first.size())
        refuse(b->instructions[first.size()], "at another extent it is not there");
  }

  static void check(const Row& row) {
    const HloInstruction& a = *row[0];
    const auto ids = [](const HloValues& v) {
      Numbers all;
      for (const HloValue& x : v) all.push_back(x.id);
      return all;
    };
    for (const HloInstruction* b : row) {
      if (b->op != a.op) refuse(a, "at another extent it is stablehlo." + b->op);
      if (ids(b->operands) != ids(a.operands) || ids(b->results) != ids(a.results))
        refuse(a, "at another extent it reads other values");
    }
  }

  void write(const Row& row) {
    const HloInstruction& i = *row[0];
    b_.set_origin(i.origin);
    if (i.op == "while") return write_loop(row);
    const ExtentNumbers shape = shape_of(row, 0);
    at(i.results[0]) = {made(row, shape), shape};
  }

  HloValue made(const Row& row, const ExtentNumbers& shape) {
    const HloInstruction& i = *row[0];
    const bool open = std::ranges::any_of(shape, [](const ExtentNumber& n) { return !n.is_constant(); });
    const auto operand = [&](std::size_t k) -> const OpenValue& { return at(i.operands[k]); };
    if (i.op == "constant") return constant(row, shape, open);
    if (i.op == "slice" && (differ(row, "start") || differ(row, "limit"))) return slice(row, shape);
    if (i.op == "pad" && (operand(0).is_open() || open)) return pad(row, shape);
    if (i.op == "dynamic_slice" && differ(row, "sizes"))
      return forms_.dynamic_slice(operand(0), values_of({i.operands.begin() + 1, i.operands.end()}),
                                  list_of(row, "sizes"));
    if (i.op == "gather" && differ(row, "slice_sizes")) return gather(row, shape);
    if (i.op == "dot_general" && (open || operand(0).is_open())) return dot(row, shape);
    if (open && i.op == "dynamic_update_slice")
      return forms_.dynamic_update_slice(operand(0), operand(1), values_of({i.operands.begin() + 2, i.operands.end()}));
    if (open && i.op == "iota") return forms_.iota(std::stoi(i.get<std::string>("dim")), i.results[0].dtype(), shape);
    if (open && i.op == "broadcast_in_dim") return forms_.broadcast(operand(0), i.get<Shape>("dims"), shape);
    if (open && i.op == "reshape") return forms_.reshape(operand(0), shape);
    return copy(row, shape);
  }

  HloValue copy(const Row& row, const ExtentNumbers& shape) {
    const HloInstruction& i = *row[0];
    for (const HloInstruction* b : row)
      for (std::size_t k = 0; k < i.attributes.size(); ++k)
        if (!same(i.attributes[k], b->attributes[k]))
          refuse(i, "its " + std::string(i.attributes[k].name) + " depends on the extent");
    return b_.emit(i.op, values_of(i.operands), {open_shape(shape), i.results[0].dtype()}, i.attributes, i.types);
  }

  HloValue constant(const Row& row, const ExtentNumbers& shape, bool open) {
    const HloInstruction& i = *row[0];
    const Tensor& first = i.get<Tensor>("");
    const bool same =
        std::ranges::all_of(row, [&](const HloInstruction* b) { return same_bits(b->get<Tensor>(""), first); });
    if (first.rank() > 0) {
      if (!same) refuse(i, "its elements depend on the extent");
      return b_.constant(first);
    }
    if (same && !open) return b_.filled(first, {open_shape(shape), first.dtype()});
    const HloValue one = same ? b_.filled(first, first.spec()) : number(row);
    return shape.empty() ? one : forms_.filled(one, shape);
  }

  /// A value of rank 0 that differs from program to program.
  HloValue number(const Row& row) {
    const HloInstruction& i = *row[0];
    const Dtype dtype = i.results[0].dtype();
    Numbers integers;
    std::vector<double> reals;
    for (const HloInstruction* b : row)
      visit_dtype(dtype, [&](auto zero) {
        const auto value = b->get<Tensor>("").to_vector<decltype(zero)>()[0];
        integers.push_back(is_float(dtype) ? 0 : static_cast<std::int64_t>(value));
        reals.push_back(static_cast<double>(value));
      });
    if (is_integer(dtype))
      if (const auto n = extents_.explain(integers)) return b_.convert(arithmetic_.number(*n), dtype);
    if (is_float(dtype))
      if (const auto r = extents_.explain(reals)) return arithmetic_.real(*r, dtype);
    refuse(i, "no arithmetic on the extents gives the constant " + std::to_string(reals[0]));
  }

  HloValue slice(const Row& row, const ExtentNumbers& shape) {
    if (differ(row, "stride")) refuse(*row[0], "its stride depends on the extent");
    return forms_.slice(at(row[0]->operands[0]), list_of(row, "start"), list_of(row, "limit"),
                        row[0]->get<Shape>("stride"), shape);
  }

  /// What is cropped is sliced first.
  HloValue pad(const Row& row, const ExtentNumbers& shape) {
    const HloInstruction& i = *row[0];
    std::vector<Shape> low = lists_of(row, "low"), high = lists_of(row, "high"), start, limit, between;
    const Shape first_low = low[0], first_high = high[0];
    bool crops = false;
    for (std::size_t t = 0; t < row.size(); ++t) {
      const Shape& x = row[t]->operands[0].shape();
      start.push_back(x), limit.push_back(x), between.push_back(x);
      for (int k = 0; k < x.rank(); ++k) {
        if ((low[t][k] < 0) != (first_low[k] < 0) || (high[t][k] < 0) != (first_high[k] < 0))
          refuse(i, "at another extent it crops where it pads here");
        start[t][k] = std::max<std::int64_t>(0, -low[t][k]);
        limit[t][k] = x[k] + std::min<std::int64_t>(0, high[t][k]);
        between[t][k] = limit[t][k] - start[t][k];
        crops |= between[t][k] != x[k];
        low[t][k] = std::max<std::int64_t>(0, low[t][k]);
        high[t][k] = std::max<std::int64_t>(0, high[t][k]);
      }
    }
    const ExtentNumbers before = explained(i, low, "its low"), after = explained(i, high, "its high");
    OpenValue x = at(i.operands[0]);
    if (crops) {
      const ExtentNumbers rest = explained(i, between, "what it crops to");
      const Shape stride = Shape::filled(limit[0].rank(), 1);
      x = {forms_.slice(x, explained(i, start, "its start"), explained(i, limit, "its limit"), stride, rest), rest};
    }
    return forms_.pad(x, at(i.operands[1]).value, before, after, shape);
  }

  /// A stack of matrices has one leading axis then, rows of which no stack is made none.
  HloValue dot(const Row& row, const ExtentNumbers& shape) {
    const HloInstruction& i = *row[0];
    const bool stacks = i.operands[1].shape().rank() > 2;
    const auto flat = [&](auto&& shape_of) {
      std::vector<Shape> shapes;
      for (const HloInstruction* b : row) {
        const Shape s = shape_of(*b);
        Shape last = stacks ? Shape{1, s[-2], s[-1]} : Shape{s[-2], s[-1]};
        for (int k = 0; k + 2 < s.rank(); ++k) last[0] *= s[k];
        shapes.push_back(last);
      }
      return explained(i, shapes, "the number of its rows");
    };
    return forms_.dot(i, at(i.operands[0]), at(i.operands[1]),
                      flat([](const HloInstruction& b) { return b.operands[0].shape(); }),
                      flat([](const HloInstruction& b) { return b.operands[1].shape(); }),
                      flat([](const HloInstruction& b) { return b.results[0].shape(); }), shape);
  }

  HloValue gather(const Row& row, const ExtentNumbers& shape) {
    const HloInstruction& i = *row[0];
    const Shape& sizes = i.get<Shape>("slice_sizes");
    const OpenValue& x = at(i.operands[0]);
    int axis = 0;
    while (sizes[axis] == i.operands[0].shape()[axis]) ++axis;
    return forms_.gather_slices(x, i, at(i.operands[1]), axis, shape);
  }

  void write_loop(const Row& row) {
    const HloInstruction& i = *row[0];
    HloInstruction loop{.op = i.op, .operands = values_of(i.operands), .origin = i.origin};
    for (std::size_t k = 0; k < i.blocks.size(); ++k) {
      Blocks blocks;
      for (const HloInstruction* b : row) blocks.push_back(&b->blocks[k]);
      loop.blocks.emplace_back();
      loop.blocks.back().arguments = arguments(blocks);
      forms_.within(loop.blocks.back(), [&] {
        walk(blocks);
        return values_of(blocks[0]->results);
      });
    }
    for (std::size_t k = 0; k < i.results.size(); ++k) {
      const ExtentNumbers shape = shape_of(row, k);
      loop.results.push_back(b_.fresh({open_shape(shape), i.results[k].dtype()}));
      at(i.results[k]) = {loop.results.back(), shape};
    }
    b_.append(std::move(loop));
  }

  const std::vector<HloProgram>& programs_;
  const Extents& extents_;
  const StablehloOptions& options_;
  HloProgram out_;
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
