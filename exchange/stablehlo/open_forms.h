#pragma once
/// Instructions in the forms that take open extents: their numbers are values that the program computes.
#include <unordered_map>

#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_arithmetic.h"

namespace ferrite::exchange::detail {

/// A value with what its extents are.
struct OpenValue {
  HloValue value{};
  ExtentNumbers shape{};

  bool is_open() const { return !are_constant(shape); }
  Dtype dtype() const { return value.dtype(); }
};

/// The shape with `?` for what is not constant.
Shape open_shape(const ExtentNumbers& shape);
ExtentNumbers constants(const Shape& list);

class OpenForms {
 public:
  OpenForms(HloBuilder& b, ExtentArithmetic& arithmetic, DynamicForms forms)
      : b_(b), arithmetic_(arithmetic), forms_(forms) {}

  /// As HloBuilder::within.
  void within(HloBlock& block, const std::function<HloValues()>& write);

  /// A value of rank 0 in every element; equal ones are written once.
  HloValue filled(const HloValue& scalar, const ExtentNumbers& shape);
  HloValue iota(int axis, Dtype dtype, const ExtentNumbers& shape);
  /// x's k-th axis is dims[k] of the result.
  HloValue broadcast(const OpenValue& x, const Shape& dims, const ExtentNumbers& shape);
  HloValue reshape(const OpenValue& x, const ExtentNumbers& shape);
  HloValue slice(const OpenValue& x, const ExtentNumbers& start, const ExtentNumbers& limit, const Shape& stride,
                 const ExtentNumbers& shape);
  /// Amounts not below 0.
  HloValue pad(const OpenValue& x, const HloValue& value, const ExtentNumbers& low, const ExtentNumbers& high,
               const ExtentNumbers& shape);
  /// From indices on, each of rank 0: so many elements.
  HloValue dynamic_slice(const OpenValue& x, const HloValues& indices, const ExtentNumbers& sizes);
  HloValue dynamic_update_slice(const OpenValue& x, const OpenValue& part, const HloValues& indices);
  /// Operands and result of a product with their leading axes as one.
  struct Flat {
    ExtentNumbers a, b, result;
  };
  /// A product as it is; without dynamic_reshape one of matrices, or of stacks of matrices.
  HloValue dot(const HloInstruction& dot, const OpenValue& a, const OpenValue& b, const Flat& flat,
               const ExtentNumbers& shape);
  /// Slices of extent 1 along an axis, at a rank-1 index.
  HloValue gather_slices(const OpenValue& x, const HloInstruction& gather, const OpenValue& index, int axis,
                         const ExtentNumbers& shape);

 private:
  bool gathers() const { return forms_ == DynamicForms::gathers; }
  HloValue emit(std::string_view op, const HloValues& operands, Dtype dtype, const ExtentNumbers& shape,
                HloAttributes attributes = {});
  /// Axes of extent 1 dropped.
  OpenValue squeezed(const OpenValue& x);
  HloValue sum_of_products(const OpenValue& a, const OpenValue& b, const ExtentNumbers& shape);
  HloValue gather(const HloValue& x, const HloValues& coordinates, const ExtentNumbers& shape);

  HloBuilder& b_;
  ExtentArithmetic& arithmetic_;
  DynamicForms forms_;
  struct Broadcast {
    OpenValue x;
    Shape dims;
  };
  std::unordered_map<int, Broadcast> broadcasts_{};             ///< by the result's id
  std::map<std::pair<int, ExtentNumbers>, HloValue> filled_{};  ///< by id and shape
};

}  // namespace ferrite::exchange::detail
