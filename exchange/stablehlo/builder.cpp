/// Writes single StableHLO operations with their types.
#include "ferrite/exchange/stablehlo/builder.h"

#include <algorithm>

namespace ferrite::exchange::detail {
namespace {

using std::to_string;

std::string names(const HloValues& values) {
  std::string s;
  for (const HloValue& v : values) s += (s.empty() ? "" : ", ") + v.name;
  return s;
}

std::string types(const HloValues& values) {
  std::string s;
  for (const HloValue& v : values) s += (s.empty() ? "" : ", ") + hlo_type(v.spec);
  return s;
}

/// "(tensor<...>, ...) -> tensor<...>".
std::string function_type(const HloValues& in, const Spec& out) { return "(" + types(in) + ") -> " + hlo_type(out); }

/// first, first + 1, ..., last - 1 without one of them (-1: with all).
Shape axes_between(int first, int last, int without = -1) {
  Shape s;
  for (int i = first; i < last; ++i)
    if (i != without) s.push_back(i);
  return s;
}

}  // namespace

std::string_view hlo_dtype(Dtype dtype) { return dtype == Dtype::boolean ? "i1" : name_of(dtype); }

std::string hlo_type(const Spec& spec) {
  std::string s = "tensor<";
  for (const std::int64_t extent : spec.shape) s += to_string(extent) + "x";
  return s.append(hlo_dtype(spec.dtype)) + ">";
}

std::string hlo_list(const Shape& list) {
  std::string s = "[";
  for (int i = 0; i < list.rank(); ++i) s += (i ? ", " : "") + to_string(list[i]);
  return s + "]";
}

HloValue HloBuilder::emit(const std::string& right_hand_side, const Spec& spec) {
  HloValue v{"%" + to_string(next_++), spec};
  text_ += indent_ + v.name + " = " + right_hand_side + location() + "\n";
  return v;
}

std::string HloBuilder::location() const {
  if (!locates_ || layer_.empty()) return {};
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = " loc(\"";
  for (const char c : layer_.path()) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
      text += c;
      continue;
    }
    const auto code = static_cast<unsigned char>(c);
    text += '\\';
    text += kDigits[code >> 4U];
    text += kDigits[code & 15U];
  }
  return text + "\")";
}

HloValue HloBuilder::constant(const Tensor& tensor) {
  return emit("stablehlo.constant " + hlo_elements(tensor) + " : " + hlo_type(tensor.spec()), tensor.spec());
}

HloValue HloBuilder::constant(Scalar value, const Spec& spec) {
  const Tensor one = visit_dtype(spec.dtype, [&](auto zero) {
    using T = decltype(zero);
    return Tensor::from({value.as<T>()}, {});
  });
  const std::string text = (spec.shape.numel() ? hlo_elements(one) : "dense<>") + " : " + hlo_type(spec);
  const auto [at, fresh] = constants_.try_emplace(text);
  if (fresh) at->second = emit("stablehlo.constant " + text, spec);
  return at->second;
}

HloValue HloBuilder::iota(const Spec& spec, int axis) {
  return emit("stablehlo.iota dim = " + to_string(axis) + " : " + hlo_type(spec), spec);
}

HloValue HloBuilder::elementwise(std::string_view op, std::initializer_list<HloValue> operands) {
  return elementwise(op, HloValues(operands));
}

HloValue HloBuilder::elementwise(std::string_view op, const HloValues& operands) {
  const Spec& spec = operands[0].spec;
  return emit("stablehlo." + std::string(op) + " " + names(operands) + " : " + hlo_type(spec), spec);
}

HloValue HloBuilder::compare(std::string_view direction, const HloValue& a, const HloValue& b) {
  const Spec out{a.shape(), Dtype::boolean};
  const DtypeKind of = kind_of(a.dtype());
  const char* kind = of == DtypeKind::floating ? "FLOAT" : of == DtypeKind::integer ? "SIGNED" : "UNSIGNED";
  return emit("stablehlo.compare " + std::string(direction) + ", " + a.name + ", " + b.name + ", " + kind + " : " +
                  function_type({a, b}, out),
              out);
}

HloValue HloBuilder::select(const HloValue& condition, const HloValue& a, const HloValue& b) {
  return emit(
      "stablehlo.select " + names({condition, a, b}) + " : " + hlo_type(condition.spec) + ", " + hlo_type(a.spec),
      a.spec);
}

HloValue HloBuilder::convert(const HloValue& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  const Spec out{x.shape(), dtype};
  return emit("stablehlo.convert " + x.name + " : " + function_type({x}, out), out);
}

