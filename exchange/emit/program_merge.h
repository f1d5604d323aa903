#pragma once
/// Programs of one function at several extents as one whose extents are open.
#include "ferrite/exchange/emit/extent_arithmetic.h"

namespace ferrite::exchange::detail {

/// Says what is wrong with a function that runs other operations for the example, none of whose open extents is 1;
/// empty: nothing.
std::string other_operations(const ExtentTrials& trials, const Graph& tried, const Graph& example);

/// Shows the extents of all values to `extents`, which has to see them before programs are merged.
void learn_extents(Extents& extents, const std::vector<ExportProgram>& programs);

/// Whether two programs have the same instructions, which read the same values, whatever their numbers are.
bool have_one_form(const ExportProgram& a, const ExportProgram& b);

/// Adds the example to the extents that were tried, unless an extent of 1 or two equal ones give its program another
/// form. Gives the reason to refuse a function that runs other operations for it, empty where there is none: what the
/// trials alone show comes first. `traced(specs)` gives the graph, `written(graph)` its program.
template <class Tried, class Trace, class Write>
std::string try_example(const ExtentTrials& trials, Tried& tried, const Trace& traced, const Write& written) {
  KeepExtentsOpen open;
  const Graph example = traced(trials.specs(trials.given()));
  auto reads = open.take();
  std::string fault = other_operations(trials, traced(trials.specs(tried.sizes[0])), example);
  (void)open.take();
  if (!fault.empty()) return fault;
  auto program = written(example);
  if (!have_one_form(tried.programs[0], program)) return {};
  tried.programs.push_back(std::move(program));
  tried.sizes.push_back(trials.given());
  tried.reads.push_back(std::move(reads));
  return {};
}

/// The same instruction of all programs that are compared.
class InstructionRow {
 public:
  /// One instruction for each of the sizes of `extents`.
  InstructionRow(const Format& format, const Extents& extents, std::vector<const Instruction*> all)
      : format_(format), extents_(extents), all_(std::move(all)) {}

  std::size_t size() const { return all_.size(); }
  const Instruction& operator[](std::size_t program) const& { return *all_[program]; }
  const Instruction& first() const& { return *all_[0]; }
  const Instruction* operator->() const& { return all_[0]; }

  /// Throws ExportError, naming the operation and the layer to which the first one belongs.
  [[noreturn]] void refuse(const std::string& what) const;
  /// Refuses instructions that differ in more than numbers.
  void check() const;
  /// Refuses attributes that differ.
  void check_attributes() const;

  /// The shapes of a result in each program, and what its extents are.
  std::vector<Shape> shapes(std::size_t result) const;
  ExtentNumbers shape(std::size_t result = 0) const { return explained(shapes(result), "its result"); }
  /// The elements of a constant in each program.
  std::vector<Tensor> tensors() const;
  /// What the numbers of an attribute are, what they are in each program, and whether they differ.
  ExtentNumbers list(std::string_view attribute) const {
    return explained(lists(attribute), "its " + std::string(attribute));
  }
  std::vector<Shape> lists(std::string_view attribute) const;
  bool differs(std::string_view attribute) const;
  /// What these numbers are, one list for each program; refuses what no arithmetic on the extents gives.
  ExtentNumbers explained(const std::vector<Shape>& lists, const std::string& what) const;

  const Extents& extents() const& { return extents_; }

 private:
  const Format& format_;
  const Extents& extents_;
  std::vector<const Instruction*> all_;
};

/// Walks programs side by side: what is the same stays, numbers that differ become arithmetic on the extents, and the
/// instructions that read them take the forms that a format has for that.
class ProgramMerge {
 public:
  /// `b` writes what is merged, `front` the arithmetic; they share their values.
  ProgramMerge(const std::vector<ExportProgram>& programs, const Extents& extents, const std::vector<DynamicAxis>& axes,
               ProgramBuilder& b, ProgramBuilder& front)
      : programs_(programs),
        extents_(extents),
        b_(b),
        arithmetic_(front, extents, axes, out_.main.arguments),
        values_(static_cast<std::size_t>(programs[0].values)) {}
  ProgramMerge(const ProgramMerge&) = delete;
  ProgramMerge& operator=(const ProgramMerge&) = delete;
  virtual ~ProgramMerge() = default;

  /// Throws ExportError where the programs differ in what no arithmetic on the extents gives.
  ExportProgram merged();

 protected:
  /// The merged form of instructions without blocks: what they give.
  virtual Values write(const InstructionRow& row) = 0;
  /// The type of a result, or of an argument of a block.
  virtual Spec spec_of(const InstructionRow& row, std::size_t result) = 0;
  /// As ProgramBuilder::within.
  virtual void within(Block& block, const std::function<Values()>& write) { b_.within(block, write); }

  Value& at(const Value& old) { return values_[static_cast<std::size_t>(old.id)]; }
  /// One that is left out stays so.
  Values values_of(const Values& old);

  const std::vector<ExportProgram>& programs() const { return programs_; }
  const Extents& extents() const { return extents_; }
  ProgramBuilder& builder() { return b_; }
  ExtentArithmetic& arithmetic() { return arithmetic_; }

 private:
  using Blocks = std::vector<const Block*>;  ///< the same one of all programs

  InstructionRow row_of(std::vector<const Instruction*> all) const { return {b_.format(), extents_, std::move(all)}; }
  Values given(const InstructionRow& row);
  Values arguments(const Blocks& blocks);
  void walk(const Blocks& blocks);
  void write_blocks(const InstructionRow& row);
  std::vector<std::vector<std::string>> axes_of(const Blocks& blocks, Values Block::*ports) const;

  const std::vector<ExportProgram>& programs_;
  const Extents& extents_;
  ExportProgram out_{};
  ProgramBuilder& b_;
  ExtentArithmetic arithmetic_;
  Values values_;  ///< by id in the programs
};

}  // namespace ferrite::exchange::detail
