// Oracles and samples of tensor/ops/indexing.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace oracles::indexing {
namespace {

struct IndexSelect {
  using Attributes = IndexAttrs;
  static constexpr auto name = "index_select";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from[axis] = position(in[1].at({i[axis]}), in[0].shape[axis]);
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}, {{5}, Dtype::i64}}, .attrs = IndexAttrs{0}, .indices = {3, 0, -1, 1, 0}},
            {.inputs = {{{2, 3}}, {{2}, Dtype::i32}}, .attrs = IndexAttrs{1}, .indices = {2, 2}},
            {.inputs = {{{2, 3}}, {{0}, Dtype::i64}}, .attrs = IndexAttrs{0}, .indices = {0}}};
  }
};

struct Gather {
  using Attributes = IndexAttrs;
  static constexpr auto name = "gather";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from[axis] = position(in[1].at(i), in[0].shape[axis]);
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}, {{2, 3}, Dtype::i64}}, .attrs = IndexAttrs{0}, .indices = {3, 0, 1, 1, -4, 2}},
            {.inputs = {{{3, 5}}, {{2, 2}, Dtype::i64}}, .attrs = IndexAttrs{1}, .indices = {4, 4, 0, 1}},
            {.inputs = {{{6}}, {{3}, Dtype::i32}}, .attrs = IndexAttrs{0}, .indices = {5, 5, 2}}};
  }
};

struct ScatterAdd {
  using Attributes = IndexAttrs;
  static constexpr auto name = "scatter_add";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    out[0].values = in[0].values;
    for_each_index(in[1].shape, [&](const Shape& i) {
      Shape to = i;
      to[axis] = position(in[1].at(i), in[0].shape[axis]);
      out[0].at(to) += in[2].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {
        {.inputs = {{{4, 3}}, {{2, 3}, Dtype::i64}, {{2, 3}}}, .attrs = IndexAttrs{0}, .indices = {3, 0, 1, 3, -4, 2}},
        {.inputs = {{{2, 3}}, {{2, 4}, Dtype::i64}, {{2, 4}}},
         .attrs = IndexAttrs{1},
         .indices = {0, 0, 0, 2, 1, 1, 2, 2}}};
  }
};

const Added added = add<Gather, IndexSelect, ScatterAdd>();

}  // namespace
}  // namespace oracles::indexing