HloValue HloBuilder::broadcast(const HloValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Spec out{shape, x.dtype()};
  const Shape dims = axes_between(shape.rank() - x.shape().rank(), shape.rank());
  return emit("stablehlo.broadcast_in_dim " + x.name + ", dims = " + hlo_list(dims) + " : " + function_type({x}, out),
              out);
}

HloValue HloBuilder::reshape(const HloValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Spec out{shape, x.dtype()};
  return emit("stablehlo.reshape " + x.name + " : " + function_type({x}, out), out);
}

HloValue HloBuilder::transpose(const HloValue& x, const Shape& order) {
  Spec out{{}, x.dtype()};
  for (const std::int64_t axis : order) out.shape.push_back(x.shape()[static_cast<int>(axis)]);
  return emit("stablehlo.transpose " + x.name + ", dims = " + hlo_list(order) + " : " + function_type({x}, out), out);
}

HloValue HloBuilder::reverse(const HloValue& x, int axis) {
  return emit("stablehlo.reverse " + x.name + ", dims = [" + to_string(axis) + "] : " + hlo_type(x.spec), x.spec);
}

HloValue HloBuilder::slice(const HloValue& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step) {
  if (begin == 0 && step == 1 && count == x.shape()[axis]) return x;
  Spec out = x.spec;
  out.shape[axis] = count;
  std::string ranges;
  for (int i = 0; i < x.shape().rank(); ++i) {
    ranges += i ? ", " : "";
    if (i != axis) {
      ranges += "0:" + to_string(x.shape()[i]);
      continue;
    }
    ranges += to_string(begin) + ":" + to_string(count ? begin + (count - 1) * step + 1 : begin);
    if (step != 1) ranges += ":" + to_string(step);
  }
  return emit("stablehlo.slice " + x.name + " [" + ranges + "] : " + function_type({x}, out), out);
}

HloValue HloBuilder::concatenate(const HloValues& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Spec out = parts[0].spec;
  out.shape[axis] = 0;
  for (const HloValue& p : parts) out.shape[axis] += p.shape()[axis];
  return emit(
      "stablehlo.concatenate " + names(parts) + ", dim = " + to_string(axis) + " : " + function_type(parts, out), out);
}

HloValue HloBuilder::pad(const HloValue& x, const HloValue& value, const Shape& before, const Shape& after) {
  Spec out = x.spec;
  for (int i = 0; i < out.shape.rank(); ++i) out.shape[i] += before[i] + after[i];
  return emit("stablehlo.pad " + x.name + ", " + value.name + ", low = " + hlo_list(before) +
                  ", high = " + hlo_list(after) + ", interior = " + hlo_list(Shape::filled(out.shape.rank(), 0)) +
                  " : " + function_type({x, value}, out),
              out);
}

HloValue HloBuilder::reduce(std::string_view op, const HloValue& x, const HloValue& init, const Shape& axes) {
  Spec out{{}, x.dtype()};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.shape.push_back(x.shape()[i]);
  return emit("stablehlo.reduce(" + x.name + " init: " + init.name + ") applies stablehlo." + std::string(op) +
                  " across dimensions = " + hlo_list(axes) + " : " + function_type({x, init}, out),
              out);
}

HloValue HloBuilder::dot(const HloValue& a, const HloValue& b, int a_axis, int b_axis, int batch, const Shape& shape) {
  const Spec out{shape, a.dtype()};
  const std::string shared = hlo_list(axes_between(0, batch));
  return emit("stablehlo.dot_general " + names({a, b}) + ", " +
                  (batch ? "batching_dims = " + shared + " x " + shared + ", " : "") + "contracting_dims = [" +
                  to_string(a_axis) + "] x [" + to_string(b_axis) +
                  "], precision = [HIGHEST, HIGHEST] : " + function_type({a, b}, out),
              out);
}

HloValue HloBuilder::gather_slices(const HloValue& x, const HloValue& index, int axis) {
  const int rank = x.shape().rank();
  const std::string at = "[" + to_string(axis) + "]";
  Shape sizes = x.shape();
  Spec out = x.spec;
  sizes[axis] = 1;
  out.shape[axis] = index.shape()[0];
  std::string extents;
  for (int i = 0; i < rank; ++i) extents += (i ? ", " : " ") + to_string(sizes[i]);
  return emit("\"stablehlo.gather\"(" + names({x, index}) +
                  ") <{dimension_numbers = #stablehlo.gather<offset_dims = " + hlo_list(axes_between(0, rank, axis)) +
                  ", collapsed_slice_dims = " + at + ", start_index_map = " + at +
                  ", index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64:" + extents +
                  ">}> : " + function_type({x, index}, out),
              out);
}

