// Oracles and samples of tensor/ops/cumulative.cpp.
#include <vector>

#include "conformance/oracles/helpers.h"

namespace oracles::composite_samples {
namespace {

struct DiffAttrs {
  int axis = 0;
  std::int64_t n = 1;
  static constexpr auto fields = attr_list(attr("axis", &DiffAttrs::axis), attr("n", &DiffAttrs::n));
};

struct Diff {
  using Attributes = DiffAttrs;
  static constexpr auto name = "diff";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const bool logic = in[0].dtype == Dtype::boolean;
    Dense x = in[0];
    for (std::int64_t k = 0; k < a.n && x.shape[a.axis] > 0; ++k) {
      Spec s{x.shape, x.dtype};
      --s.shape[a.axis];
      Dense y(s);
      for_each_index(y.shape, [&](const Shape& i) {
        Shape next = i;
        ++next[a.axis];
        y.at(i) = logic ? static_cast<double>(x.at(next) != x.at(i)) : x.at(next) - x.at(i);
      });
      x = y;
    }
    out[0].values = x.values;
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = DiffAttrs{1, 1}},
            {.inputs = {{{4, 2}}}, .attrs = DiffAttrs{0, 2}},
            {.inputs = {{{3, 2}}}, .attrs = DiffAttrs{1, 3}},
            {.inputs = {{{2, 0}}}, .attrs = DiffAttrs{1, 1}},
            {.inputs = {{{3}}}, .attrs = DiffAttrs{0, 0}},
            {.inputs = {{{4}, Dtype::boolean}}, .attrs = DiffAttrs{0, 1}, .indices = {1, 0, 0, 1}},
            {.inputs = {{{4}, Dtype::i64}}, .attrs = DiffAttrs{0, 2}, .indices = {1, 5, 2, 7}}};
  }
};

struct TrapezoidAttrs {
  int axis = 0;
  double dx = 1;
  static constexpr auto fields = attr_list(attr("axis", &TrapezoidAttrs::axis), attr("dx", &TrapezoidAttrs::dx));
};

/// Calls f with the areas of each line, as doubles.
template <class F>
void each_line_of_areas(std::span<const Dense> in, const TrapezoidAttrs& a, F&& f) {
  for_each_group(in[0], {a.axis}, [&](const Shape& at, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (std::size_t k = 0; k + 1 < members.size(); ++k) {
      const auto position = [&](const Shape& i) {
        return in[1].shape.rank() == 1 ? in[1].at({i[a.axis]}) : in[1].at(i);
      };
      const double width = in.size() == 1 ? a.dx : position(members[k + 1]) - position(members[k]);
      v.push_back(width * (in[0].at(members[k]) + in[0].at(members[k + 1])) / 2);
    }
    f(at, v);
  });
}

std::vector<Sample> integrals() {
  return {{.inputs = {{{3, 5}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{4, 2}}}, .attrs = TrapezoidAttrs{0, 0.25}},
          {.inputs = {{{2, 4}}, {{4}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{2, 4, 3}}, {{2, 4, 3}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{4, 3}}, {{4}}}, .attrs = TrapezoidAttrs{0, 1}},
          {.inputs = {{{3, 1}}}, .attrs = TrapezoidAttrs{1, 1}},
          {.inputs = {{{3, 0}}}, .attrs = TrapezoidAttrs{1, 1}}};
}

struct Trapezoid {
  using Attributes = TrapezoidAttrs;
  static constexpr auto name = "trapezoid";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    std::size_t next = 0;
    each_line_of_areas(in, a, [&](const Shape&, const std::vector<double>& v) {
      double total = 0;
      for (const double area : v) total += area;
      out[0].values[next++] = total;
    });
  }
  static std::vector<Sample> samples() { return integrals(); }
};

struct CumulativeTrapezoid {
  using Attributes = TrapezoidAttrs;
  static constexpr auto name = "cumulative_trapezoid";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_line_of_areas(in, a, [&](const Shape& at, const std::vector<double>& v) {
      double total = 0;
      for (std::size_t k = 0; k < v.size(); ++k) {
        Shape to = at;
        to[a.axis] = static_cast<std::int64_t>(k);
        out[0].at(to) = total += v[k];
      }
    });
  }
  static std::vector<Sample> samples() { return integrals(); }
};

const Added added = add<Diff, Trapezoid, CumulativeTrapezoid>();

}  // namespace
}  // namespace oracles::composite_samples
