// Oracles and samples of tensor/ops/shapes.cpp.
#include <utility>
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::arrangement {
namespace {

/// Returns whole numbers from 1 as samples of integers.
std::vector<std::int64_t> counted() { return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; }

struct RollAttrs {
  Shape shifts{}, axes{};
  static constexpr auto fields = attr_list(attr("shifts", &RollAttrs::shifts), attr("axes", &RollAttrs::axes));
};

/// Returns a modulo n, in 0..n - 1.
std::int64_t modulo(std::int64_t a, std::int64_t n) { return n == 0 ? 0 : (a % n + n) % n; }

struct Roll {
  using Attributes = RollAttrs;
  static constexpr auto name = "roll";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape to = i;
      for (int k = 0; k < a.axes.rank(); ++k) {
        const int axis = static_cast<int>(a.axes[k]);
        to[axis] = modulo(to[axis] + a.shifts[k], i.rank() ? out[0].shape[axis] : 1);
      }
      out[0].at(to) = in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{5}}}, .attrs = RollAttrs{{2}, {0}}},
            {.inputs = {{{3, 4}}}, .attrs = RollAttrs{{-1, 6}, {0, 1}}},
            {.inputs = {{{3, 4}}}, .attrs = RollAttrs{{1, 1}, {1, 1}}},
            {.inputs = {{{3, 4}}}, .attrs = RollAttrs{{8}, {1}}},
            {.inputs = {{{0, 2}}}, .attrs = RollAttrs{{1}, {0}}},
            {.inputs = {{{4}, Dtype::i64}}, .attrs = RollAttrs{{-7}, {0}}, .indices = counted()}};
  }
};

struct Rot90Attrs {
  std::int64_t k = 1;
  Shape axes{0, 1};
  static constexpr auto fields = attr_list(attr("k", &Rot90Attrs::k), attr("axes", &Rot90Attrs::axes));
};

struct Rot90 {
  using Attributes = Rot90Attrs;
  static constexpr auto name = "rot90";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const int p = static_cast<int>(a.axes[0]), q = static_cast<int>(a.axes[1]);
    for_each_index(in[0].shape, [&](const Shape& i) {
      Shape to = i, extents = in[0].shape;
      for (std::int64_t turn = 0; turn < modulo(a.k, 4); ++turn) {
        const std::int64_t row = to[p];
        to[p] = extents[q] - 1 - to[q];
        to[q] = row;
        std::swap(extents[p], extents[q]);
      }
      out[0].at(to) = in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}}, .attrs = Rot90Attrs{}},
            {.inputs = {{{2, 3}}}, .attrs = Rot90Attrs{2}},
            {.inputs = {{{2, 3, 2}}}, .attrs = Rot90Attrs{-1, {2, 1}}},
            {.inputs = {{{0, 3}}}, .attrs = Rot90Attrs{4}}};
  }
};

struct CountsAttrs {
  Shape counts{};
  static constexpr auto fields = attr_list(attr("counts", &CountsAttrs::counts));
};

struct Tile {
  using Attributes = CountsAttrs;
  static constexpr auto name = "tile";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    const int lead = out[0].shape.rank() - in[0].shape.rank();
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from;
      for (int k = 0; k < in[0].shape.rank(); ++k) from.push_back(i[k + lead] % in[0].shape[k]);
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}}, .attrs = CountsAttrs{{2}}},
            {.inputs = {{{2, 3}}}, .attrs = CountsAttrs{{2, 2}}},
            {.inputs = {{{2, 3}}}, .attrs = CountsAttrs{{2}}},
            {.inputs = {{{2}}}, .attrs = CountsAttrs{{2, 1, 3}}},
            {.inputs = {{{}}}, .attrs = CountsAttrs{{2, 2}}},
            {.inputs = {{{2, 2}}}, .attrs = CountsAttrs{{0, 2}}},
            {.inputs = {{{2, 2}, Dtype::i64}}, .attrs = CountsAttrs{{1, 2}}, .indices = counted()}};
  }
};

struct InterleaveAttrs {
  int axis = 0;
  std::int64_t n = 1;
  static constexpr auto fields = attr_list(attr("axis", &InterleaveAttrs::axis), attr("n", &InterleaveAttrs::n));
};

struct RepeatInterleave {
  using Attributes = InterleaveAttrs;
  static constexpr auto name = "repeat_interleave";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from[a.axis] /= a.n;
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}}, .attrs = InterleaveAttrs{0, 2}},
            {.inputs = {{{2, 3}}}, .attrs = InterleaveAttrs{0, 3}},
            {.inputs = {{{2, 3, 2}}}, .attrs = InterleaveAttrs{1, 2}},
            {.inputs = {{{2, 2}}}, .attrs = InterleaveAttrs{1, 0}},
            {.inputs = {{{3}, Dtype::boolean}}, .attrs = InterleaveAttrs{0, 2}, .indices = {1, 0, 1}}};
  }
};

struct MeshgridAttrs {
  bool xy = false;
  static constexpr auto fields = attr_list(attr("xy", &MeshgridAttrs::xy));
};

struct Meshgrid {
  using Attributes = MeshgridAttrs;
  static constexpr auto name = "meshgrid";
  /// Returns the axis of the result along which vector k of n runs.
  static int axis(std::size_t k, std::size_t n, const Attributes& a) {
    return static_cast<int>(a.xy && n > 1 && k < 2 ? 1 - k : k);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (std::size_t k = 0; k < out.size(); ++k)
      for_each_index(out[k].shape, [&](const Shape& i) {
        out[k].at(i) = in[k].values[static_cast<std::size_t>(i[axis(k, out.size(), a)])];
      });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}, {{2}}}, .attrs = MeshgridAttrs{}},
            {.inputs = {{{3}}, {{2}}, {{4}}}, .attrs = MeshgridAttrs{true}},
            {.inputs = {{{3}}}, .attrs = MeshgridAttrs{true}},
            {.inputs = {{{2}}, {{}}}, .attrs = MeshgridAttrs{}},
            {.inputs = {{{2}}, {{0}}}, .attrs = MeshgridAttrs{}}};
  }
};

struct MovedimAttrs {
  Shape from{}, to{};
  static constexpr auto fields = attr_list(attr("from", &MovedimAttrs::from), attr("to", &MovedimAttrs::to));
};

struct Movedim {
  using Attributes = MovedimAttrs;
  static constexpr auto name = "movedim";
  /// Returns the operand's axis at each place of the result.
  static Shape order(int rank, const Attributes& a) {
    Shape places = Shape::filled(rank, -1), left = Shape::filled(rank, 1);
    for (int k = 0; k < a.from.rank(); ++k) {
      places[static_cast<int>(a.to[k])] = a.from[k];
      left[static_cast<int>(a.from[k])] = 0;
    }
    int next = 0;
    for (int i = 0; i < rank; ++i) {
      if (places[i] >= 0) continue;
      while (left[next] == 0) ++next;
      places[i] = next++;
    }
    return places;
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Shape axes = order(in[0].shape.rank(), a);
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      for (int k = 0; k < i.rank(); ++k) from[static_cast<int>(axes[k])] = i[k];
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}}, .attrs = MovedimAttrs{{0}, {2}}},
            {.inputs = {{{2, 3, 4, 2}}}, .attrs = MovedimAttrs{{3, 0}, {1, 3}}},
            {.inputs = {{{2, 0}}}, .attrs = MovedimAttrs{{0}, {1}}}};
  }
};

const Added added = add<Roll, Rot90, Tile, RepeatInterleave, Meshgrid, Movedim>();

}  // namespace
}  // namespace oracles::arrangement