HloValue HloBuilder::gather_elements(const HloValue& x, const HloValue& coordinates) {
  const int rank = x.shape().rank();
  const std::string all = hlo_list(axes_between(0, rank));
  Spec out{coordinates.shape(), x.dtype()};
  out.shape.erase(out.shape.rank() - 1);
  std::string ones;
  for (int i = 0; i < rank; ++i) ones += i ? ", 1" : " 1";
  return emit("\"stablehlo.gather\"(" + names({x, coordinates}) +
                  ") <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = " + all +
                  ", start_index_map = " + all + ", index_vector_dim = " + to_string(out.shape.rank()) +
                  ">, indices_are_sorted = false, slice_sizes = array<i64:" + ones +
                  ">}> : " + function_type({x, coordinates}, out),
              out);
}

HloValue HloBuilder::scatter_add(const HloValue& onto, const HloValue& coordinates, const HloValue& updates) {
  // The reference interpreter adds in place, whoever else reads the operand: a constant gets a copy for that.
  HloValue x = onto;
  for (const auto& [text, constant] : constants_)
    if (constant.name == onto.name) x = emit("stablehlo.constant " + text, onto.spec);
  const std::string all = hlo_list(axes_between(0, x.shape().rank()));
  const std::string one = hlo_type({{}, x.dtype()});
  return emit("\"stablehlo.scatter\"(" + names({x, coordinates, updates}) +
                  ") <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<" +
                  "inserted_window_dims = " + all + ", scatter_dims_to_operand_dims = " + all +
                  ", index_vector_dim = " + to_string(coordinates.shape().rank() - 1) +
                  ">, unique_indices = false}> ({\n" + indent_ + "^bb0(%old: " + one + ", %new: " + one + "):\n" +
                  indent_ + "  %sum = stablehlo.add %old, %new : " + one + "\n" + indent_ +
                  "  stablehlo.return %sum : " + one + "\n" + indent_ +
                  "}) : " + function_type({x, coordinates, updates}, x.spec),
              x.spec);
}

HloValue HloBuilder::element(const HloValue& x, const HloValue& index) {
  const HloValue zero = constant_like(0, index);
  HloValues operands = {x, index};
  operands.resize(static_cast<std::size_t>(x.shape().rank()) + 1, zero);
  Spec one = x.spec;
  one.shape[0] = 1;
  const HloValue part = emit("stablehlo.dynamic_slice " + names(operands) + ", sizes = " + hlo_list(one.shape) + " : " +
                                 function_type(operands, one),
                             one);
  one.shape.erase(0);
  return reshape(part, one.shape);
}

HloValue HloBuilder::with_element(const HloValue& x, const HloValue& index, const HloValue& element) {
  const HloValue zero = constant_like(0, index);
  Shape one = x.shape();
  one[0] = 1;
  HloValues operands = {x, reshape(element, one), index};
  operands.resize(static_cast<std::size_t>(x.shape().rank()) + 2, zero);
  return emit("stablehlo.dynamic_update_slice " + names(operands) + " : " + function_type(operands, x.spec), x.spec);
}

void HloBuilder::region(const std::function<HloValues()>& write) {
  const auto outside = constants_;
  indent_ += "  ";
  const HloValues results = write();
  text_ += indent_ + "stablehlo.return " + names(results) + " : " + types(results) + "\n";
  indent_.resize(indent_.size() - 2);
  constants_ = outside;
}

HloValues HloBuilder::loop(std::int64_t steps, const HloValues& first, const LoopBody& body) {
  const HloValue zero = constant(0, {{}, Dtype::i64});
  const std::string number = to_string(next_++);
  const HloValue step{"%step" + number, zero.spec};
  HloValues now, last, all = {zero};
  std::string bound = step.name + " = " + zero.name;
  for (const HloValue& v : first) {
    const std::string place = to_string(now.size());
    now.push_back({"%now" + number + "_" + place, v.spec});
    last.push_back({"%" + number + "#" + to_string(now.size()), v.spec});
    all.push_back(v);
    bound += ", " + now.back().name + " = " + v.name;
  }
  text_ += indent_ + "%" + number + ":" + to_string(all.size()) + " = stablehlo.while(" + bound + ") : " + types(all) +
           "\n" + indent_ + "cond {\n";
  region([&]() -> HloValues { return {compare("LT", step, constant_like(steps, step))}; });
  text_ += indent_ + "} do {\n";
  region([&] {
    HloValues next = body(step, now);
    next.insert(next.begin(), add(step, constant_like(1, step)));
    return next;
  });
  text_ += indent_ + "}" + location() + "\n";
  return last;
}

}  // namespace ferrite::exchange::detail
