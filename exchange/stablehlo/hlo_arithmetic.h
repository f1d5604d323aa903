#pragma once
/// Values that a program computes from its open extents.
#include <map>

#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

/// Writes to a builder of its own, in front of all that reads the values.
class ExtentArithmetic {
 public:
  ExtentArithmetic(const HloBuilder& b, const Extents& extents, const std::vector<DynamicAxis>& axes,
                   const HloValues& arguments);

  std::vector<HloInstruction>& instructions() { return b_.instructions(); }

  /// i64 [].
  HloValue number(const SymbolicNumber& n);
  /// i64 [n].
  HloValue list(const ExtentNumbers& numbers);
  /// Of rank 0.
  HloValue real(const ExtentReal& r, Dtype dtype);
  /// i64 [].
  HloValue product(const HloValue& a, const HloValue& b) { return b_.multiply(a, b); }

 private:
  HloValue product(std::uint32_t set);
  HloValue extent(std::size_t k);

  const Extents& extents_;
  const std::vector<DynamicAxis>& axes_;
  const HloValues& arguments_;
  HloBuilder b_;
  std::map<std::string, HloValue> numbers_{}, lists_{};  ///< by text
};

}  // namespace ferrite::exchange::detail
