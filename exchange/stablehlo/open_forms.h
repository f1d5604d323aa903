#pragma once
/// The dynamic forms of StableHLO instructions, whose numbers are values that the program computes from open extents.
#include <unordered_map>

#include "ferrite/exchange/emit/program_merge.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

/// A value with the formulas of its extents.
struct OpenValue {
  Value value{};
  ExtentNumbers shape{};

  bool is_open() const { return !are_constant(shape); }
  Dtype dtype() const { return value.dtype(); }
};

/// Returns the shape with kOpenExtent for extents that are not constant.
Shape open_shape(const ExtentNumbers& shape);
ExtentNumbers constants(const Shape& list);

/// Writes instructions with open extents.
class OpenForms {
 public:
  OpenForms(HloBuilder& b, ExtentArithmetic& arithmetic, DynamicForms forms)
      : b_(b), arithmetic_(arithmetic), forms_(forms) {}

  /// Calls `write`, whose instructions become those of a block, as HloBuilder::within does.
  void within(Block& block, const std::function<Values()>& write);

  /// Writes a value whose elements all equal a value of rank 0; equal ones are written once.
  Value filled(const Value& scalar, const ExtentNumbers& shape);
  Value iota(int axis, Dtype dtype, const ExtentNumbers& shape);
  /// Broadcasts x so that its k-th axis is axis dims[k] of the result.
  Value broadcast(const OpenValue& x, const Shape& dims, const ExtentNumbers& shape);
  Value reshape(const OpenValue& x, const ExtentNumbers& shape);
  Value slice(const OpenValue& x, const ExtentNumbers& start, const ExtentNumbers& limit, const Shape& stride,
              const ExtentNumbers& shape);
  /// Pads x with `value` by amounts that are not below 0.
  Value pad(const OpenValue& x, const Value& value, const ExtentNumbers& low, const ExtentNumbers& high,
            const ExtentNumbers& shape);
  /// Takes a slice of the given sizes that starts at `indices`, each of rank 0.
  Value dynamic_slice(const OpenValue& x, const Values& indices, const ExtentNumbers& sizes);
  Value dynamic_update_slice(const OpenValue& x, const OpenValue& part, const Values& indices);
  /// Shapes of the operands and the result of a product with their leading axes merged into one.
  struct Flat {
    ExtentNumbers a, b, result;
  };
  /// Writes the product of a and b, `dot`, with a result of the given shape. With `DynamicForms::complete` the
  /// instruction stays as it is; with `gathers` it becomes a product of matrices or of stacks of matrices (`flat`), and
  /// one in which an extent of the matrices is 1 becomes a sum of products.
  Value dot(const Instruction& dot, const OpenValue& a, const OpenValue& b, const Flat& flat,
            const ExtentNumbers& shape);
  /// Gathers slices of extent 1 along an axis, at a rank-1 index.
  Value gather_slices(const OpenValue& x, const Instruction& gather, const OpenValue& index, int axis,
                      const ExtentNumbers& shape);

 private:
  bool gathers() const { return forms_ == DynamicForms::gathers; }
  Value emit(std::string_view op, const Values& operands, Dtype dtype, const ExtentNumbers& shape,
             Attributes attributes = {});
  /// Returns x without its axes of extent 1.
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
  std::unordered_map<int, Broadcast> broadcasts_{};          ///< operands of broadcasts, by the result's id
  std::map<std::pair<int, ExtentNumbers>, Value> filled_{};  ///< filled values, by id of the scalar and shape
};

}  // namespace ferrite::exchange::detail
