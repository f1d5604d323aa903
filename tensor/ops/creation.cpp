/// Tensors of given values.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {

// ---- full, arange -----------------------------------------------------------------------------------------

namespace detail {
namespace {

struct Full {
  using Attributes = FullAttrs;
  static constexpr auto name = "full", onnx = "ConstantOfShape", stablehlo = "constant";
  static constexpr auto summary = "a tensor of one value";
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs, const Attributes& attrs) {
    check_literal(name, attrs.value, attrs.dtype);
    return {{attrs.shape, attrs.dtype}};
  }
  static void eval(Inputs, std::span<Tensor> out, const Attributes& attrs) {
    visit_dtype(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T value = attrs.value.as<T>();
      const auto n = static_cast<std::size_t>(out[0].numel());
      T* const to = Writer::data<T>(out[0]);
      // The C library fills memory with bytes as fast as the processor can, on any processor.
      constexpr std::array<std::byte, sizeof(T)> kZero{};
      if (std::memcmp(&value, &kZero, sizeof(T)) == 0) {
        if (n > 0) std::memset(to, 0, n * sizeof(T));
      } else {
        std::fill_n(to, n, value);
      }
    });
  }
};

/// begin + i step, computed in f64 (integers exactly).
struct Arange {
  using Attributes = ArangeAttrs;
  static constexpr auto name = "arange", onnx = "Range", stablehlo = "iota";
  static constexpr auto summary = "count values begin + i step";

  static Specs infer(Inputs, const Attributes& attrs) { return {{{attrs.count}, attrs.dtype}}; }
  static void eval(Inputs, std::span<Tensor> out, const Attributes& attrs) {
    const Scalar begin = attrs.begin;
    const Scalar step = attrs.step;
    const std::int64_t n = out[0].numel();
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = Writer::data<T>(out[0]);
      if (begin.is_floating() || step.is_floating()) {
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = static_cast<T>(begin.real() + static_cast<double>(i) * step.real());
      } else {
        // Unsigned: the product may wrap on the way to a sum that fits.
        const auto first = static_cast<std::uint64_t>(begin.integer()),
                   each = static_cast<std::uint64_t>(step.integer());
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = static_cast<T>(static_cast<std::int64_t>(first + static_cast<std::uint64_t>(i) * each));
      }
    });
  }
};

bool are_integers(std::same_as<Scalar> auto... s) { return !(s.is_floating() || ...); }

std::int64_t arange_count(Scalar begin, Scalar end, Scalar step) {
  if (step.real() == 0) throw ValueError("arange: step must not be 0");
  double n = std::ceil((end.real() - begin.real()) / step.real());
  if (are_integers(begin, end, step)) {
    // Unsigned: the distance of two integers may have 64 bits.
    const auto from = static_cast<std::uint64_t>(begin.integer()), to = static_cast<std::uint64_t>(end.integer());
    const auto by = static_cast<std::uint64_t>(step.integer());
    const bool up = step.integer() > 0;
    const bool some = up ? begin.integer() < end.integer() : begin.integer() > end.integer();
    n = some ? static_cast<double>(((up ? to - from : from - to) - 1) / (up ? by : 0 - by)) + 1 : 0;
  }
  if (!(n <= static_cast<double>(kMostStored)))
    throw ValueError("arange: too many values from " + begin.str() + " to " + end.str() + " by " + step.str());
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(n));
}

/// Throws ValueError unless an integer dtype can hold the first and the last value, and therefore all of them.
void check_range(Scalar begin, Scalar step, std::int64_t count, Dtype dtype) {
  if (!is_integer(dtype) || count == 0) return;
  const bool narrow = dtype == Dtype::i32;
  double low = begin.real(), high = low + static_cast<double>(count - 1) * step.real();
  if (low > high) std::swap(low, high);
  const double bound = narrow ? 0x1p31 : 0x1p63;
  if (!narrow && are_integers(begin, step)) return;  // all values lie between two numbers of 64 bits
  if (low <= (narrow ? -bound - 1 : -bound * (1 + 0x1p-52)) || high >= bound)
    throw ValueError("arange: " + std::string(name_of(dtype)) + " cannot hold " + begin.str() + " and " +
                     std::to_string(count - 1) + " times " + step.str() + " more");
}

}  // namespace

namespace ops {

constinit const Primitive* const full = &structured<Full>;

}  // namespace ops

Family creation_family() {
  static constexpr const Primitive* list[] = {&structured<Full>, &structured<Arange>};
  return list;
}

}  // namespace detail

Tensor full(const Shape& shape, Scalar value, Dtype dtype) {
  return detail::call(detail::structured<detail::Full>, {}, detail::FullAttrs{shape, value, dtype});
}
Tensor zeros(const Shape& shape, Dtype dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, Dtype dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) { return full(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype()); }

