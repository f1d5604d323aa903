/// Checks results for NaN and infinities, and reports where they come from.
#include "ferrite/tensor/anomaly.h"

#include <cmath>
#include <string>

#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite {
namespace detail {
namespace {

FERRITE_PER_THREAD constinit PerThread<const AnomalyOptions*> rules(nullptr);
FERRITE_PER_THREAD constinit PerThread<const GradientOf*> gradient(nullptr);

/// The anomalies that a tensor holds, and the row-major position of the first of each kind.
struct Found {
  bool nan = false, infinity = false;
  std::int64_t first_nan = 0, first_infinity = 0;
};

Found look_at(const Tensor& x) {
  Found f;
  if (!is_float(x.dtype()) || x.is_abstract()) return f;
  const auto scan = [&](auto zero) {
    using T = decltype(zero);
    std::int64_t i = 0;
    for (const T v : x.to_vector<T>()) {
      if (std::isnan(v) && !f.nan) f.nan = true, f.first_nan = i;
      if (std::isinf(v) && !f.infinity) f.infinity = true, f.first_infinity = i;
      ++i;
    }
  };
  x.dtype() == Dtype::f32 ? scan(float()) : scan(double());
  return f;
}

/// Returns whether a constant of an application is not finite, such as that of a mask.
bool holds_infinity(const Attrs& attrs) {
  bool any = false;
  attrs.each([&](std::string_view, const AttrValue& v) {
    if (const auto* s = std::get_if<Scalar>(&v)) any |= s->is_floating() && !std::isfinite(s->real());
    if (const auto* d = std::get_if<double>(&v)) any |= !std::isfinite(*d);
  });
  return any;
}

std::string index_text(const Shape& shape, std::int64_t at) {
  Shape index = shape;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[i] = at % shape[i];
    at /= shape[i];
  }
  return index.str();
}

template <class List, class Text>
std::string listed(const List& list, const Text& text) {
  std::string s;
  for (const auto& x : list) s += (s.empty() ? "" : ", ") + text(x);
  return s;
}

[[noreturn]] void throw_anomaly(const Primitive& op, Inputs in, const Tensor& y, const Attrs& attrs,
                                const Found& found) {
  std::string text;
  if (gradient()) text = "gradient of " + std::string(gradient()->op().name) + ": ";
  text += std::string(op.name) + " gave " + (found.nan ? "nan" : "inf") + ": element " +
          index_text(y.shape(), found.nan ? found.first_nan : found.first_infinity) + " of " + y.spec().str();
  if (in.size()) text += ", operands " + listed(in, [](const Tensor& x) { return x.spec().str(); });
  if (!attrs.empty()) text += ", with " + attrs.str();
  for (std::size_t i = 0; i < in.size(); ++i)
    if (look_at(in[i]).nan) text += ", of which " + std::to_string(i) + " holds nan already";
  if (gradient())
    text += "; " + std::string(gradient()->op().name) + " is of " +
            listed(gradient()->in(), [](const Spec* s) { return s->str(); });
  AnomalyError error(text);
  error.set_layer(frame().scope.path());
  throw error;
}

}  // namespace

bool detecting_anomalies() noexcept { return rules() != nullptr; }

void check_for_anomalies(const Primitive& op, Inputs in, std::span<const Tensor> out, const Attrs& attrs) {
  if (!rules()) return;
  for (const Tensor& y : out) {
    const Found found = look_at(y);
    bool bad = found.nan;
    if (!bad && found.infinity && rules()->infinities) {
      bad = !holds_infinity(attrs);
      for (const Tensor& x : in) bad = bad && !look_at(x).infinity;
    }
    if (bad) throw_anomaly(op, in, y, attrs, found);
  }
}

void GradientOf::enter() noexcept {
  if (!rules()) return;
  entered_ = true;
  outer_ = gradient();
  gradient() = this;
}

void GradientOf::leave() noexcept { gradient() = outer_; }

}  // namespace detail

DetectAnomaly::DetectAnomaly(const AnomalyOptions& options) : before_(detail::rules()), options_(options) {
  detail::count_watchers(1);
  detail::rules() = &options_;
}

DetectAnomaly::~DetectAnomaly() {
  detail::rules() = before_;
  detail::count_watchers(-1);
}

}  // namespace ferrite
