#pragma once
/// Merging the programs of one function at several extents into one with open extents.
#include "ferrite/exchange/emit/extent_arithmetic.h"

namespace ferrite::exchange::detail {

/// Writes a function whose `axes` stay open: traces it at several extents and for the example, writes each graph with
/// `write` and makes one program of all with `merge`. Throws ExportError, beginning with `who`, where no program fits
/// all extents.
ExportProgram program_for_any_extent(
    const std::string& who, const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
    const std::vector<DynamicAxis>& axes, const std::function<ExportProgram(const Graph&)>& write,
    const std::function<ExportProgram(const std::vector<ExportProgram>&, const Extents&)>& merge);

/// The instruction at one place in all programs that are compared.
class InstructionRow {
 public:
  /// Takes one instruction for each of the sizes of `extents`.
  InstructionRow(const Format& format, const Extents& extents, std::vector<const Instruction*> all)
      : format_(format), extents_(extents), all_(std::move(all)) {}

  std::size_t size() const { return all_.size(); }
  const Instruction& operator[](std::size_t program) const& { return *all_[program]; }
  const Instruction& first() const& { return *all_[0]; }
  const Instruction* operator->() const& { return all_[0]; }

  /// Throws ExportError that names the operation and layer of the first instruction.
  [[noreturn]] void refuse(const std::string& what) const;
  /// Throws ExportError where the instructions differ in more than numbers.
  void check() const;
  /// Throws ExportError where attributes differ.
  void check_attributes() const;

  /// Returns the shape of a result in each program.
  std::vector<Shape> shapes(std::size_t result) const;
  /// Returns the formulas of a result's extents.
  ExtentNumbers shape(std::size_t result = 0) const { return explained(shapes(result), "its result"); }
  /// Returns the elements of a constant in each program.
  std::vector<Tensor> tensors() const;
  /// Returns the formulas of an attribute's numbers.
  ExtentNumbers list(std::string_view attribute) const {
    return explained(lists(attribute), "its " + std::string(attribute));
  }
  /// Returns the numbers of an attribute in each program.
  std::vector<Shape> lists(std::string_view attribute) const;
  /// Returns whether the numbers of an attribute differ between programs.
  bool differs(std::string_view attribute) const;
  /// Returns the formulas of numbers, given as one list for each program. Throws ExportError that names `what` where no
  /// arithmetic on the extents gives them.
  ExtentNumbers explained(const std::vector<Shape>& lists, const std::string& what) const;

  const Extents& extents() const& { return extents_; }

 private:
  const Format& format_;
  const Extents& extents_;
  std::vector<const Instruction*> all_;
};

/// Walks several programs in parallel and merges them: what is equal stays, numbers that differ become arithmetic on
/// the extents, and the instructions that read them take the forms that a format has for that.
class ProgramMerge {
 public:
  /// `b` writes the merged program, `front` the arithmetic before it; their values do not collide.
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

  /// Returns the merged program. Throws ExportError where the programs differ in what no arithmetic on the extents
  /// gives.
  ExportProgram merged();

 protected:
  /// Writes the merged form of an instruction without blocks and returns its results.
  virtual Values write(const InstructionRow& row) = 0;
  /// Returns the type of a result, or of an argument of a block.
  virtual Spec spec_of(const InstructionRow& row, std::size_t result) = 0;
  /// Calls `write`, whose instructions and results become those of a block.
  virtual void within(Block& block, const std::function<Values()>& write) { b_.within(block, write); }

  Value& at(const Value& old) { return values_[static_cast<std::size_t>(old.id)]; }
  /// Returns the merged values for those of the first program; operands that are left out stay so.
  Values values_of(const Values& old);

  const std::vector<ExportProgram>& programs() const { return programs_; }
  const Extents& extents() const { return extents_; }
  ProgramBuilder& builder() { return b_; }
  ExtentArithmetic& arithmetic() { return arithmetic_; }

 private:
  using Blocks = std::vector<const Block*>;  ///< the corresponding block of each program

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
  Values values_;  ///< the merged values, by id in the programs
};

}  // namespace ferrite::exchange::detail