Tensor arange(Scalar end) { return arange(0, end, 1); }
Tensor arange(Scalar begin, Scalar end, Scalar step) {
  const bool real = begin.is_floating() || end.is_floating() || step.is_floating();
  return arange(begin, end, step, real ? Dtype::f32 : Dtype::i64);
}
Tensor arange(Scalar begin, Scalar end, Scalar step, Dtype dtype) {
  const std::int64_t count = detail::arange_count(begin, end, step);
  detail::check_range(begin, step, count, dtype);
  return detail::call(detail::structured<detail::Arange>, {}, detail::ArangeAttrs{begin, step, count, dtype});
}

// ---- composed of operations -------------------------------------------------------------------------------

namespace detail {
namespace {

struct LinspaceAttrs {
  double begin = 0, end = 1;
  std::int64_t n = 1;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields = attr_list(attr("begin", &LinspaceAttrs::begin), attr("end", &LinspaceAttrs::end),
                                           attr("n", &LinspaceAttrs::n), attr("dtype", &LinspaceAttrs::dtype));

  double at(std::int64_t i) const {
    if (i == n - 1 && n > 1) return end;
    return begin + (n == 1 ? 0 : static_cast<double>(i) / static_cast<double>(n - 1)) * (end - begin);
  }
};

struct Linspace {
  using Attributes = LinspaceAttrs;
  static constexpr auto name = "linspace", onnx = "", summary = "n values from begin to end, both included; a constant";

  static Tensor parts(Inputs, const Attributes& a) {
    const auto fill = [&](auto out) {
      using T = typename decltype(out)::value_type;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(a.at(static_cast<std::int64_t>(i)));
    };
    return a.dtype == Dtype::f32 ? Tensor::build<float>({a.n}, fill) : Tensor::build<double>({a.n}, fill);
  }
};

struct EyeAttrs {
  std::int64_t n = 0, m = 0;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields =
      attr_list(attr("n", &EyeAttrs::n), attr("m", &EyeAttrs::m), attr("dtype", &EyeAttrs::dtype));
};

struct Eye {
  using Attributes = EyeAttrs;
  static constexpr auto name = "eye", onnx = "", summary = "1 on the diagonal, else 0";

  static Tensor parts(Inputs, const Attributes& a) { return cast(eq(unsqueeze(arange(a.n), 1), arange(a.m)), a.dtype); }
};

struct OneHotAttrs {
  std::int64_t classes = 1;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields = attr_list(attr("classes", &OneHotAttrs::classes), attr("dtype", &OneHotAttrs::dtype));
};

struct OneHot {
  using Attributes = OneHotAttrs;
  static constexpr auto name = "one_hot", onnx = "", summary = "1 at the index along a new last axis, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor index = checked(in[0], 0, a.classes - 1, "one_hot: index");
    return cast(eq(unsqueeze(index, -1), arange(a.classes)), a.dtype);
  }
};

}  // namespace

Family composite_value_family() {
  static constexpr const Primitive* list[] = {&composite<Linspace>, &composite<Eye>, &composite<OneHot>};
  return list;
}

}  // namespace detail

using detail::composed;

Tensor linspace(double begin, double end, std::int64_t n, Dtype dtype) {
  if (n < 1) throw ValueError("linspace: at least one value is needed, got " + std::to_string(n));
  if (n > detail::kMostStored) detail::throw_shape("linspace", "too large: [" + std::to_string(n) + "]");
  if (!is_float(dtype)) detail::throw_dtype("linspace", "dtype must be a float, got " + std::string(name_of(dtype)));
  const auto finite = [&](double v) {
    return std::isfinite(dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(v)) : v);
  };
  if (!finite(begin) || !finite(end) || !std::isfinite(end - begin))
    throw ValueError("linspace: the ends and their distance must be finite in " + std::string(name_of(dtype)) +
                     ", got " + Scalar(begin).str() + " and " + Scalar(end).str());
  return composed<detail::Linspace>({}, {begin, end, n, dtype});
}

Tensor eye(std::int64_t n, std::int64_t m, Dtype dtype) {
  if (n < 0 || m < -1)
    throw ValueError("eye: sizes must not be negative, got " + std::to_string(n) + " and " + std::to_string(m));
  const std::int64_t columns = m < 0 ? n : m;
  if (Shape{n, columns}.numel("eye") > detail::kMostStored)
    detail::throw_shape("eye", "too large: " + Shape{n, columns}.str());
  return composed<detail::Eye>({}, {n, columns, dtype});
}

Tensor one_hot(const Tensor& index, std::int64_t classes, Dtype dtype) {
  if (classes < 1) throw ValueError("one_hot: the number of classes must be positive, got " + std::to_string(classes));
  if (index.dtype() != Dtype::i64)
    detail::throw_dtype("one_hot", "the index must be i64, got " + index.spec().str() + "; cast it first");
  return composed<detail::OneHot>({{&index}}, {classes, dtype});
}

}  // namespace ferrite
