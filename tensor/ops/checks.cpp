/// Checks of values as part of a program: a compiled, scanned or streamed program refuses the same values as eager
/// execution, with the same message. A name that ends with a full stop is the whole message.
#include <cmath>
#include <sstream>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

struct CheckedAttrs {
  Scalar low{}, high{};
  Label who{};
  static constexpr auto fields =
      attr_list(attr("low", &CheckedAttrs::low), attr("high", &CheckedAttrs::high), attr("who", &CheckedAttrs::who));
};

template <class T>
std::string text_of(T v) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else {
    if (std::isnan(v)) return "nan";  // its sign means nothing
    std::ostringstream s;
    s.imbue(std::locale::classic());
    s << v;
    return s.str();
  }
}

template <class T>
[[noreturn]] void throw_outside(const CheckedAttrs& attrs, T value, T low, T high) {
  const std::string who(attrs.who.text());
  if (who.ends_with('.')) throw RangeError(who.substr(0, who.size() - 1), attrs.who.text());
  const std::string text = who + " " + text_of(value) + " lies outside " + text_of(low) + ".." + text_of(high);
  if constexpr (std::is_integral_v<T>) throw ShapeError(text);
  throw RangeError(text, attrs.who.text());
}

template <class T>
T bound(const Scalar& s) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(s.real());
  if (s.integer() < static_cast<std::int64_t>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (s.integer() > static_cast<std::int64_t>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(s.integer());
}

struct Checked {
  using Attributes = CheckedAttrs;
  static constexpr auto name = "checked", onnx = "Identity", stablehlo = "";
  static constexpr TimeRule time = TimeRule::keeps;
  static constexpr auto summary = "x itself; refuses a value outside low..high, and NaN, in the name of `who`";

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    for (const Scalar& end : {attrs.low, attrs.high})
      if (is_integer(in[0].dtype()) && end.is_floating())
        throw_dtype(name, "float bound " + end.str() + " for " + in[0].spec().str());
    if (attrs.who.empty()) throw ValueError("checked: a name is needed for what is refused");
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    copy_to(Writer::raw(out[0]), in[0]);
    visit_computed(in[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>) {
        const T low = bound<T>(attrs.low), high = bound<T>(attrs.high);
        for (const T v : out[0].values<T>())
          if (!(v >= low && v <= high)) throw_outside(attrs, v, low, high);
      }
    });
  }
  static constexpr Effects effects{.throws = true, .allocates = true};
  static Tensors vjp(const Vjp& v, const Attributes&) { return {v.grad()}; }
};

}  // namespace

Family check_family() {
  static constexpr const Primitive* list[] = {&structured<Checked>};
  return list;
}

}  // namespace detail

Tensor checked(const Tensor& x, Scalar low, Scalar high, Label who) {
  return detail::call(detail::structured<detail::Checked>, {{&x}}, detail::CheckedAttrs{low, high, who});
}

}  // namespace ferrite
