#pragma once
/// Values that a program computes from its open extents.
#include <map>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/emit/program_builder.h"

namespace ferrite::exchange::detail {

/// Writes the instructions that compute numbers from open extents. They go to a separate builder, since they come
/// before all instructions that read the values.
class ExtentArithmetic {
 public:
  /// `arguments` are the program's arguments, whose extents are open.
  ExtentArithmetic(ProgramBuilder& b, const Extents& extents, const std::vector<DynamicAxis>& axes,
                   const Values& arguments)
      : b_(b), extents_(extents), axes_(axes), arguments_(arguments) {}

  ProgramBuilder& builder() { return b_; }
  std::vector<Instruction>& instructions() { return b_.instructions(); }

  /// Returns a number, constant or computed from open extents, as an i64 value of shape [].
  Value number(const SymbolicNumber& n);
  /// Returns n numbers, constant or computed from open extents, as an i64 value of shape [n].
  Value list(const ExtentNumbers& numbers);
  /// Writes the instructions that compute a real number, and returns it as a value of rank 0.
  Value real(const ExtentReal& r, Dtype dtype);
  /// Returns the product of two numbers as i64 [].
  Value product(const Value& a, const Value& b) { return b_.multiply(a, b); }

 private:
  Value product(std::uint32_t set);
  Value extent(std::size_t k);

  ProgramBuilder& b_;
  const Extents& extents_;
  const std::vector<DynamicAxis>& axes_;
  const Values& arguments_;
  std::map<SymbolicNumber, Value> numbers_{};
  std::map<ExtentNumbers, Value> lists_{};
};

}  // namespace ferrite::exchange::detail
