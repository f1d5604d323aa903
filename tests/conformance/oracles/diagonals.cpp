// Oracles and samples of tensor/ops/shapes.cpp.
#include <algorithm>
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::diagonals {
namespace {

struct OffsetAttrs {
  std::int64_t offset = 0;
  static constexpr auto fields = attr_list(attr("offset", &OffsetAttrs::offset));
};

std::vector<Sample> triangles() {
  std::vector<Sample> list;
  for (const std::int64_t offset : {0, 1, -2, 9, -9})
    list.push_back({.inputs = {{{3, 4}}}, .attrs = OffsetAttrs{offset}});
  list.push_back({.inputs = {{{2, 3, 2}}}, .attrs = OffsetAttrs{-1}});
  list.push_back({.inputs = {{{0, 2}}}, .attrs = OffsetAttrs{0}});
  list.push_back({.inputs = {{{3, 3}, Dtype::i32}}, .attrs = OffsetAttrs{0}, .indices = {1, 2, 3, 4}});
  list.push_back({.inputs = {{{3, 3}, Dtype::boolean}}, .attrs = OffsetAttrs{0}, .indices = {1}});
  return list;
}

struct Tril {
  using Attributes = OffsetAttrs;
  static constexpr auto name = "tril";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = i[-1] <= i[-2] + a.offset ? in[0].at(i) : 0; });
  }
  static std::vector<Sample> samples() { return triangles(); }
};

struct Triu {
  using Attributes = OffsetAttrs;
  static constexpr auto name = "triu";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = i[-1] >= i[-2] + a.offset ? in[0].at(i) : 0; });
  }
  static std::vector<Sample> samples() { return triangles(); }
};

struct DiagonalAttrs {
  std::int64_t offset = 0;
  int axis1 = 0, axis2 = 1;
  static constexpr auto fields = attr_list(attr("offset", &DiagonalAttrs::offset), attr("axis1", &DiagonalAttrs::axis1),
                                           attr("axis2", &DiagonalAttrs::axis2));
};

/// The beginning and the length of a diagonal of a matrix.
struct Line {
  std::int64_t row = 0, column = 0, length = 0;
};

Line line_of(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  Line line{std::max<std::int64_t>(0, -offset), std::max<std::int64_t>(0, offset)};
  line.length = std::max<std::int64_t>(0, std::min(rows - line.row, columns - line.column));
  return line;
}

struct Diagonal {
  using Attributes = DiagonalAttrs;
  static constexpr auto name = "diagonal";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Line line = line_of(in[0].shape[a.axis1], in[0].shape[a.axis2], a.offset);
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from;
      int next = 0;
      for (int k = 0; k < in[0].shape.rank(); ++k)
        from.push_back(k == a.axis1 ? line.row + i[-1] : k == a.axis2 ? line.column + i[-1] : i[next++]);
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}}, .attrs = DiagonalAttrs{}},
            {.inputs = {{{3, 4}}}, .attrs = DiagonalAttrs{2, 1, 0}},
            {.inputs = {{{2, 3, 4}}}, .attrs = DiagonalAttrs{-1, 0, 2}},
            {.inputs = {{{3, 2}}}, .attrs = DiagonalAttrs{5, 0, 1}},
            {.inputs = {{{3, 0}}}, .attrs = DiagonalAttrs{0, 0, 1}},
            {.inputs = {{{3, 3}, Dtype::i64}}, .attrs = DiagonalAttrs{}, .indices = {5, 6, 7, 8}}};
  }
};

struct DiagEmbed {
  using Attributes = DiagonalAttrs;
  static constexpr auto name = "diag_embed";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Line line = line_of(out[0].shape[a.axis1], out[0].shape[a.axis2], a.offset);
    for_each_index(in[0].shape, [&](const Shape& i) {
      Shape to;
      int next = 0;
      for (int k = 0; k < out[0].shape.rank(); ++k)
        to.push_back(k == a.axis1 ? line.row + i[-1] : k == a.axis2 ? line.column + i[-1] : i[next++]);
      out[0].at(to) = in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3}}}, .attrs = DiagonalAttrs{0, 0, 1}},
            {.inputs = {{{2, 3}}}, .attrs = DiagonalAttrs{2, 1, 2}},
            {.inputs = {{{2, 3}}}, .attrs = DiagonalAttrs{-1, 2, 0}},
            {.inputs = {{{0}}}, .attrs = DiagonalAttrs{1, 0, 1}},
            {.inputs = {{{2, 0}}}, .attrs = DiagonalAttrs{0, 1, 2}},
            {.inputs = {{{3}, Dtype::i64}}, .attrs = DiagonalAttrs{1, 0, 1}, .indices = {5, 6, 7}}};
  }
};

struct Trace {
  static constexpr auto name = "trace";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for (std::int64_t i = 0; i < std::min(in[0].shape[0], in[0].shape[1]); ++i) out[0].at({}) += in[0].at({i, i});
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}}},
            {.inputs = {{{2, 0}}}},
            {.inputs = {{{2, 2}, Dtype::i32}}, .indices = {2147483647, 0, 0, 1}}};
  }
};

const Added added = add<Tril, Triu, Diagonal, DiagEmbed, Trace>();

}  // namespace
}  // namespace oracles::diagonals
