// Oracles and samples of tensor/ops/views.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::views {
namespace {

void copy_oracle(std::span<const Dense> in, std::span<Dense> out) { out[0].values = in[0].values; }

struct Reshape {
  using Attributes = ShapeAttrs;
  static constexpr auto name = "reshape";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) { copy_oracle(in, out); }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 6}}}, .attrs = ShapeAttrs{Shape{3, 4}}},
            {.inputs = {{{2, 3, 4}}}, .attrs = ShapeAttrs{Shape{24}}},
            {.inputs = {{{}}}, .attrs = ShapeAttrs{Shape{1, 1}}},
            {.inputs = {{{0, 3}}}, .attrs = ShapeAttrs{Shape{3, 0, 2}}},
            {.inputs = {{{4, 1, 2}, Dtype::i64}}, .attrs = ShapeAttrs{Shape{2, 4}}, .indices = {1, 2, 3}}};
  }
};

struct Contiguous {
  static constexpr auto name = "contiguous";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) { copy_oracle(in, out); }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}},
            {.inputs = {{{2, 3, 4}, Dtype::boolean}}, .indices = {0, 1, 1}},
            {.inputs = {{{33, 17}}}}};
  }
};

struct Detach {
  static constexpr auto name = "detach";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) { copy_oracle(in, out); }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}}, {.inputs = {{{}}}}, {.inputs = {{{0, 2}, Dtype::i64}}, .indices = {0}}};
  }
};

struct Permute {
  using Attributes = PermuteAttrs;
  static constexpr auto name = "permute";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const Shape& order = attrs.order;
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      for (int k = 0; k < order.rank(); ++k) from[static_cast<int>(order[k])] = i[k];
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}}, .attrs = PermuteAttrs{Shape{2, 0, 1}}},
            {.inputs = {{{3, 5}}}, .attrs = PermuteAttrs{Shape{1, 0}}},
            {.inputs = {{{0, 2}}}, .attrs = PermuteAttrs{Shape{1, 0}}}};
  }
};

struct Expand {
  using Attributes = ShapeAttrs;
  static constexpr auto name = "expand";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = in[0].broadcast_at(i); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{1, 4}}}, .attrs = ShapeAttrs{Shape{3, 4}}},
            {.inputs = {{{}}}, .attrs = ShapeAttrs{Shape{2, 3}}},
            {.inputs = {{{3, 1}}}, .attrs = ShapeAttrs{Shape{2, 3, 5}}},
            {.inputs = {{{1, 2}}}, .attrs = ShapeAttrs{Shape{0, 2}}}};
  }
};

const Added added = add<Reshape, Contiguous, Permute, Expand, Detach>();

}  // namespace
}  // namespace oracles::views
