/// Joining tensors: concat, stack, pad; and rows of different lengths in one tensor.
#include <algorithm>

#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- concat, stack, pad -----------------------------------------------------------------------------------

namespace detail {
namespace {

/// Copies `part` into `out`, its first element at `begin`.
void place(Tensor& out, const Tensor& part, const Shape& begin) {
  const Shape& strides = out.strides();
  std::int64_t at = 0;
  for (int i = 0; i < begin.rank(); ++i) at += begin[i] * strides[i];
  const std::int64_t bytes = size_of(out.dtype());
  copy_strided(Writer::raw(out) + at * bytes, strides, part.raw(), part.strides(), part.shape(), bytes);
}

struct Concat {
  using Attributes = AxisAttrs;
  static constexpr auto name = "concat", onnx = "Concat", stablehlo = "concatenate";
  static constexpr TimeRule time = TimeRule::concatenates;
  static constexpr auto summary = "joins along an axis";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (in.size() == 0) throw_shape(name, "nothing to join");
    Spec s = in[0].spec();
    const int axis = attrs.axis;
    check_axis(name, axis, s.shape.rank());
    for (std::size_t i = 1; i < in.size(); ++i) {
      const Spec t = in[i].spec();
      if (t.dtype != s.dtype) throw_dtype(name, "dtypes differ: " + in[0].spec().str() + " and " + t.str());
      Shape same = t.shape;
      if (same.rank() == s.shape.rank()) same[axis] = s.shape[axis];
      if (same != s.shape)
        throw_shape(name, "shapes differ outside axis " + std::to_string(axis) + ": " + in[0].shape().str() + " and " +
                              t.shape.str());
      s.shape[axis] = checked_add(s.shape[axis], t.shape[axis], name);
    }
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    Shape begin = Shape::filled(out[0].rank(), 0);
    for (const Tensor& x : in) {
      place(out[0], x, begin);
      begin[axis] += x.shape()[axis];
    }
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const std::int64_t axis = attrs.axis;
    Tensors g(v.inputs());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < v.inputs(); ++i) {
      const std::int64_t n = v.in_spec(i).shape[static_cast<int>(axis)];
      if (v.wants(i)) g[i] = slice(v.grad(), axis, at, at + n);
      at += n;
    }
    return g;
  }
};

struct Stack {
  using Attributes = AxisAttrs;
  static constexpr auto name = "stack", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::stacks;
  static constexpr auto summary = "joins along a new axis";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (in.size() == 0) throw_shape(name, "nothing to join");
    Spec s = in[0].spec();
    check_axis(name, attrs.axis, s.shape.rank() + 1);
    for (const Tensor& x : in) {
      if (x.dtype() != s.dtype) throw_dtype(name, "dtypes differ: " + s.str() + " and " + x.spec().str());
      if (x.shape() != s.shape) throw_shape(name, "shapes differ: " + s.shape.str() + " and " + x.shape().str());
    }
    s.shape.insert(attrs.axis, static_cast<std::int64_t>(in.size()));
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    Shape strides = out[0].strides();
    const std::int64_t bytes = size_of(out[0].dtype());
    const std::int64_t step = strides[axis] * bytes;
    strides.erase(axis);
    std::byte* to = Writer::raw(out[0]);
    for (const Tensor& x : in) {
      copy_strided(to, strides, x.raw(), x.strides(), x.shape(), bytes);
      to += step;
    }
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return unbind(v.grad(), attrs.axis); }
};

/// Adds elements of a value around axes; negative amounts crop.
struct Pad {
  using Attributes = PadAttrs;
  static constexpr auto name = "pad", onnx = "Pad", stablehlo = "pad";
  static constexpr TimeRule time = TimeRule::pads;
  static constexpr auto summary =
      "adds before[i] and after[i] elements of a value around axis i; negative amounts crop";

  static Specs infer(Inputs in, const Attributes& attrs) {
    Spec s = in[0].spec();
    const Shape& before = attrs.before;
    const Shape& after = attrs.after;
    if (before.rank() != s.shape.rank() || after.rank() != s.shape.rank())
      throw_shape(name, "before " + before.str() + " and after " + after.str() + " need one amount for each axis of " +
                            s.shape.str());
    for (int i = 0; i < s.shape.rank(); ++i) {
      check_amounts(before[i], after[i]);
      s.shape[i] = checked_add(s.shape[i], checked_add(before[i], after[i], name), name);
    }
    for (const std::int64_t e : s.shape)
      if (e < 0)
        throw_shape(name,
                    "before " + before.str() + " and after " + after.str() + " crop more than " + in[0].shape().str());
    check_literal(name, attrs.value, s.dtype);
    return {s};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    fill(out[0], attrs.value);
    const Tensor& x = in[0];
    Shape shape, to;
    std::int64_t at = 0;
    for (int i = 0; i < x.rank(); ++i) {
      const std::int64_t before = attrs.before[i];
      const std::int64_t after = attrs.after[i];
      const std::int64_t cut = std::min(std::max<std::int64_t>(0, -before), x.shape()[i]);
      shape.push_back(std::max<std::int64_t>(0, x.shape()[i] - cut - std::max<std::int64_t>(0, -after)));
      to.push_back(std::max<std::int64_t>(0, before));
      at += cut * x.strides()[i];
    }
    if (shape.numel() == 0) return;
    place(out[0], x.view(shape, x.strides(), at), to);
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    Shape before = attrs.before;
    Shape after = attrs.after;
    bool crops_only = true;
    for (int i = 0; i < before.rank(); ++i) {
      crops_only &= before[i] >= 0 && after[i] >= 0;
      before[i] = -before[i];
      after[i] = -after[i];
    }
    if (!crops_only) return {pad(v.grad(), before, after)};
    Tensor g = v.grad();  // a padding only: the gradient is a view
    for (int i = 0; i < before.rank(); ++i) g = slice(g, i, -before[i], -before[i] + v.in_spec(0).shape[i]);
    return {g};
  }
  static Tensors jvp(const Jvp& j, const Attributes& attrs) { return {pad(j.tangent(0), attrs.before, attrs.after)}; }

