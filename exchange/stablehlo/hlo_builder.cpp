/// Makes single StableHLO operations with their types.
#include "ferrite/exchange/stablehlo/hlo_builder.h"

#include <algorithm>

#include "ferrite/exchange/stablehlo/hlo_text.h"

namespace ferrite::exchange::detail {
namespace {

/// Returns first, first + 1, ..., last - 1 without `without` (-1: with all).
Shape axes_between(int first, int last, int without = -1) {
  Shape s;
  for (int i = first; i < last; ++i)
    if (i != without) s.push_back(i);
  return s;
}

/// Converts an integer by keeping its low bits, as in C++: StableHLO leaves undefined what does not fit.
Value wrapped(HloBuilder& b, const Value& x, Dtype to) {
  const Value places = b.like(8 * (size_of(x.dtype()) - size_of(to)), x);
  const Value low = b.elementwise("shift_left", {x, places});
  return b.convert(b.elementwise("shift_right_arithmetic", {low, places}), to);
}

}  // namespace

Value HloBuilder::constant(const Tensor& tensor) {
  return emit_one("constant", {}, tensor.spec(), {{"value", tensor}}, TypeNotation::result);
}

Value HloBuilder::filled(Scalar value, const Spec& spec) {
  const Tensor one = visit_dtype(spec.dtype, [&](auto zero) {
    using T = decltype(zero);
    return Tensor::from({value.as<T>()}, {});
  });
  return filled(one, spec);
}

Value HloBuilder::filled(const Tensor& element, const Spec& spec) {
  const auto made = [&] { return emit_one("constant", {}, spec, {{"value", element}}, TypeNotation::result); };
  if (style_.comparable) return made();
  const auto [at, fresh] =
      constants_.try_emplace((spec.shape.numel() ? hlo_elements(element) : "dense<>") + " : " + hlo_type(spec));
  if (fresh) at->second = {made(), element};
  return at->second.value;
}

Value HloBuilder::iota(const Spec& spec, int axis) {
  return emit_one("iota", {}, spec, {{"dim", std::to_string(axis)}}, TypeNotation::result);
}

Value HloBuilder::elementwise(std::string_view op, const Values& operands) {
  return emit_one(op, operands, operands[0].spec, {}, TypeNotation::result);
}

Value HloBuilder::compare(std::string_view direction, const Value& a, const Value& b) {
  const DtypeKind of = kind_of(a.dtype());
  const char* kind = of == DtypeKind::floating ? "FLOAT" : of == DtypeKind::integer ? "SIGNED" : "UNSIGNED";
  return emit_one("compare", {a, b}, {a.shape(), Dtype::boolean},
                  {{"direction", std::string(direction)}, {"kind", kind}});
}

Value HloBuilder::select(const Value& condition, const Value& a, const Value& b) {
  return emit_one("select", {condition, a, b}, a.spec, {}, TypeNotation::condition);
}

Value HloBuilder::convert(const Value& x, Dtype dtype) {
  return x.dtype() == dtype ? x : emit_one("convert", {x}, {x.shape(), dtype});
}

Value HloBuilder::cast(const Value& x, Dtype to) {
  if (x.dtype() == to) return x;
  if (to == Dtype::boolean) return compare("NE", x, like(0, x));
  const DtypeKind from = kind_of(x.dtype());
  if (kind_of(to) != DtypeKind::integer) return convert(x, to);
  if (from == DtypeKind::integer && size_of(to) < size_of(x.dtype())) return wrapped(*this, x, to);
  if (from != DtypeKind::floating) return convert(x, to);
  return saturated(is_storage_only(x.dtype()) ? convert(x, Dtype::f32) : x, to, to);  // f32 holds the bounds
}

Value HloBuilder::expand(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Shape dims = axes_between(shape.rank() - x.shape().rank(), shape.rank());
  return emit_one("broadcast_in_dim", {x}, {shape, x.dtype()}, {{"dims", dims}});
}

Value HloBuilder::reshape(const Value& x, const Shape& shape) {
  return x.shape() == shape ? x : emit_one("reshape", {x}, {shape, x.dtype()});
}

Value HloBuilder::transpose(const Value& x, const Shape& order) {
  Spec out{{}, x.dtype()};
  for (const std::int64_t axis : order) out.shape.push_back(x.shape()[static_cast<int>(axis)]);
  if (order == axes_between(0, order.rank())) return x;
  return emit_one("transpose", {x}, out, {{"dims", order}});
}

Value HloBuilder::reverse(const Value& x, int axis) {
  return emit_one("reverse", {x}, x.spec, {{"dims", Shape{axis}}}, TypeNotation::result);
}

Value HloBuilder::slice(const Value& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step) {
  if (begin == 0 && step == 1 && count == x.shape()[axis]) return x;
  if (step < 0) {  // a slice forwards, reversed
    const Value forwards = slice(x, axis, begin + (count - 1) * step, count, -step);
    return reverse(forwards, axis);
  }
  Spec out = x.spec;
  out.shape[axis] = count;
  Shape start = Shape::filled(x.shape().rank(), 0), limit = x.shape(), stride = Shape::filled(x.shape().rank(), 1);
  start[axis] = begin;
  limit[axis] = count ? begin + (count - 1) * step + 1 : begin;
  stride[axis] = step;
  return emit_one("slice", {x}, out, {{"start", start}, {"limit", limit}, {"stride", stride}});
}

Value HloBuilder::concatenate(const Values& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Spec out = parts[0].spec;
  out.shape[axis] = 0;
  for (const Value& p : parts) out.shape[axis] += p.shape()[axis];
  return emit_one("concatenate", parts, out, {{"dim", std::to_string(axis)}});
}

Value HloBuilder::unsqueeze(const Value& x, int axis) {
  Shape s = x.shape();
  s.insert(axis, 1);
  return reshape(x, s);
}

Value HloBuilder::picked(const Value& x, int axis, std::int64_t index) {
  Shape s = x.shape();
  s.erase(axis);
  return reshape(slice(x, axis, index, 1), s);
}

Value HloBuilder::extent_of(const Value& x, int axis) {
  return convert(emit_one("get_dimension_size", {x}, {{}, Dtype::i32}, {{"dim", std::to_string(axis)}}), Dtype::i64);
}

Value HloBuilder::pad(const Value& x, const Value& value, const Shape& before, const Shape& after) {
  Spec out = x.spec;
  for (int i = 0; i < out.shape.rank(); ++i) out.shape[i] += before[i] + after[i];
  return emit_one("pad", {x, value}, out,
                  {{"low", before}, {"high", after}, {"interior", Shape::filled(out.shape.rank(), 0)}});
}

Value HloBuilder::reduce(std::string_view op, const Value& x, const Value& init, const Shape& axes) {
  Spec out{{}, x.dtype()};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.shape.push_back(x.shape()[i]);
  return emit_one("reduce", {x, init}, out, {{"applies", std::string(op)}, {"dimensions", axes}});
}

Value HloBuilder::dot(const Value& a, const Value& b, int a_axis, int b_axis, int batch, const Shape& shape) {
  const auto pair = [](const Shape& left, const Shape& right) { return hlo_list(left) + " x " + hlo_list(right); };
  const Shape shared = axes_between(0, batch);
  Attributes attributes{{"contracting_dims", pair({a_axis}, {b_axis})}, {"precision", "[HIGHEST, HIGHEST]"}};
  if (batch) attributes.insert(attributes.begin(), {"batching_dims", pair(shared, shared)});
  return emit_one("dot_general", {a, b}, {shape, a.dtype()}, std::move(attributes));
}

Value HloBuilder::gather_slices(const Value& x, const Value& index, int axis) {
  const int rank = x.shape().rank();
  const std::string at = hlo_list({axis});
  Shape sizes = x.shape();
  Spec out = x.spec;
  sizes[axis] = 1;
  out.shape[axis] = index.shape()[0];
  return emit_one("gather", {x, index}, out,
                  {{"dimension_numbers", "offset_dims = " + hlo_list(axes_between(0, rank, axis)) +
                                             ", collapsed_slice_dims = " + at + ", start_index_map = " + at +
                                             ", index_vector_dim = 1"},
                   {"slice_sizes", sizes},
                   {"axis", Shape{axis}}});
}

Value HloBuilder::gather_elements(const Value& x, const Value& coordinates) {
  const int rank = x.shape().rank();
  const std::string all = hlo_list(axes_between(0, rank));
  Spec out{coordinates.shape(), x.dtype()};
  out.shape.erase(out.shape.rank() - 1);
  return emit_one("gather", {x, coordinates}, out,
                  {{"dimension_numbers", "collapsed_slice_dims = " + all + ", start_index_map = " + all +
                                             ", index_vector_dim = " + std::to_string(out.shape.rank())},
                   {"slice_sizes", Shape::filled(rank, 1)}});
}

Value HloBuilder::scatter(std::string_view applies, const Value& onto, const Value& coordinates, const Value& updates) {
  // The reference interpreter updates in place, even if others read the operand, so a constant is copied first.
  Value x = onto;
  for (const auto& [text, constant] : constants_)
    if (constant.value.id == onto.id)
      x = emit_one("constant", {}, onto.spec, {{"value", constant.element}}, TypeNotation::result);
  const std::string all = hlo_list(axes_between(0, x.shape().rank()));
  return emit_one("scatter", {x, coordinates, updates}, x.spec,
                  {{"dimension_numbers", "inserted_window_dims = " + all + ", scatter_dims_to_operand_dims = " + all +
                                             ", index_vector_dim = " + std::to_string(coordinates.shape().rank() - 1)},
                   {"unique_indices", "false"},
                   {"applies", std::string(applies)}});
}

Value HloBuilder::element(const Value& x, const Value& index) {
  const Value zero = like(0, index);
  Values operands = {x, index};
  operands.resize(static_cast<std::size_t>(x.shape().rank()) + 1, zero);
  Spec one = x.spec;
  one.shape[0] = 1;
  const Value part = emit_one("dynamic_slice", operands, one, {{"sizes", one.shape}});
  one.shape.erase(0);
  return reshape(part, one.shape);
}

Value HloBuilder::with_element(const Value& x, const Value& index, const Value& element) {
  const Value zero = like(0, index);
  Shape one = x.shape();
  one[0] = 1;
  Values operands = {x, reshape(element, one), index};
  operands.resize(static_cast<std::size_t>(x.shape().rank()) + 2, zero);
  return emit_one("dynamic_update_slice", operands, x.spec);
}

void HloBuilder::within(Block& block, const std::function<Values()>& write) {
  const auto outside = constants_;
  ProgramBuilder::within(block, write);
  constants_ = outside;
}

Values HloBuilder::loop(std::int64_t steps, const Values& first, const LoopBody& body) {
  Instruction loop{.op = "while", .operands = {scalar(0, Dtype::i64)}, .blocks = {}};
  loop.operands.insert(loop.operands.end(), first.begin(), first.end());
  loop.blocks.resize(2);
  for (const Value& v : loop.operands) {
    loop.results.push_back(fresh(v.spec));
    for (Block& b : loop.blocks) b.arguments.push_back(fresh(v.spec));
  }
  loop.origin = origin();
  Block &condition = loop.blocks[0], &round = loop.blocks[1];
  within(condition, [&]() -> Values {
    const Value& step = condition.arguments[0];
    return {compare("LT", step, like(steps, step))};
  });
  within(round, [&] {
    const Value& step = round.arguments[0];
    Values next = body(step, {round.arguments.begin() + 1, round.arguments.end()});
    next.insert(next.begin(), add(step, like(1, step)));
    return next;
  });
  const Values last(loop.results.begin() + 1, loop.results.end());
  append(std::move(loop));
  return last;
}

}  // namespace ferrite::exchange::detail
