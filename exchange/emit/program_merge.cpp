/// Compares instructions, explains the numbers in which they differ, and walks corresponding blocks in parallel.
#include "ferrite/exchange/emit/program_merge.h"

#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/same_bits.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

std::vector<int> ids(const Values& values) {
  std::vector<int> all;
  for (const Value& v : values) all.push_back(v.id);
  return all;
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.value.index() != b.value.index()) return false;
  return std::visit(
      [&](const auto& value) {
        const auto& other = std::get<std::decay_t<decltype(value)>>(b.value);
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Tensor>)
          return same_bits(value, other);
        else
          return value == other;
      },
      a.value);
}

using Blocks = std::vector<const Block*>;  // corresponding blocks of all programs

void learn(Extents& extents, const std::vector<const Values*>& values) {
  for (const Values* v : values)
    if (v->size() != values[0]->size()) return;  // programs differ: merging refuses them
  for (std::size_t k = 0; k < values[0]->size(); ++k)
    for (int axis = 0; axis < (*values[0])[k].shape().rank(); ++axis) {
      std::vector<std::int64_t> all;
      for (const Values* v : values)
        if (axis < (*v)[k].shape().rank()) all.push_back((*v)[k].shape()[axis]);
      if (all.size() == values.size()) extents.learn(all);
    }
}

void learn(Extents& extents, const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks[0]->instructions.size(); ++i) {
    std::vector<const Values*> results;
    for (const Block* b : blocks)
      if (i < b->instructions.size()) results.push_back(&b->instructions[i].results);
    if (results.size() < blocks.size()) return;
    learn(extents, results);
    for (std::size_t k = 0; k < blocks[0]->instructions[i].blocks.size(); ++k) {
      Blocks inner;
      for (const Block* b : blocks)
        if (k < b->instructions[i].blocks.size()) inner.push_back(&b->instructions[i].blocks[k]);
      if (inner.size() == blocks.size()) learn(extents, inner);
    }
  }
}

/// Returns the fault of a function that runs other operations for the example, none of whose open extents is 1; empty
/// if there is none.
std::string other_operations(const ExtentTrials& trials, const Graph& tried, const Graph& example) {
  const auto differs = [&](const std::string& what) {
    return trials.who() + ": an extent that should stay open is fixed: where " + trials.text(trials.given()) +
           ", as in the example, " + what +
           "; write the function for any extent, or export it without this dynamic axis";
  };
  const std::size_t common = std::min(tried.nodes.size(), example.nodes.size());
  for (std::size_t i = 0; i <= common; ++i) {
    const auto name = [i](const Graph& g) { return i < g.nodes.size() ? std::string(g.nodes[i].op->name) : "its end"; };
    const auto is_one = [](std::int64_t n) { return n <= 1; };
    if (name(tried) != name(example))  // programs of single rows have other forms
      return std::ranges::any_of(trials.given(), is_one)
                 ? ""
                 : differs("there is " + name(example) + " in place of " + name(tried));
    if (i == common) break;
    const auto empty = [](const Graph& g, ValueId v) { return g.values[v].shape.numel() == 0; };
    const auto &p = tried.nodes[i].out, &q = example.nodes[i].out;
    for (std::size_t k = 0; k < std::min(p.size(), q.size()); ++k)  // operations without elements are written as zeros
      if (empty(tried, p[k]) && !empty(example, q[k]))
        return differs(name(example) + " gives elements, and none elsewhere");
  }
  return {};
}

/// Returns whether two blocks have the same instructions that read the same values, whatever their numbers are.
bool have_one_form(const Block& a, const Block& b) {
  if (a.instructions.size() != b.instructions.size() || ids(a.arguments) != ids(b.arguments) ||
      ids(a.results) != ids(b.results))
    return false;
  for (std::size_t i = 0; i < a.instructions.size(); ++i) {
    const Instruction &p = a.instructions[i], &q = b.instructions[i];
    if (p.op != q.op || ids(p.operands) != ids(q.operands) || ids(p.results) != ids(q.results) ||
        p.attributes.size() != q.attributes.size() || p.blocks.size() != q.blocks.size())
      return false;
    for (std::size_t k = 0; k < p.blocks.size(); ++k)
      if (!have_one_form(p.blocks[k], q.blocks[k])) return false;
  }
  return true;
}

using Tried = ExtentTrials::Tried<ExportProgram>;