 private:
  /// Checks that amounts can be negated and added to extents.
  static void check_amounts(std::int64_t before, std::int64_t after) {
    for (const std::int64_t n : {before, after})
      if (n < -Shape::kMostElements || n > Shape::kMostElements)
        throw_shape(name,
                    "an amount beyond 2^62: before " + std::to_string(before) + ", after " + std::to_string(after));
  }
  static void fill(Tensor& out, const Scalar& value) {
    visit_computed(out.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::fill_n(Writer::data<T>(out), out.numel(), value.as<T>());
    });
  }
};

void check_some(std::span<const Tensor> parts, std::string_view where) {
  if (parts.empty()) throw_shape(where, "nothing to join");
}

}  // namespace

namespace ops {

constinit const Primitive* const pad = &structured<Pad>;
constinit const Primitive* const concat = &structured<Concat>;
constinit const Primitive* const stack = &structured<Stack>;

}  // namespace ops

Family assembly_family() {
  static constexpr const Primitive* list[] = {&structured<Concat>, &structured<Stack>, &structured<Pad>};
  return list;
}

}  // namespace detail

Tensor concat(std::span<const Tensor> parts, std::int64_t axis) {
  detail::check_some(parts, "concat");
  const int at = axis_of(axis, parts[0].rank(), "concat");
  return detail::call(detail::structured<detail::Concat>, OperandList(parts), detail::AxisAttrs{at});
}
Tensor concat(std::initializer_list<Tensor> parts, std::int64_t axis) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor stack(std::span<const Tensor> parts, std::int64_t axis) {
  detail::check_some(parts, "stack");
  const int at = axis_of(axis, parts[0].rank() + 1, "stack");
  return detail::call(detail::structured<detail::Stack>, OperandList(parts), detail::AxisAttrs{at});
}
Tensor stack(std::initializer_list<Tensor> parts, std::int64_t axis) {
  return stack(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor pad(const Tensor& x, const Shape& before, const Shape& after, Scalar value) {
  return detail::call(detail::structured<detail::Pad>, {{&x}}, detail::PadAttrs{before, after, value});
}

// ---- rows of different lengths ----------------------------------------------------------------------------

namespace detail {
namespace {

struct PaddingAttrs {
  bool batch_first = false;
  static constexpr auto fields = attr_list(attr("batch_first", &PaddingAttrs::batch_first));
};

struct WithoutPadding {
  using Attributes = PaddingAttrs;
  static constexpr auto name = "without_padding", onnx = "";
  static constexpr auto summary =
      "x whose rows repeat their last step beyond their lengths; no gradient into the copies";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &lengths = in[1];
    if (x.numel() == 0) return x;
    const std::int64_t time = a.batch_first ? 1 : 0, rows = 1 - time;
    const std::int64_t B = x.shape()[static_cast<int>(rows)], T = x.shape()[static_cast<int>(time)];
    // A row's extents in a shape that broadcasts to x: [1, B, 1, ...] or [B, 1, 1, ...].
    const auto beside = [&](const Tensor& of_rows) {
      Shape s = Shape::filled(x.rank(), 1);
      s[static_cast<int>(rows)] = B;
      return reshape(of_rows, s);
    };
    const Tensor steps = reshape(arange(T), a.batch_first ? Shape{1, T} : Shape{T, 1});
    Tensor inside = steps < reshape(lengths, a.batch_first ? Shape{B, 1} : Shape{1, B});
    for (int axis = 2; axis < x.rank(); ++axis) inside = unsqueeze(inside, axis);
    // The last step of every row; a row without steps uses that of the longest one.
    Shape one = x.shape();
    one[static_cast<int>(time)] = 1;
    const Tensor at = expand(beside(clamp(lengths - 1, 0, T - 1)), one);
    const Tensor row = where(lengths > 0, arange(B), argmax(lengths, 0, true));
    const Tensor last = index_select(gather(detach(x), time, at), rows, row);
    return where(inside, x, where(amax(lengths) > 0, last, 0));
  }
};

}  // namespace

Family composite_padding_family() {
  static constexpr const Primitive* list[] = {&composite<WithoutPadding>};
  return list;
}

}  // namespace detail

Tensor detail::padding_replaced(const Tensor& x, const Tensor& lengths, bool batch_first) {
  if (!lengths.defined()) return x;
  return composed<WithoutPadding>({{&x, &lengths}}, {batch_first});
}

Tensor without_padding(const Tensor& x, const Tensor& lengths, bool batch_first) {
  if (!lengths.defined()) return x;
  if (x.rank() < 2)
    detail::throw_shape("without_padding", std::string("expects x ") + (batch_first ? "[B, T, ...]" : "[T, B, ...]") +
                                               ", got " + x.shape().str());
  const int time = batch_first ? 1 : 0;
  const Spec wanted{{x.shape()[1 - time]}, Dtype::i64};
  if (lengths.spec() != wanted)
    detail::throw_shape("without_padding", "expects lengths " + wanted.str() + ", got " + lengths.spec().str());
  return detail::padding_replaced(x, checked(lengths, 0, x.shape()[time], "without_padding: a length of"), batch_first);
}

}  // namespace ferrite
