// Oracles and samples of tensor/ops/creation.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::composite_values {
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
  static constexpr auto name = "linspace";
  static void oracle(std::span<const Dense>, std::span<Dense> out, const Attributes& a) {
    const double each = a.n > 1 ? (a.end - a.begin) / static_cast<double>(a.n - 1) : 0;
    for (std::size_t i = 0; i < out[0].values.size(); ++i) out[0].values[i] = a.begin + static_cast<double>(i) * each;
  }
  static std::vector<Sample> samples() {
    return {{.attrs = LinspaceAttrs{-1, 2, 7}},
            {.attrs = LinspaceAttrs{3, 2, 4, Dtype::f64}},
            {.attrs = LinspaceAttrs{5, 9, 1}}};
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
  static constexpr auto name = "eye";
  static void oracle(std::span<const Dense>, std::span<Dense> out, const Attributes&) {
    for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = i[0] == i[1]; });
  }
  static std::vector<Sample> samples() {
    return {{.attrs = EyeAttrs{3, 3}}, {.attrs = EyeAttrs{2, 4, Dtype::i64}}, {.attrs = EyeAttrs{0, 2}}};
  }
};

struct OneHotAttrs {
  std::int64_t classes = 1;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields = attr_list(attr("classes", &OneHotAttrs::classes), attr("dtype", &OneHotAttrs::dtype));
};

struct OneHot {
  using Attributes = OneHotAttrs;
  static constexpr auto name = "one_hot";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto classes = static_cast<std::size_t>(a.classes);
    for (std::size_t i = 0; i < in[0].values.size(); ++i)
      out[0].values[i * classes + static_cast<std::size_t>(in[0].values[i])] = 1;
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4}, Dtype::i64}}, .attrs = OneHotAttrs{3}, .indices = {2, 0, 1, 1}},
            {.inputs = {{{2, 2}, Dtype::i64}}, .attrs = OneHotAttrs{2, Dtype::boolean}, .indices = {1, 0}}};
  }
};

const Added added = add<Linspace, Eye, OneHot>();

}  // namespace
}  // namespace oracles::composite_values
