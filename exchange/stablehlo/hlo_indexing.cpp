/// Lowering of gathers and scatters.
#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

/// Negative indices count from the end.
HloValue from_the_front(HloBuilder& b, const HloValue& index, std::int64_t extent) {
  const HloValue negative = b.compare("LT", index, b.constant_like(0, index));
  return b.select(negative, b.add(index, b.constant_like(extent, index)), index);
}

/// The coordinates [..., rank] of the elements that an index along an axis means.
HloValue coordinates(HloBuilder& b, const HloValue& index, const HloCall& c) {
  const Shape& x = c.in[0].shape();
  Shape column = index.shape();
  column.push_back(1);
  HloValues columns;
  for (int i = 0; i < x.rank(); ++i) {
    const HloValue along = i == c.axis() ? from_the_front(b, index, x[i]) : b.iota(index.spec, i);
    columns.push_back(b.reshape(along, column));
  }
  return b.concatenate(columns, x.rank());
}

HloValues index_select(HloBuilder& b, const HloCall& c) {
  const HloValue index = from_the_front(b, c.in[1], c.in[0].shape()[c.axis()]);
  return {b.gather_slices(c.in[0], index, c.axis())};
}

HloValues gather(HloBuilder& b, const HloCall& c) { return {b.gather_elements(c.in[0], coordinates(b, c.in[1], c))}; }

/// StableHLO refuses no values: what is checked here is the caller's part there.
HloValues checked(HloBuilder&, const HloCall& c) { return {c.in[0]}; }

HloValues scatter_add(HloBuilder& b, const HloCall& c) {
  if (c.in[1].shape().numel() == 0) return {c.in[0]};
  return {b.scatter_add(c.in[0], coordinates(b, c.in[1], c), c.in[2])};
}

}  // namespace

HloFamily hlo_indexing() {
  static constexpr NamedHloLowering list[] = {
      {"index_select", index_select}, {"gather", gather}, {"scatter_add", scatter_add}, {"checked", checked}};
  return list;
}

}  // namespace ferrite::exchange::detail
