// Oracles and samples of tensor/ops/product.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::vector_products {
namespace {

struct Outer {
  static constexpr auto name = "outer";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = in[0].at({i[0]}) * in[1].at({i[1]}); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}, {{2}}}},
            {.inputs = {{{0}}, {{2}}}},
            {.inputs = {{{3}, Dtype::i64}, {{2}, Dtype::i64}}, .indices = {2, 3, -4, 5, 6}}};
  }
};

struct Cross {
  using Attributes = AxisAttrs;
  static constexpr auto name = "cross";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape p = i, q = i;
      p[a.axis] = (i[a.axis] + 1) % 3;
      q[a.axis] = (i[a.axis] + 2) % 3;
      out[0].at(i) = in[0].broadcast_at(p) * in[1].broadcast_at(q) - in[0].broadcast_at(q) * in[1].broadcast_at(p);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}, {{3}}}, .attrs = AxisAttrs{0}},
            {.inputs = {{{2, 3}}, {{2, 3}}}, .attrs = AxisAttrs{1}},
            {.inputs = {{{3, 2}}, {{3, 1}}}, .attrs = AxisAttrs{0}}};
  }
};

struct Kron {
  static constexpr auto name = "kron";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const int rank = out[0].shape.rank();
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape p, q;
      for (int k = 0; k < rank; ++k) {
        const int on_a = k - rank + in[0].shape.rank(), on_b = k - rank + in[1].shape.rank();
        const std::int64_t inner = on_b < 0 ? 1 : in[1].shape[on_b];
        if (on_a >= 0) p.push_back(i[k] / inner);
        if (on_b >= 0) q.push_back(i[k] % inner);
      }
      out[0].at(i) = in[0].at(p) * in[1].at(q);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}, {{3, 2}}}},
            {.inputs = {{{2}}, {{2, 2}}}},
            {.inputs = {{{2, 1, 2}}, {{3}}}},
            {.inputs = {{{}}, {{2}}}},
            {.inputs = {{{2, 0}}, {{2, 2}}}}};
  }
};

struct TensordotAttrs {
  Shape a{}, b{};
  static constexpr auto fields = attr_list(attr("a", &TensordotAttrs::a), attr("b", &TensordotAttrs::b));
};

/// Returns the axes that are not in a list.
Shape others(int rank, const Shape& axes) {
  Shape out;
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) out.push_back(i);
  return out;
}

struct Tensordot {
  using Attributes = TensordotAttrs;
  static constexpr auto name = "tensordot";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Shape rows = others(in[0].shape.rank(), a.a), columns = others(in[1].shape.rank(), a.b);
    Shape summed;
    for (const std::int64_t k : a.a) summed.push_back(in[0].shape[static_cast<int>(k)]);
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape p = in[0].shape, q = in[1].shape;
      int next = 0;
      for (const std::int64_t k : rows) p[static_cast<int>(k)] = i[next++];
      for (const std::int64_t k : columns) q[static_cast<int>(k)] = i[next++];
      for_each_index(summed, [&](const Shape& s) {
        for (int k = 0; k < s.rank(); ++k) p[static_cast<int>(a.a[k])] = q[static_cast<int>(a.b[k])] = s[k];
        out[0].at(i) += in[0].at(p) * in[1].at(q);
      });
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}, {{3, 4, 2}}}, .attrs = TensordotAttrs{{1, 2}, {0, 1}}},
            {.inputs = {{{2, 3, 4}}, {{4, 2, 3}}}, .attrs = TensordotAttrs{{2, 0}, {0, 1}}},
            {.inputs = {{{2}}, {{3}}}, .attrs = TensordotAttrs{}},
            {.inputs = {{{2, 3}}, {{2, 3}}}, .attrs = TensordotAttrs{{0, 1}, {0, 1}}},
            {.inputs = {{{2, 0}}, {{0, 3}}}, .attrs = TensordotAttrs{{1}, {0}}}};
  }
};

struct VanderAttrs {
  std::int64_t n = 0;
  bool increasing = false;
  static constexpr auto fields = attr_list(attr("n", &VanderAttrs::n), attr("increasing", &VanderAttrs::increasing));
};

struct Vander {
  using Attributes = VanderAttrs;
  static constexpr auto name = "vander";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      out[0].at(i) = std::pow(in[0].at({i[0]}), static_cast<double>(a.increasing ? i[1] : a.n - 1 - i[1]));
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}}, .attrs = VanderAttrs{3}},
            {.inputs = {{{4}}}, .attrs = VanderAttrs{5, true}},
            {.inputs = {{{2}}}, .attrs = VanderAttrs{0}},
            {.inputs = {{{0}}}, .attrs = VanderAttrs{2}}};
  }
};

const Added added = add<Outer, Cross, Kron, Tensordot, Vander>();

}  // namespace
}  // namespace oracles::vector_products
