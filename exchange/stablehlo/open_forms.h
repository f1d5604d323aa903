#pragma once
/// Instructions in the forms that take open extents: their numbers are values that the program computes.
#include <unordered_map>

#include "ferrite/exchange/emit/program_merge.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

/// A value with what its extents are.
struct OpenValue {
  Value value{};
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
  void within(Block& block, const std::function<Values()>& write);

  /// A value of rank 0 in every element; equal ones are written once.
  Value filled(const Value& scalar, const ExtentNumbers& shape);
  Value iota(int axis, Dtype dtype, const ExtentNumbers& shape);
  /// x's k-th axis is dims[k] of the result.
  Value broadcast(const OpenValue& x, const Shape& dims, const ExtentNumbers& shape);
  Value reshape(const OpenValue& x, const ExtentNumbers& shape);
  Value slice(const OpenValue& x, const ExtentNumbers& start, const ExtentNumbers& limit, const Shape& stride,
              const ExtentNumbers& shape);
  /// Amounts not below 0.
  Value pad(const OpenValue& x, const Value& value, const ExtentNumbers& low, const ExtentNumbers& high,
            const ExtentNumbers& shape);
  /// From indices on, each of rank 0: so many elements.
  Value dynamic_slice(const OpenValue& x, const Values& indices, const ExtentNumbers& sizes);
  Value dynamic_update_slice(const OpenValue& x, const OpenValue& part, const Values& indices);
  /// Operands and result of a product with their leading axes as one.
  struct Flat {
    ExtentNumbers a, b, result;
  };
  /// A product as it is; without dynamic_reshape one of matrices, or of stacks of matrices.
  Value dot(const Instruction& dot, const OpenValue& a, const OpenValue& b, const Flat& flat,
            const ExtentNumbers& shape);
  /// Slices of extent 1 along an axis, at a rank-1 index.
  Value gather_slices(const OpenValue& x, const Instruction& gather, const OpenValue& index, int axis,
                      const ExtentNumbers& shape);

 private:
  bool gathers() const { return forms_ == DynamicForms::gathers; }
  Value emit(std::string_view op, const Values& operands, Dtype dtype, const ExtentNumbers& shape,
             Attributes attributes = {});
  /// Axes of extent 1 dropped.
  OpenValue squeezed(const OpenValue& x);
  Value sum_of_products(const OpenValue& a, const OpenValue& b, const ExtentNumbers& shape);
  Value gather(const Value& x, const Values& coordinates, const ExtentNumbers& shape);

  HloBuilder& b_;
  ExtentArithmetic& arithmetic_;
  DynamicForms forms_;
  struct Broadcast {
    OpenValue x;
    Shape dims;
  };
  std::unordered_map<int, Broadcast> broadcasts_{};          ///< by the result's id
  std::map<std::pair<int, ExtentNumbers>, Value> filled_{};  ///< by id and shape
};

}  // namespace ferrite::exchange::detail
