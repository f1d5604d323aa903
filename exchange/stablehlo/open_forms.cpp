/// Writes the dynamic forms of instructions, and replacements for those that a compiler lacks.
#include "ferrite/exchange/stablehlo/open_forms.h"

#include <algorithm>
#include <limits>

#include "ferrite/exchange/stablehlo/hlo_text.h"

namespace ferrite::exchange::detail {
namespace {

bool is_one(const SymbolicNumber& n) { return n == SymbolicNumber(1); }

ExtentNumbers without_ones(const ExtentNumbers& shape) {
  ExtentNumbers s;
  std::ranges::copy_if(shape, std::back_inserter(s), [](const SymbolicNumber& n) { return !is_one(n); });
  return s;
}

Shape first_axes(int count) {
  Shape s;
  for (int i = 0; i < count; ++i) s.push_back(i);
  return s;
}

}  // namespace

Shape open_shape(const ExtentNumbers& shape) {
  Shape s;
  for (const SymbolicNumber& n : shape) s.push_back(n.constant().value_or(kOpenExtent));
  return s;
}

ExtentNumbers constants(const Shape& list) {
  ExtentNumbers all;
  for (const std::int64_t n : list) all.emplace_back(n);
  return all;
}

Value OpenForms::emit(std::string_view op, const Values& operands, Dtype dtype, const ExtentNumbers& shape,
                      Attributes attributes) {
  return b_.emit_one(op, operands, {open_shape(shape), dtype}, std::move(attributes));
}

Value OpenForms::filled(const Value& scalar, const ExtentNumbers& shape) {
  const auto [at, fresh] = filled_.try_emplace({scalar.id, shape});
  if (fresh) at->second = broadcast({scalar, {}}, {}, shape);
  return at->second;
}

void OpenForms::within(Block& block, const std::function<Values()>& write) {
  const auto outside = filled_;
  b_.within(block, write);
  filled_ = outside;
}

Value OpenForms::iota(int axis, Dtype dtype, const ExtentNumbers& shape) {
  return emit("dynamic_iota", {arithmetic_.list(shape)}, dtype, shape, {{"dim", std::to_string(axis)}});
}

/// Writes a broadcast that states which axes are repeated, as an open extent may turn out to be 1. A broadcast of a
/// broadcast is written as one: IREE drops that statement where it joins them.
Value OpenForms::broadcast(const OpenValue& x, const Shape& dims, const ExtentNumbers& shape) {
  if (const auto at = broadcasts_.find(x.value.id); at != broadcasts_.end()) {
    Shape composed;
    for (const std::int64_t axis : at->second.dims) composed.push_back(dims[static_cast<int>(axis)]);
    return broadcast(OpenValue(at->second.x), composed, shape);
  }
  if (x.shape == shape) return x.value;
  Attributes attributes{{"dims", dims}};
  if (are_constant(shape)) return emit("broadcast_in_dim", {x.value}, x.dtype(), shape, attributes);
  Shape expanding, others;
  for (int k = 0; k < dims.rank(); ++k) {
    const auto axis = static_cast<std::size_t>(dims[k]);
    const bool repeated = is_one(x.shape[static_cast<std::size_t>(k)]) && !is_one(shape[axis]);
    (repeated ? expanding : others).push_back(k);
  }
  if (expanding.rank()) attributes.push_back({"known_expanding_dimensions", expanding});
  if (others.rank()) attributes.push_back({"known_nonexpanding_dimensions", others});
  const Value y =
      emit("dynamic_broadcast_in_dim", {x.value, arithmetic_.list(shape)}, x.dtype(), shape, std::move(attributes));
  broadcasts_[y.id] = {x, dims};
  return y;
}

/// Writes a reshape. Without dynamic_reshape, axes of extent 1 are removed and inserted; where more changes, every
/// element is gathered by its place in row-major order.
Value OpenForms::reshape(const OpenValue& x, const ExtentNumbers& shape) {
  if (!gathers()) return emit("dynamic_reshape", {x.value, arithmetic_.list(shape)}, x.dtype(), shape);
  if (without_ones(x.shape) == without_ones(shape)) {
    Shape dims;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (!is_one(shape[i])) dims.push_back(static_cast<std::int64_t>(i));
    return broadcast(squeezed(x), dims, shape);
  }
  const auto scaled = [&](const Value& v, const Value& scalar, const char* op) {
    return b_.emit_one(op, {v, filled(scalar, shape)}, v.spec, {}, TypeNotation::result);
  };
  Value place, stride;
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    Value along = iota(i, Dtype::i64, shape);
    if (stride.exists()) along = scaled(along, stride, "multiply");
    place = place.exists() ? b_.add(place, along) : along;
    if (i == 0) break;
    const Value extent = arithmetic_.number(shape[static_cast<std::size_t>(i)]);
    stride = stride.exists() ? arithmetic_.product(stride, extent) : extent;
  }
  Values coordinates(x.shape.size());
  for (std::size_t i = x.shape.size(); i-- > 0;) {
    const Value extent = arithmetic_.number(x.shape[i]);
    coordinates[i] = i ? scaled(place, extent, "remainder") : place;
    if (i) place = scaled(place, extent, "divide");
  }
  return gather(x.value, coordinates, shape);
}

