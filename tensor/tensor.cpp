/// Handles on tensors: giving, reading and checking elements.
#include "ferrite/tensor/tensor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>

#include "ferrite/tensor/strided.h"

namespace ferrite {

void Tensor::throw_undefined() { throw Error("tensor: undefined; it was never given a value"); }

void Tensor::check_readable(Dtype wanted, bool want_contiguous, const char* where) const {
  const Spec s = spec();
  if (is_abstract()) throw TraceError(std::string(where) + ": the values of a traced tensor " + s.str() + " were read");
  if (s.dtype != wanted)
    throw DtypeError(std::string(where) + ": the tensor holds " + s.str() + ", read as " +
                     std::string(name_of(wanted)) + "; cast it first");
  if (want_contiguous && !contiguous())
    throw ShapeError(std::string(where) + ": the tensor " + s.str() + " with strides " + strides().str() +
                     " is not contiguous; call contiguous(t) first");
}

namespace {

/// Returns the shape for a number of values, with -1 replaced. Throws ShapeError where it has another number of
/// elements.
Shape shape_for(std::size_t values, const Shape& shape) {
  const auto count = static_cast<std::int64_t>(values);
  const std::optional<Shape> fits = inferred(shape, count, "from");
  if (!fits || fits->numel() != count)
    throw ShapeError("from: " + std::to_string(count) + " values for shape " + shape.str());
  return *fits;
}

}  // namespace

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  return build<T>(shape_for(values.size(), shape),
                  [&](std::span<T> out) { std::copy(values.begin(), values.end(), out.begin()); });
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape) {
  return build<T>(shape_for(values.size(), shape),
                  [&](std::span<T> out) { std::copy(values.begin(), values.end(), out.begin()); });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_readable(dtype_of<T>, false, "to_vector");
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(numel()));
  detail::for_each_offset(shape(), strides(), [&](std::int64_t at) { out.push_back(data<T>()[at]); });
  return out;
}

template <class T>
T Tensor::item() const {
  check_readable(dtype_of<T>, false, "item");
  if (numel() != 1) throw ShapeError("item: the tensor must hold one element, got " + shape().str());
  return data<T>()[0];
}

template Tensor Tensor::from<float>(std::span<const float>, const Shape&);
template Tensor Tensor::from<double>(std::span<const double>, const Shape&);
template Tensor Tensor::from<std::int32_t>(std::span<const std::int32_t>, const Shape&);
template Tensor Tensor::from<std::int64_t>(std::span<const std::int64_t>, const Shape&);
template Tensor Tensor::from<bool>(std::span<const bool>, const Shape&);
template Tensor Tensor::from<bfloat16>(std::span<const bfloat16>, const Shape&);
template Tensor Tensor::from<float16>(std::span<const float16>, const Shape&);
template Tensor Tensor::from<std::int8_t>(std::span<const std::int8_t>, const Shape&);
template Tensor Tensor::from<float>(const std::vector<float>&, const Shape&);
template Tensor Tensor::from<double>(const std::vector<double>&, const Shape&);
template Tensor Tensor::from<std::int32_t>(const std::vector<std::int32_t>&, const Shape&);
template Tensor Tensor::from<std::int64_t>(const std::vector<std::int64_t>&, const Shape&);
template Tensor Tensor::from<bool>(const std::vector<bool>&, const Shape&);
template Tensor Tensor::from<bfloat16>(const std::vector<bfloat16>&, const Shape&);
template Tensor Tensor::from<float16>(const std::vector<float16>&, const Shape&);
template Tensor Tensor::from<std::int8_t>(const std::vector<std::int8_t>&, const Shape&);
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<std::int32_t> Tensor::to_vector<std::int32_t>() const;
template std::vector<std::int64_t> Tensor::to_vector<std::int64_t>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;
template std::vector<bfloat16> Tensor::to_vector<bfloat16>() const;
template std::vector<float16> Tensor::to_vector<float16>() const;
template std::vector<std::int8_t> Tensor::to_vector<std::int8_t>() const;
template float Tensor::item<float>() const;
template double Tensor::item<double>() const;
template std::int32_t Tensor::item<std::int32_t>() const;
template std::int64_t Tensor::item<std::int64_t>() const;
template bool Tensor::item<bool>() const;
template bfloat16 Tensor::item<bfloat16>() const;
template float16 Tensor::item<float16>() const;
template std::int8_t Tensor::item<std::int8_t>() const;

namespace detail {

void check_as_eigen(const Tensor& x, Dtype wanted) {
  if (x.dtype() != wanted)
    throw DtypeError("as_eigen: the tensor holds " + x.spec().str() + ", read as " + std::string(name_of(wanted)));
  if (x.is_abstract()) throw TraceError("as_eigen: the values of a traced tensor " + x.spec().str() + " were read");
  if (x.rank() != 1 && x.rank() != 2) throw ShapeError("as_eigen: rank 1 or 2 is needed, got " + x.shape().str());
}

}  // namespace detail

