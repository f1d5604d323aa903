#pragma once
/// Index maps: which element of a value a point of a fused program reads. Chains of views fold into one affine map.
#include <array>
#include <optional>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// A box in the axes over which a fused program runs: begin <= i < end on every axis.
struct Box {
  Shape begin;
  Shape end;
  bool operator==(const Box&) const = default;
};

/// The map from a point i of the domain to the element of a value that belongs to it:
///
///   index[a] = offset[a] + sum over the domain's axes k with axis[k] = a of coefficient[k] * i[k]
///
/// An axis of the domain that moves nothing (axis[k] = -1) repeats the value. Indices may lie outside the value in a
/// padding; `valid` returns where they do not.
struct IndexMap {
  Shape shape;        ///< shape of the value
  Shape offset;       ///< for each axis of the value
  Shape axis;         ///< for each axis of the domain
  Shape coefficient;  ///< for each axis of the domain; 0 where axis is -1
  bool operator==(const IndexMap&) const = default;

  static IndexMap identity(const Shape& shape);
};

/// The effect of a strided view on indices: each axis of its operand as a function of the view's axes.
struct ViewRule {
  Shape in;           ///< shape of the operand
  Shape offset;       ///< for each axis of the operand
  Shape axis;         ///< for each axis of the view: the operand's axis that it moves, -1 for none
  Shape coefficient;  ///< for each axis of the view
};

/// Returns the rule of a result of a view operation (permute, expand, slice, select, unbind, split), found by calling
/// its Primitive::view with trial strides; nullopt for operations that are not views or whose view depends on strides.
std::optional<ViewRule> rule_of_view(const Graph& g, const Graph::Node& n, std::size_t result);

/// Returns the map of a view's operand, given the map of the view.
IndexMap through(const IndexMap& view, const ViewRule& rule);
/// Returns the map of an operand that is broadcast to the shape of the result.
IndexMap through_broadcast(const IndexMap& result, const Shape& operand);
/// Returns the map of a padding's operand, with `before` elements added before each axis; it is valid outside the
/// padding.
IndexMap through_pad(const IndexMap& padded, const Shape& before, const Shape& operand);

/// The maps and boxes in the axes of a domain that are updated when an axis is cut in two, or one is added.
struct Followers {
  std::vector<IndexMap*> maps{};
  std::vector<Box*> boxes{};
};

/// The axes over which a fused program runs.
class Domain {
 public:
  explicit Domain(const Shape& extents) : extents_(extents), outer_(extents.rank()) {}
  const Shape& extents() const { return extents_; }

  /// Returns the number of axes that the reductions of a group keep; the axes after them are reduced. Without
  /// reductions, all axes are outer.
  int outer() const { return outer_; }
  bool has_rows() const { return outer_ < extents_.rank(); }
  /// Returns the number of elements of a row: the points that share their place on the outer axes.
  std::int64_t row_elements() const;
  void set_outer(int outer) { outer_ = outer; }
  /// Adds an axis at the end, along which nothing moves yet.
  void append(std::int64_t extent, const Followers& followers);
  /// Cuts axis k into k (extent / inner) and k + 1 (inner). Returns false, and changes nothing, where a box does not
  /// allow it or there are too many axes.
  bool cut(int k, std::int64_t inner, const Followers& followers);

 private:
  Shape extents_;
  int outer_;
};

/// Returns the map of a reshape's operand; nullopt where no affine map exists. Axes of the domain are cut where the
/// shapes require it, and `followers` are updated.
std::optional<IndexMap> through_reshape(Domain& domain, Followers followers, const IndexMap& view,
                                        const Shape& operand);

/// Drops what moves nothing, so that equal maps compare equal: axes of the domain of extent 1, and axes of the value of
/// extent 1 (whose index is 0 wherever the value matters).
void settle(IndexMap& map, const Shape& extents);

/// Returns whether a map has one element for each row of the domain: it moves along the outer axes only.
bool is_of_rows(const IndexMap& map, const Domain& domain);

/// Returns the box in which all indices of a map lie inside its value; nullopt where that is not a box.
std::optional<Box> valid(const IndexMap& map, const Shape& extents);
/// Returns whether all indices of a map lie inside its value everywhere in a box.
bool is_valid_in(const IndexMap& map, const Box& box);
/// Returns the smallest box around two boxes.
Box hull(const Box& a, const Box& b);
/// Returns the box that is the whole domain.
Box whole_box(const Shape& extents);
/// Returns whether a box is the whole domain.
bool is_whole(const Box& box, const Shape& extents);

}  // namespace ferrite::detail