/// Removes axes of extent 1 by a maximum over one element, which every type has.
OpenValue OpenForms::squeezed(const OpenValue& x) {
  Shape axes;
  for (std::size_t i = 0; i < x.shape.size(); ++i)
    if (is_one(x.shape[i])) axes.push_back(static_cast<std::int64_t>(i));
  const ExtentNumbers rest = without_ones(x.shape);
  if (axes.rank() == 0) return x;
  const Dtype dtype = x.dtype();
  const Scalar least = visit_dtype(dtype, [](auto zero) -> Scalar {
    using Limits = std::numeric_limits<decltype(zero)>;
    if constexpr (std::is_same_v<decltype(zero), bool>) return false;
    if constexpr (std::is_integral_v<decltype(zero)>) return static_cast<std::int64_t>(Limits::min());
    return -std::numeric_limits<double>::infinity();
  });
  const Value init = b_.scalar(least, dtype);
  return {
      b_.emit_one("reduce", {x.value, init}, {open_shape(rest), dtype}, {{"applies", "maximum"}, {"dimensions", axes}}),
      rest};
}

/// Gathers elements at coordinates that have the shape of the result.
Value OpenForms::gather(const Value& x, const Values& coordinates, const ExtentNumbers& shape) {
  ExtentNumbers column = shape;
  column.emplace_back(1);
  Values columns;
  for (const Value& c : coordinates)
    columns.push_back(broadcast({c, shape}, first_axes(static_cast<int>(shape.size())), column));
  Value all = columns[0];
  if (columns.size() > 1) {
    column.back() = SymbolicNumber(static_cast<std::int64_t>(columns.size()));
    all = emit("concatenate", columns, Dtype::i64, column, {{"dim", std::to_string(shape.size())}});
  }
  return b_.gather_elements(x, all);
}

Value OpenForms::slice(const OpenValue& x, const ExtentNumbers& start, const ExtentNumbers& limit, const Shape& stride,
                       const ExtentNumbers& shape) {
  return emit("real_dynamic_slice",
              {x.value, arithmetic_.list(start), arithmetic_.list(limit), arithmetic_.list(constants(stride))},
              x.dtype(), shape);
}

/// Writes a pad. Amounts that depend on extents become blocks before and after x: few compilers have dynamic_pad.
Value OpenForms::pad(const OpenValue& x, const Value& value, const ExtentNumbers& low, const ExtentNumbers& high,
                     const ExtentNumbers& shape) {
  if (x.shape == shape) return x.value;
  if (are_constant(low) && are_constant(high)) {
    const Shape none = Shape::filled(static_cast<int>(shape.size()), 0);
    return emit("pad", {x.value, value}, x.dtype(), shape,
                {{"low", open_shape(low)}, {"high", open_shape(high)}, {"interior", none}});
  }
  Value y = x.value;
  ExtentNumbers now = x.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    Values parts;
    const auto add = [&](const SymbolicNumber& amount) {
      if (amount == SymbolicNumber(0)) return;
      now[i] = amount;
      parts.push_back(filled(value, now));
    };
    add(low[i]);
    parts.push_back(y);
    add(high[i]);
    now[i] = shape[i];
    if (parts.size() > 1) y = emit("concatenate", parts, x.dtype(), now, {{"dim", std::to_string(i)}});
  }
  return y;
}