// ---- as text ----------------------------------------------------------------------------------------------

namespace {

constexpr std::int64_t kMostElements = 1000;  ///< larger tensors are shortened, as by NumPy's threshold
constexpr std::int64_t kEdge = 3;             ///< elements at each end of a shortened axis

/// The common format of the numbers of one tensor.
class Format {
 public:
  explicit Format(const Tensor& x) : x_(x) {
    if (kind_of(x.dtype()) == DtypeKind::floating) choose();
  }

  std::string operator()(std::int64_t at) const {
    return visit_dtype(x_.dtype(), [&](auto zero) -> std::string {
      using T = decltype(zero);
      const T v = x_.data<T>()[at];
      if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
      if constexpr (std::is_integral_v<T>) return std::to_string(v);
      return number(static_cast<double>(v));
    });
  }

 private:
  double real(std::int64_t at) const {
    return visit_dtype(x_.dtype(), [&](auto zero) { return static_cast<double>(x_.data<decltype(zero)>()[at]); });
  }

  void choose() {
    double largest = 0;
    double smallest = INFINITY;
    bool whole = true;
    for (const double v : sampled()) {
      if (!std::isfinite(v)) continue;
      whole &= v == std::floor(v);
      largest = std::max(largest, std::fabs(v));
      if (v != 0) smallest = std::min(smallest, std::fabs(v));
    }
    scientific_ =
        largest >= 1e8 || (smallest < 1e-4 && smallest < INFINITY) || (smallest < INFINITY && largest / smallest > 1e6);
    digits_ = whole && !scientific_ ? 0 : 4;
  }

  std::vector<double> sampled() const {
    std::vector<double> v;
    std::int64_t index[Shape::kMaxRank] = {};
    const Shape& s = x_.shape();
    const std::int64_t n = std::min<std::int64_t>(x_.numel(), kMostElements);
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t at = 0;
      for (int i = 0; i < s.rank(); ++i) at += index[i] * x_.strides()[i];
      v.push_back(real(at));
      for (int i = s.rank() - 1; i >= 0; --i) {
        if (++index[i] < s[i]) break;
        index[i] = 0;
      }
    }
    return v;
  }

  std::string number(double v) const {
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    char text[400];
    const auto form = scientific_ ? std::chars_format::scientific : std::chars_format::fixed;
    const auto end = std::to_chars(text, text + sizeof text, v, form, digits_).ptr;
    std::string s(text, end);
    if (digits_ == 0) s += '.';
    return s;
  }

  const Tensor& x_;
  int digits_ = 4;
  bool scientific_ = false;
};

class Printer {
 public:
  explicit Printer(const Tensor& x) : x_(x), format_(x), shorten_(x.numel() > kMostElements) {
    visit(0, 0, [&](std::int64_t at) { width_ = std::max(width_, format_(at).size()); });
  }

  std::string text() { return write(0, 0, 1); }

 private:
  /// Calls f(index along the axis) for elements that are shown, gap() where some are left out.
  template <class F, class G>
  void shown(std::int64_t n, F&& f, G&& gap) const {
    const bool cut = shorten_ && n > 2 * kEdge;
    for (std::int64_t i = 0; i < (cut ? kEdge : n); ++i) f(i);
    if (!cut) return;
    gap();
    for (std::int64_t i = n - kEdge; i < n; ++i) f(i);
  }

  template <class F>
  void visit(int axis, std::int64_t at, const F& f) const {
    if (x_.numel() == 0) return;
    if (axis == x_.rank()) return f(at);
    shown(
        x_.shape()[axis], [&](std::int64_t i) { visit(axis + 1, at + i * x_.strides()[axis], f); }, [] {});
  }

  std::string write(int axis, std::int64_t at, std::size_t indent) {
    if (axis == x_.rank()) {
      std::string s = format_(at);
      if (x_.rank()) s.insert(0, width_ - std::min(width_, s.size()), ' ');
      return s;
    }
    const bool last = axis + 1 == x_.rank();
    std::string separator = ",";
    separator.append(last ? 0 : static_cast<std::size_t>(x_.rank() - axis - 1), '\n');
    separator.append(last ? 1 : indent, ' ');
    std::string s(1, '[');
    bool first = true;
    const auto join = [&](const std::string& part) {
      if (!first) s += separator;
      s += part;
      first = false;
    };
    shown(
        x_.shape()[axis], [&](std::int64_t i) { join(write(axis + 1, at + i * x_.strides()[axis], indent + 1)); },
        [&] { join("..."); });
    s += ']';
    return s;
  }

  const Tensor& x_;
  Format format_;
  bool shorten_;
  std::size_t width_ = 0;
};

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  if (is_abstract()) return "traced " + spec().str();
  if (numel() == 0) return "[] " + spec().str();
  return Printer(*this).text();
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << t.str(); }

}  // namespace ferrite
