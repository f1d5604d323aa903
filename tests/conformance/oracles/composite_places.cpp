// Oracles and samples of tensor/ops/scatter.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace oracles::composite_places {
namespace {

/// Returns x's shape with `count` axes from `first` on replaced by others.
Shape with_axes(const Shape& x, int first, int count, const Shape& others) {
  Shape s;
  for (int i = 0; i < first; ++i) s.push_back(x[i]);
  for (const std::int64_t e : others) s.push_back(e);
  for (int i = first + count; i < x.rank(); ++i) s.push_back(x[i]);
  return s;
}

struct IndexPutAttrs {
  bool accumulate = false;
  static constexpr auto fields = attr_list(attr("accumulate", &IndexPutAttrs::accumulate));
};

struct IndexPut {
  using Attributes = IndexPutAttrs;
  static constexpr auto name = "index_put";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    out[0].values = in[0].values;
    Shape index;
    for (std::size_t k = 2; k < in.size(); ++k) index = broadcast(index, in[k].shape, name);
    const auto count = static_cast<int>(in.size()) - 2;
    for_each_index(with_axes(in[0].shape, 0, count, index), [&](const Shape& i) {
      Shape to, front;
      for (int k = 0; k < index.rank(); ++k) front.push_back(i[k]);
      for (int k = 0; k < count; ++k)
        to.push_back(position(in[static_cast<std::size_t>(k) + 2].broadcast_at(front), in[0].shape[k]));
      for (int k = index.rank(); k < i.rank(); ++k) to.push_back(i[k]);
      double& place = out[0].at(to);
      place = a.accumulate ? place + in[1].broadcast_at(i) : in[1].broadcast_at(i);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const bool accumulate : {false, true}) {
      const IndexPutAttrs attrs{accumulate};
      list.push_back({.inputs = {{{3, 4}}, {{3}}, {{3}, Dtype::i64}, {{3}, Dtype::i64}},
                      .attrs = attrs,
                      .indices = {0, 2, -3, 1, -1, 1}});
      list.push_back({.inputs = {{{3, 2}}, {{2}}, {{2, 2}, Dtype::i32}}, .attrs = attrs, .indices = {0, 2, 1, 0}});
      list.push_back({.inputs = {{{2, 3, 2}}, {{}}, {{2, 1}, Dtype::i64}, {{2}, Dtype::i64}},
                      .attrs = attrs,
                      .indices = {0, 1, 2, 0}});
    }
    return list;
  }
};

const Added added = add<IndexPut>();

}  // namespace
}  // namespace oracles::composite_places