Value OpenForms::dynamic_slice(const OpenValue& x, const Values& indices, const ExtentNumbers& sizes) {
  Values parts;
  for (const Value& index : indices) parts.push_back(b_.reshape(index, {1}));
  const Value start = b_.concatenate(parts, 0);
  const Value limit = b_.add(start, arithmetic_.list(sizes));
  const Value stride = arithmetic_.list(constants(Shape::filled(static_cast<int>(sizes.size()), 1)));
  return emit("real_dynamic_slice", {x.value, start, limit, stride}, x.dtype(), sizes);
}

/// Writes an update along the first axis; without dynamic_update_slice, as a scatter of one update.
Value OpenForms::dynamic_update_slice(const OpenValue& x, const OpenValue& part, const Values& indices) {
  Values operands{x.value, part.value};
  operands.insert(operands.end(), indices.begin(), indices.end());
  if (!gathers()) return emit("dynamic_update_slice", operands, x.dtype(), x.shape);
  Shape window;
  for (int i = 1; i < static_cast<int>(x.shape.size()); ++i) window.push_back(i);
  return emit("scatter", {x.value, b_.reshape(indices[0], {1, 1}), part.value}, x.dtype(), x.shape,
              {{"dimension_numbers", (window.rank() ? "update_window_dims = " + hlo_list(window) + ", " : "") +
                                         "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                                         "index_vector_dim = 1"},
               {"unique_indices", "true"},
               {"applies", "replace"}});
}

/// Writes a product of one row, one column or one term as products of elements and their sum: IREE 3.13 reshapes such
/// products itself.
Value OpenForms::sum_of_products(const OpenValue& a, const OpenValue& b, const ExtentNumbers& shape) {
  ExtentNumbers all = shape, turned = b.shape;
  all.push_back(a.shape.back());
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  const int rank = static_cast<int>(all.size()), b_rank = static_cast<int>(turned.size());
  Shape order = first_axes(b_rank), a_dims = first_axes(rank - 2), b_dims = first_axes(b_rank - 2);
  std::swap(order[b_rank - 1], order[b_rank - 2]);
  a_dims.push_back(rank - 1);
  b_dims.push_back(rank - 2);
  b_dims.push_back(rank - 1);
  const Value columns = emit("transpose", {b.value}, b.dtype(), turned, {{"dims", order}});
  const Value left = broadcast(a, a_dims, all);
  const Value product = b_.multiply(left, broadcast({columns, turned}, b_dims, all));
  return emit("reduce", {product, b_.scalar(0, a.dtype())}, a.dtype(), shape,
              {{"applies", "add"}, {"dimensions", Shape{rank - 1}}});
}

Value OpenForms::dot(const Instruction& dot, const OpenValue& a, const OpenValue& b, const Flat& flat,
                     const ExtentNumbers& shape) {
  const bool thin = is_one(a.shape.back()) || is_one(b.shape.back()) || is_one(shape[shape.size() - 2]);
  if (!gathers() || (!thin && flat.a == a.shape && flat.b == b.shape))
    return emit("dot_general", {a.value, b.value}, a.dtype(), shape, dot.attributes);
  if (thin) return sum_of_products(a, b, shape);
  const Value left = flat.a == a.shape ? a.value : reshape(a, flat.a);
  const Value right = flat.b == b.shape ? b.value : reshape(b, flat.b);
  const int lead = static_cast<int>(flat.result.size()) - 2;
  return reshape({b_.dot(left, right, lead + 1, lead, lead, open_shape(flat.result)), flat.result}, shape);
}

Value OpenForms::gather_slices(const OpenValue& x, const Instruction& gather, const OpenValue& index, int axis,
                               const ExtentNumbers& shape) {
  if (!gathers()) {
    ExtentNumbers sizes = x.shape;
    sizes[static_cast<std::size_t>(axis)] = SymbolicNumber(1);
    return emit("dynamic_gather", {x.value, index.value, arithmetic_.list(sizes)}, x.dtype(), shape,
                {{"dimension_numbers", gather.get<std::string>("dimension_numbers")}});
  }
  Values coordinates;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i)
    coordinates.push_back(i == axis ? broadcast(index, {axis}, shape) : iota(i, Dtype::i64, shape));
  return this->gather(x.value, coordinates, shape);
}

}  // namespace ferrite::exchange::detail
