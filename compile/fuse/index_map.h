#pragma once
/// Where an element of a fused program comes from: chains of views folded into one affine map for each axis.
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

/// The element of a value that belongs to a point i of the domain:
///
///   index[a] = offset[a] + sum over the domain's axes k with axis[k] = a of coefficient[k] * i[k]
///
/// An axis of the domain that moves nothing (axis[k] = -1) repeats the value. Indices may lie outside the value where a
/// padding stands; `valid` says where they do not.
struct IndexMap {
  Shape shape;        ///< of the value
  Shape offset;       ///< for each axis of the value
  Shape axis;         ///< for each axis of the domain
  Shape coefficient;  ///< for each axis of the domain; 0 where axis is -1
  bool operator==(const IndexMap&) const = default;

  static IndexMap identity(const Shape& shape);
};

/// One axis of a view's operand as a function of the view's axes: what a strided view does to indices.
struct ViewRule {
  Shape in;           ///< shape of the operand
  Shape offset;       ///< for each axis of the operand
  Shape axis;         ///< for each axis of the view: the operand's axis that it moves, -1 for none
  Shape coefficient;  ///< for each axis of the view
};

/// The rule of a view operation (permute, expand, slice, select, unbind, split), found by asking its record with
/// probing strides; nothing for operations that are no views or whose view depends on strides.
std::optional<ViewRule> rule_of_view(const Graph& g, const Graph::Node& n, std::size_t result);

/// The map of a view's operand, given the map of the view.
IndexMap through(const IndexMap& view, const ViewRule& rule);
/// The map of an operand that is broadcast to the shape of the result.
IndexMap through_broadcast(const IndexMap& result, const Shape& operand);
/// The map of what a padding pads, where `before` elements were added; its valid box is where the padding is not.
IndexMap through_pad(const IndexMap& padded, const Shape& before, const Shape& operand);

/// What is expressed in the axes of a domain and follows when one of them is cut in two, or one is added.
struct Followers {
  std::vector<IndexMap*> maps{};
  std::vector<Box*> boxes{};
};

/// The axes over which a fused program runs.
class Domain {
 public:
  explicit Domain(const Shape& extents) : extents_(extents), outer_(extents.rank()) {}
  const Shape& extents() const { return extents_; }

  /// Axes before this one are kept by the reductions of a group, the others reduced; all of them where there are none.
  int outer() const { return outer_; }
  bool has_rows() const { return outer_ < extents_.rank(); }
  /// Elements of a row: points that share their place on the outer axes.
  std::int64_t row_elements() const;
  void set_outer(int outer) { outer_ = outer; }
  /// Adds an axis at the end, along which nothing moves yet.
  void append(std::int64_t extent, const Followers& followers);
  /// Cuts axis k into k (extent / inner) and k + 1 (inner). False, and nothing changed, where a box does not allow it
  /// or there are too many axes.
  bool cut(int k, std::int64_t inner, const Followers& followers);

 private:
  Shape extents_;
  int outer_;
};

/// The map of a reshape's operand. Axes of the domain are cut where the shapes ask for it, and those follow; nothing
/// where no affine map exists.
std::optional<IndexMap> through_reshape(Domain& domain, Followers followers, const IndexMap& view,
                                        const Shape& operand);

/// Drops what moves nothing, so that equal maps compare equal: axes of the domain of extent 1, and axes of the value of
/// extent 1 (whose index is 0 wherever the value matters).
void settle(IndexMap& map, const Shape& extents);

/// Whether a map gives one element to each row of the domain: it moves along the outer axes only.
bool is_of_rows(const IndexMap& map, const Domain& domain);

/// Where all indices of a map lie inside its value; nothing where that is no box.
std::optional<Box> valid(const IndexMap& map, const Shape& extents);
/// Whether they do so everywhere in a box.
bool is_valid_in(const IndexMap& map, const Box& box);
/// The smallest box around both.
Box hull(const Box& a, const Box& b);
/// The box that is the whole domain.
Box whole_box(const Shape& extents);
/// Whether a box is the whole domain.
bool is_whole(const Box& box, const Shape& extents);

}  // namespace ferrite::detail