/// Adds the example to the extents that were tried, unless an extent of 1 or two equal ones give its program another
/// form. Returns the reason to refuse a function that runs other operations for it, or an empty text; faults that the
/// trials alone show come first.
std::string try_example(const ExtentTrials& trials, Tried& tried,
                        const std::function<Graph(const std::vector<Spec>&)>& traced,
                        const std::function<ExportProgram(const Graph&)>& write) {
  KeepExtentsOpen open;
  const Graph example = traced(trials.specs(trials.given()));
  auto reads = open.take();
  std::string fault = other_operations(trials, traced(trials.specs(tried.sizes[0])), example);
  (void)open.take();
  if (!fault.empty()) return fault;
  ExportProgram program = write(example);
  if (!have_one_form(tried.programs[0].main, program.main)) return {};
  tried.programs.push_back(std::move(program));
  tried.sizes.push_back(trials.given());
  tried.reads.push_back(std::move(reads));
  return {};
}

}  // namespace

ExportProgram program_for_any_extent(
    const std::string& who, const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
    const std::vector<DynamicAxis>& axes, const std::function<ExportProgram(const Graph&)>& write,
    const std::function<ExportProgram(const std::vector<ExportProgram>&, const Extents&)>& merge) {
  const ExtentTrials trials(who, inputs, axes);
  const nn::detail::ComposeAsScans as_scans;  // recurrent layers are loops over any number of steps
  const auto traced = [&](const std::vector<Spec>& specs) { return trace(f, specs); };
  Tried tried = trials.try_all([&](const std::vector<Spec>& specs) { return write(traced(specs)); });
  const std::string fault = try_example(trials, tried, traced, write);
  Extents extents(trials, tried.sizes);
  Blocks mains;
  for (const ExportProgram& p : tried.programs) mains.push_back(&p.main);
  learn(extents, mains);
  ExportProgram merged = merge(tried.programs, extents);
  if (!fault.empty()) throw ExportError(fault);
  check_small_extents(who, trials, extents, tried.reads, [&](const std::vector<Spec>& specs) { (void)traced(specs); });
  return merged;
}

void InstructionRow::refuse(const std::string& what) const {
  const auto& [operation, layer] = first().origin;
  std::string where(operation.empty() ? "the program" : operation);
  if (!layer.empty()) where += " in '" + std::string(layer.path()) + "'";
  throw ExportError(std::string(format_.who) + ": an extent that should stay open is fixed: " + where + " (" +
                    std::string(format_.dialect) + first().op + "): " + what +
                    "; write the function for any extent, or export it without this dynamic axis");
}

void InstructionRow::check() const {
  for (const Instruction* b : all_) {
    if (b->op != first().op) refuse("at another extent it is " + std::string(format_.dialect) + b->op);
    if (ids(b->operands) != ids(first().operands) || ids(b->results) != ids(first().results))
      refuse("at another extent it reads other values");
  }
}

void InstructionRow::check_attributes() const {
  for (const Instruction* b : all_) {
    if (b->attributes.size() != first().attributes.size()) refuse("it has other attributes at another extent");
    for (std::size_t k = 0; k < first().attributes.size(); ++k)
      if (!same_attribute(first().attributes[k], b->attributes[k]))
        refuse("its " + first().attributes[k].name + " depends on the extent");
  }
}

std::vector<Shape> InstructionRow::shapes(std::size_t result) const {
  std::vector<Shape> all;
  for (const Instruction* i : all_) all.push_back(i->results[result].shape());
  return all;
}

std::vector<Tensor> InstructionRow::tensors() const {
  std::vector<Tensor> all;
  for (const Instruction* i : all_) all.push_back(i->get<Tensor>("value"));
  return all;
}

std::vector<Shape> InstructionRow::lists(std::string_view attribute) const {
  std::vector<Shape> all;
  for (const Instruction* i : all_) all.push_back(i->get<Shape>(attribute));
  return all;
}

bool InstructionRow::differs(std::string_view attribute) const {
  const std::vector<Shape> all = lists(attribute);
  return std::ranges::any_of(all, [&](const Shape& s) { return s != all[0]; });
}

ExtentNumbers InstructionRow::explained(const std::vector<Shape>& lists, const std::string& what) const {
  for (const Shape& s : lists)
    if (s.rank() != lists[0].rank()) refuse(what + " has another rank at another extent");
  std::optional<ExtentNumbers> numbers = extents_.explain(lists);
  if (!numbers) refuse("no arithmetic on the extents gives " + what + " " + lists[0].str());
  return std::move(*numbers);
}

