// Oracles and samples of tensor/ops/shapes.cpp.
#include <optional>
#include <utility>
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::composite_shapes {
namespace {

/// Copies the elements in their order.
void same_elements(std::span<const Dense> in, std::span<Dense> out) { out[0].values = in[0].values; }

struct TransposeAttrs {
  int a = -2, b = -1;
  static constexpr auto fields = attr_list(attr("a", &TransposeAttrs::a), attr("b", &TransposeAttrs::b));
};

struct Transpose {
  using Attributes = TransposeAttrs;
  static constexpr auto name = "transpose";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      std::swap(from[a.a], from[a.b]);
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}}, .attrs = TransposeAttrs{0, 1}},
            {.inputs = {{{2, 3, 4}}}, .attrs = TransposeAttrs{2, 0}},
            {.inputs = {{{2, 0, 4}, Dtype::i64}}, .attrs = TransposeAttrs{1, 1}, .indices = {1}}};
  }
};

struct SqueezeAttrs {
  std::optional<int> axis{};
  static constexpr auto fields = attr_list(attr("axis", &SqueezeAttrs::axis));
};

struct Squeeze {
  using Attributes = SqueezeAttrs;
  static constexpr auto name = "squeeze";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) { same_elements(in, out); }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 1, 3, 1}}}, .attrs = SqueezeAttrs{}},
            {.inputs = {{{2, 1, 3, 1}}}, .attrs = SqueezeAttrs{1}}};
  }
};

struct Unsqueeze {
  using Attributes = AxisAttrs;
  static constexpr auto name = "unsqueeze";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) { same_elements(in, out); }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}}, .attrs = AxisAttrs{0}}, {.inputs = {{{2, 3}}}, .attrs = AxisAttrs{2}}};
  }
};

struct FlattenAttrs {
  int first = 0, last = 0;
  static constexpr auto fields = attr_list(attr("first", &FlattenAttrs::first), attr("last", &FlattenAttrs::last));
};

struct Flatten {
  using Attributes = FlattenAttrs;
  static constexpr auto name = "flatten";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) { same_elements(in, out); }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}}, .attrs = FlattenAttrs{0, 2}},
            {.inputs = {{{2, 3, 4, 2}}}, .attrs = FlattenAttrs{1, 2}},
            {.inputs = {{{}}}, .attrs = FlattenAttrs{}}};
  }
};

struct AxesAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &AxesAttrs::axes));
};

struct Flip {
  using Attributes = AxesAttrs;
  static constexpr auto name = "flip";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      for (const std::int64_t axis : a.axes) {
        const int k = static_cast<int>(axis);
        from[k] = in[0].shape[k] - 1 - i[k];
      }
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}}, .attrs = AxesAttrs{{0}}},
            {.inputs = {{{2, 3, 4}}}, .attrs = AxesAttrs{{0, 2}}},
            {.inputs = {{{0, 3}}}, .attrs = AxesAttrs{{1}}}};
  }
};

struct ChunkAttrs {
  int axis = 0;
  std::int64_t n = 1;
  static constexpr auto fields = attr_list(attr("axis", &ChunkAttrs::axis), attr("n", &ChunkAttrs::n));
};

struct Chunk {
  using Attributes = ChunkAttrs;
  static constexpr auto name = "chunk";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (std::size_t k = 0; k < out.size(); ++k)
      for_each_index(out[k].shape, [&](const Shape& i) {
        Shape from = i;
        from[a.axis] += static_cast<std::int64_t>(k) * out[0].shape[a.axis];
        out[k].at(i) = in[0].at(from);
      });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{7, 2}}}, .attrs = ChunkAttrs{0, 3}}, {.inputs = {{{2, 3}}}, .attrs = ChunkAttrs{1, 5}}};
  }
};

struct SumTo {
  using Attributes = ShapeAttrs;
  static constexpr auto name = "sum_to";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    for_each_index(in[0].shape, [&](const Shape& i) {
      Shape to = out[0].shape;
      const int lead = i.rank() - to.rank();
      for (int k = 0; k < to.rank(); ++k) to[k] = to[k] == 1 ? 0 : i[k + lead];
      out[0].at(to) += in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}}, .attrs = ShapeAttrs{{3}}},
            {.inputs = {{{2, 4, 3}}}, .attrs = ShapeAttrs{{4, 1}}},
            {.inputs = {{{2, 3}}}, .attrs = ShapeAttrs{{}}}};
  }
};

const Added added = add<Transpose, Squeeze, Unsqueeze, Flatten, Flip, Chunk, SumTo>();

}  // namespace
}  // namespace oracles::composite_shapes
