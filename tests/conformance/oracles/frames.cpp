// Oracles and samples of tensor/ops/signal.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::frames {
namespace {

struct FrameAttrs {
  std::int64_t size = 1, hop = 1;
  static constexpr auto fields = attr_list(attr("size", &FrameAttrs::size), attr("hop", &FrameAttrs::hop));
};

struct OverlapAttrs {
  std::int64_t hop = 1, length = 1;  ///< `length` is that of the result: whole frames, and less than a hop more
  static constexpr auto fields = attr_list(attr("hop", &OverlapAttrs::hop), attr("length", &OverlapAttrs::length));
};

struct Framed {
  using Attributes = FrameAttrs;
  static constexpr auto name = "frame";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from.erase(from.rank() - 1);
      from[-1] = i[-2] * a.hop + i[-1];
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 9}}}, .attrs = FrameAttrs{4, 2}},
            {.inputs = {{{9}}}, .attrs = FrameAttrs{2, 3}},
            {.inputs = {{{2, 2, 5}}}, .attrs = FrameAttrs{5, 1}},
            {.inputs = {{{7}}}, .attrs = FrameAttrs{1, 9}},
            {.inputs = {{{0, 7}}}, .attrs = FrameAttrs{3, 1}}};
  }
};

struct OverlapAdd {
  using Attributes = OverlapAttrs;
  static constexpr auto name = "overlap_add";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(in[0].shape, [&](const Shape& i) {
      Shape to = i;
      to.erase(to.rank() - 1);
      to[-1] = i[-2] * a.hop + i[-1];
      out[0].at(to) += in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}}, .attrs = OverlapAttrs{2, 8}},
            {.inputs = {{{3, 4}}}, .attrs = OverlapAttrs{3, 12}},
            {.inputs = {{{2, 2}}}, .attrs = OverlapAttrs{3, 5}},
            {.inputs = {{{2, 1, 5}}}, .attrs = OverlapAttrs{1, 5}},
            {.inputs = {{{0, 2, 3}}}, .attrs = OverlapAttrs{1, 4}}};
  }
};

const Added added = add<Framed, OverlapAdd>();

}  // namespace
}  // namespace oracles::frames