ExportProgram ProgramMerge::merged() {
  const NewFrame frame;
  Blocks mains;
  for (const ExportProgram& p : programs_) mains.push_back(&p.main);
  out_.main.names = mains[0]->names;
  out_.result_names = programs_[0].result_names;
  out_.notes = programs_[0].notes;
  out_.main.arguments = arguments(mains);
  walk(mains);
  out_.main.results = values_of(mains[0]->results);
  std::vector<Instruction>& all = arithmetic_.instructions();
  std::ranges::move(b_.instructions(), std::back_inserter(all));
  out_.main.instructions = std::move(all);
  out_.values = b_.values();
  out_.argument_axes = axes_of(mains, &Block::arguments);
  out_.result_axes = axes_of(mains, &Block::results);
  return std::move(out_);
}

Values ProgramMerge::values_of(const Values& old) {
  Values all;
  for (const Value& v : old) all.push_back(v.exists() ? at(v) : v);
  return all;
}

/// Makes new values for the results of an instruction.
Values ProgramMerge::given(const InstructionRow& row) {
  Values made;
  for (std::size_t k = 0; k < row->results.size(); ++k) {
    made.push_back(b_.fresh(spec_of(row, k)));
    at(row->results[k]) = made.back();
  }
  return made;
}

Values ProgramMerge::arguments(const Blocks& blocks) {
  std::vector<Instruction> heads;
  std::vector<const Instruction*> row;
  for (const Block* b : blocks) heads.push_back({.op = "func", .results = b->arguments, .blocks = {}});
  for (const Instruction& head : heads) row.push_back(&head);
  return given(row_of(row));
}

void ProgramMerge::walk(const Blocks& blocks) {
  const std::vector<Instruction>& first = blocks[0]->instructions;
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::vector<const Instruction*> all;
    for (const Block* b : blocks) {
      if (b->instructions.size() <= i) row_of({&first[i]}).refuse("at another extent it is not there");
      all.push_back(&b->instructions[i]);
    }
    const InstructionRow row = row_of(all);
    row.check();
    b_.set_origin(row->origin);
    if (!row->blocks.empty()) {
      write_blocks(row);
      continue;
    }
    const Values made = write(row);
    for (std::size_t k = 0; k < made.size(); ++k) at(row->results[k]) = made[k];
  }
  for (const Block* b : blocks)
    if (b->instructions.size() > first.size())
      row_of({&b->instructions[first.size()]}).refuse("at another extent it is not there");
}

void ProgramMerge::write_blocks(const InstructionRow& row) {
  row.check_attributes();
  Instruction merged{.op = row->op,
                     .operands = values_of(row->operands),
                     .attributes = row->attributes,
                     .types = row->types,
                     .blocks = {},
                     .origin = row->origin};
  for (std::size_t k = 0; k < row->blocks.size(); ++k) {
    Blocks blocks;
    for (std::size_t t = 0; t < row.size(); ++t) blocks.push_back(&row[t].blocks[k]);
    merged.blocks.emplace_back();
    merged.blocks.back().names = blocks[0]->names;
    merged.blocks.back().arguments = arguments(blocks);
    within(merged.blocks.back(), [&] {
      walk(blocks);
      return values_of(blocks[0]->results);
    });
  }
  b_.set_origin(row->origin);
  merged.results = given(row);
  b_.append(std::move(merged));
}

/// Returns the formulas of the extents of arguments or results that differ, as text; "?" where no arithmetic gives it.
std::vector<std::vector<std::string>> ProgramMerge::axes_of(const Blocks& blocks, Values Block::*ports) const {
  std::vector<std::vector<std::string>> all;
  for (std::size_t i = 0; i < (blocks[0]->*ports).size(); ++i) {
    all.emplace_back();
    for (int axis = 0; axis < (blocks[0]->*ports)[i].shape().rank(); ++axis) {
      Integers extents;
      for (const Block* b : blocks) extents.push_back((b->*ports)[i].shape()[axis]);
      const bool fixed = std::ranges::all_of(extents, [&](std::int64_t n) { return n == extents[0]; });
      const std::optional<SymbolicNumber> n = fixed ? SymbolicNumber(0) : extents_.explain(extents);
      all.back().push_back(fixed ? "" : n ? extents_.text(*n) : "?");
    }
  }
  return all;
}

}  // namespace ferrite::exchange::detail
