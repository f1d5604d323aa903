/// Tensors as text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

#include "ferrite/tensor/tensor.h"

namespace ferrite {
namespace {

constexpr std::int64_t kMostElements = 1000;  ///< printed whole up to here, as NumPy's threshold
constexpr std::int64_t kEdge = 3;             ///< elements at each end of a shortened axis

/// How the numbers of one tensor are written: all alike.
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
  /// Calls f(index along the axis) for what is shown, gap() where elements are left out.
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
