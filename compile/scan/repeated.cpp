/// Compares a program on many rows with one on few rows, which it may be again and again.
#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/scan/detail/repeated.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {
namespace {

/// Whether `many` is `times` the shape `few` along its first axis that is not 1: such parts follow each other in
/// memory.
bool has_parts(const Shape& few, const Shape& many, std::int64_t times) {
  if (few.rank() != many.rank()) return false;
  int axis = 0;
  while (axis < few.rank() && few[axis] == 1 && many[axis] == 1) ++axis;
  if (axis == few.rank() || few[axis] * times != many[axis]) return false;
  for (int i = axis + 1; i < few.rank(); ++i)
    if (few[i] != many[i]) return false;
  return true;
}

/// Checks node by node that every value of `many` that depends on x consists of parts, the k-th of which is what `few`
/// computes for the k-th part of x.
class Comparison {
 public:
  Comparison(const Graph& few, const Graph& many, std::int64_t times)
      : few_(few), many_(many), times_(times), of_x_(few.values.size()) {}

  bool holds() {
    if (few_.inputs != many_.inputs || few_.outputs != many_.outputs || few_.values.size() != many_.values.size() ||
        few_.nodes.size() != many_.nodes.size() || few_.constants.size() != many_.constants.size())
      return false;
    if (!has_rows(few_.inputs[0])) return false;
    for (std::size_t i = 0; i < few_.constants.size(); ++i)
      if (few_.constants[i].value != many_.constants[i].value ||
          !same_constant(few_.constants[i].tensor, many_.constants[i].tensor))
        return false;
    for (std::size_t i = 0; i < few_.nodes.size(); ++i)
      if (!same_step(few_.nodes[i], many_.nodes[i])) return false;
    return std::all_of(few_.outputs.begin(), few_.outputs.end(), [&](ValueId v) { return of_x_[v]; });
  }

 private:
  bool same_type(ValueId v) const { return few_.values[v] == many_.values[v]; }
  bool has_rows(ValueId v) {
    of_x_[v] = true;
    return has_parts(few_.values[v].shape, many_.values[v].shape, times_);
  }
  /// Whether a node keeps parts apart. Only one axis of its result is longer in `many`, so operands that depend on x
  /// meet part by part. An operand that does not cannot tell parts apart: it would need as many rows in both programs.
  bool same_step(const Graph::Node& few, const Graph::Node& many) {
    if (few.op != many.op || few.attrs.body || !std::ranges::equal(few.in, many.in) ||
        !std::ranges::equal(few.out, many.out))
      return false;
    const bool of_x = std::any_of(few.in.begin(), few.in.end(), [&](ValueId v) { return of_x_[v]; });
    if (few.op == ops::reshape && of_x) return has_rows(few.out[0]);
    if (!few.attrs.same_bits(many.attrs)) return false;
    if (!of_x) return std::all_of(few.out.begin(), few.out.end(), [&](ValueId v) { return same_type(v); });
    return (few.op->is_pointwise() || few.op == ops::permute) && has_rows(few.out[0]);
  }

  const Graph &few_, &many_;
  std::int64_t times_;
  std::vector<bool> of_x_;  ///< which values depend on x
};

}  // namespace

bool is_repeated(const Graph& few, const Graph& many, std::int64_t times) {
  return Comparison(few, many, times).holds();
}

}  // namespace ferrite::detail
