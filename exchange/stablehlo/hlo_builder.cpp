/// Makes single StableHLO operations with their types.
#include "ferrite/exchange/stablehlo/hlo_builder.h"

#include <algorithm>

namespace ferrite::exchange::detail {
namespace {

/// first, first + 1, ..., last - 1 without one of them (-1: with all).
Shape axes_between(int first, int last, int without = -1) {
  Shape s;
  for (int i = first; i < last; ++i)
    if (i != without) s.push_back(i);
  return s;
}

}  // namespace

HloValue HloBuilder::emit(std::string_view op, const HloValues& operands, const Spec& spec, HloAttributes attributes,
                          HloTypes types) {
  const HloValue v = fresh(spec);
  append({.op = std::string(op),
          .operands = operands,
          .results = {v},
          .attributes = std::move(attributes),
          .types = types,
          .blocks = {},
          .origin = origin_});
  return v;
}

HloValue HloBuilder::constant(const Tensor& tensor) {
  return emit("constant", {}, tensor.spec(), {{"", tensor}}, HloTypes::result);
}

HloValue HloBuilder::constant(Scalar value, const Spec& spec) {
  const Tensor one = visit_dtype(spec.dtype, [&](auto zero) {
    using T = decltype(zero);
    return Tensor::from({value.as<T>()}, {});
  });
  return filled(one, spec);
}

HloValue HloBuilder::filled(const Tensor& element, const Spec& spec) {
  const auto made = [&] { return emit("constant", {}, spec, {{"", element}}, HloTypes::result); };
  if (style_.comparable) return made();
  const auto [at, fresh] =
      constants_.try_emplace((spec.shape.numel() ? hlo_elements(element) : "dense<>") + " : " + hlo_type(spec));
  if (fresh) at->second = {made(), element};
  return at->second.value;
}

HloValue HloBuilder::iota(const Spec& spec, int axis) {
  return emit("iota", {}, spec, {{"dim", std::to_string(axis)}}, HloTypes::result);
}

HloValue HloBuilder::elementwise(std::string_view op, std::initializer_list<HloValue> operands) {
  return elementwise(op, HloValues(operands));
}

HloValue HloBuilder::elementwise(std::string_view op, const HloValues& operands) {
  return emit(op, operands, operands[0].spec, {}, HloTypes::result);
}

HloValue HloBuilder::compare(std::string_view direction, const HloValue& a, const HloValue& b) {
  const DtypeKind of = kind_of(a.dtype());
  const char* kind = of == DtypeKind::floating ? "FLOAT" : of == DtypeKind::integer ? "SIGNED" : "UNSIGNED";
  return emit("compare", {a, b}, {a.shape(), Dtype::boolean}, {{"direction", std::string(direction)}, {"kind", kind}});
}

HloValue HloBuilder::select(const HloValue& condition, const HloValue& a, const HloValue& b) {
  return emit("select", {condition, a, b}, a.spec, {}, HloTypes::condition);
}

HloValue HloBuilder::convert(const HloValue& x, Dtype dtype) {
  return x.dtype() == dtype ? x : emit("convert", {x}, {x.shape(), dtype});
}

HloValue HloBuilder::broadcast(const HloValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Shape dims = axes_between(shape.rank() - x.shape().rank(), shape.rank());
  return emit("broadcast_in_dim", {x}, {shape, x.dtype()}, {{"dims", dims}});
}

HloValue HloBuilder::reshape(const HloValue& x, const Shape& shape) {
  return x.shape() == shape ? x : emit("reshape", {x}, {shape, x.dtype()});
}

HloValue HloBuilder::transpose(const HloValue& x, const Shape& order) {
  Spec out{{}, x.dtype()};
  for (const std::int64_t axis : order) out.shape.push_back(x.shape()[static_cast<int>(axis)]);
  return emit("transpose", {x}, out, {{"dims", order}});
}

HloValue HloBuilder::reverse(const HloValue& x, int axis) {
  return emit("reverse", {x}, x.spec, {{"dims", Shape{axis}}}, HloTypes::result);
}

HloValue HloBuilder::slice(const HloValue& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step) {
  if (begin == 0 && step == 1 && count == x.shape()[axis]) return x;
  Spec out = x.spec;
  out.shape[axis] = count;
  Shape start = Shape::filled(x.shape().rank(), 0), limit = x.shape(), stride = Shape::filled(x.shape().rank(), 1);
  start[axis] = begin;
  limit[axis] = count ? begin + (count - 1) * step + 1 : begin;
  stride[axis] = step;
  return emit("slice", {x}, out, {{"start", start}, {"limit", limit}, {"stride", stride}});
}

HloValue HloBuilder::concatenate(const HloValues& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Spec out = parts[0].spec;
  out.shape[axis] = 0;
  for (const HloValue& p : parts) out.shape[axis] += p.shape()[axis];
  return emit("concatenate", parts, out, {{"dim", std::to_string(axis)}});
}

HloValue HloBuilder::pad(const HloValue& x, const HloValue& value, const Shape& before, const Shape& after) {
  Spec out = x.spec;
  for (int i = 0; i < out.shape.rank(); ++i) out.shape[i] += before[i] + after[i];
  return emit("pad", {x, value}, out,
              {{"low", before}, {"high", after}, {"interior", Shape::filled(out.shape.rank(), 0)}});
}

HloValue HloBuilder::reduce(std::string_view op, const HloValue& x, const HloValue& init, const Shape& axes) {
  Spec out{{}, x.dtype()};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.shape.push_back(x.shape()[i]);
  return emit("reduce", {x, init}, out, {{"applies", std::string(op)}, {"dimensions", axes}});
}

HloValue HloBuilder::dot(const HloValue& a, const HloValue& b, int a_axis, int b_axis, int batch, const Shape& shape) {
  const auto pair = [](const Shape& left, const Shape& right) { return hlo_list(left) + " x " + hlo_list(right); };
  const Shape shared = axes_between(0, batch);
  HloAttributes attributes{{"contracting_dims", pair({a_axis}, {b_axis})}, {"precision", "[HIGHEST, HIGHEST]"}};
  if (batch) attributes.insert(attributes.begin(), {"batching_dims", pair(shared, shared)});
  return emit("dot_general", {a, b}, {shape, a.dtype()}, std::move(attributes));
}

HloValue HloBuilder::gather_slices(const HloValue& x, const HloValue& index, int axis) {
  const int rank = x.shape().rank();
  const std::string at = hlo_list({axis});
  Shape sizes = x.shape();
  Spec out = x.spec;
  sizes[axis] = 1;
  out.shape[axis] = index.shape()[0];
  return emit("gather", {x, index}, out,
              {{"dimension_numbers", "offset_dims = " + hlo_list(axes_between(0, rank, axis)) +
                                         ", collapsed_slice_dims = " + at + ", start_index_map = " + at +
                                         ", index_vector_dim = 1"},
               {"slice_sizes", sizes},
               {"axis", Shape{axis}}});
}

HloValue HloBuilder::gather_elements(const HloValue& x, const HloValue& coordinates) {
  const int rank = x.shape().rank();
  const std::string all = hlo_list(axes_between(0, rank));
  Spec out{coordinates.shape(), x.dtype()};
  out.shape.erase(out.shape.rank() - 1);
  return emit("gather", {x, coordinates}, out,
              {{"dimension_numbers", "collapsed_slice_dims = " + all + ", start_index_map = " + all +
                                         ", index_vector_dim = " + std::to_string(out.shape.rank())},
               {"slice_sizes", Shape::filled(rank, 1)}});
}

HloValue HloBuilder::scatter_add(const HloValue& onto, const HloValue& coordinates, const HloValue& updates) {
  // The reference interpreter adds in place, whoever else reads the operand: a constant gets a copy for that.
  HloValue x = onto;
  for (const auto& [text, constant] : constants_)
    if (constant.value.id == onto.id) x = emit("constant", {}, onto.spec, {{"", constant.element}}, HloTypes::result);
  const std::string all = hlo_list(axes_between(0, x.shape().rank()));
  return emit("scatter", {x, coordinates, updates}, x.spec,
              {{"dimension_numbers", "inserted_window_dims = " + all + ", scatter_dims_to_operand_dims = " + all +
                                         ", index_vector_dim = " + std::to_string(coordinates.shape().rank() - 1)},
               {"unique_indices", "false"},
               {"applies", "add"}});
}

HloValue HloBuilder::element(const HloValue& x, const HloValue& index) {
  const HloValue zero = constant_like(0, index);
  HloValues operands = {x, index};
  operands.resize(static_cast<std::size_t>(x.shape().rank()) + 1, zero);
  Spec one = x.spec;
  one.shape[0] = 1;
  const HloValue part = emit("dynamic_slice", operands, one, {{"sizes", one.shape}});
  one.shape.erase(0);
  return reshape(part, one.shape);
}

HloValue HloBuilder::with_element(const HloValue& x, const HloValue& index, const HloValue& element) {
  const HloValue zero = constant_like(0, index);
  Shape one = x.shape();
  one[0] = 1;
  HloValues operands = {x, reshape(element, one), index};
  operands.resize(static_cast<std::size_t>(x.shape().rank()) + 2, zero);
  return emit("dynamic_update_slice", operands, x.spec);
}

void HloBuilder::within(HloBlock& block, const std::function<HloValues()>& write) {
  const auto outside = constants_;
  HloBlock* const outer = std::exchange(block_, &block);
  block.results = write();
  block_ = outer;
  constants_ = outside;
}

HloValues HloBuilder::loop(std::int64_t steps, const HloValues& first, const LoopBody& body) {
  HloInstruction loop{.op = "while", .operands = {constant(0, {{}, Dtype::i64})}, .blocks = {}};
  loop.operands.insert(loop.operands.end(), first.begin(), first.end());
  loop.blocks.resize(2);
  for (const HloValue& v : loop.operands) {
    loop.results.push_back(fresh(v.spec));
    for (HloBlock& b : loop.blocks) b.arguments.push_back(fresh(v.spec));
  }
  loop.origin = origin_;
  HloBlock &condition = loop.blocks[0], &round = loop.blocks[1];
  within(condition, [&]() -> HloValues {
    const HloValue& step = condition.arguments[0];
    return {compare("LT", step, constant_like(steps, step))};
  });
  within(round, [&] {
    const HloValue& step = round.arguments[0];
    HloValues next = body(step, {round.arguments.begin() + 1, round.arguments.end()});
    next.insert(next.begin(), add(step, constant_like(1, step)));
    return next;
  });
  const HloValues last(loop.results.begin() + 1, loop.results.end());
  append(std::move(loop));
  return last;
}

}  // namespace ferrite::exchange::detail
