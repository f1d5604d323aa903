// Oracles and samples of tensor/ops/choices.cpp.
#include <algorithm>
#include <vector>

#include "conformance/oracles/draws.h"
#include "ferrite/tensor/ops.h"

namespace oracles::permutations {
namespace {

struct PermutationAttrs : KeyAttrs {
  std::int64_t n = 0;
  static constexpr auto fields = KeyAttrs::fields.with(attr("n", &PermutationAttrs::n));
  PermutationAttrs() = default;
  PermutationAttrs(const KeyAttrs& key, std::int64_t count) : KeyAttrs(key), n(count) {}
};

struct Permutation {
  using Attributes = PermutationAttrs;
  static constexpr auto name = "permutation";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::vector<std::int64_t> order = ferrite::permutation(a.n, key_of(in, 0, a)).to_vector<std::int64_t>();
    std::copy(order.begin(), order.end(), out[0].values.begin());
  }
  static std::vector<Sample> samples() {
    return {{.attrs = PermutationAttrs({7, 11, 2}, 9)},
            {.inputs = {{{2}, Dtype::i64}, {{}, Dtype::i64}}, .attrs = PermutationAttrs({}, 5), .indices = {5, 3, 1}},
            {.attrs = PermutationAttrs({7, 11, 2}, 0)}};
  }
};

struct ShuffleAttrs : KeyAttrs {
  int axis = 0;
  static constexpr auto fields = KeyAttrs::fields.with(attr("axis", &ShuffleAttrs::axis));
  ShuffleAttrs() = default;
  ShuffleAttrs(const KeyAttrs& key, int along) : KeyAttrs(key), axis(along) {}
};

struct Shuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "shuffle";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Tensor order = ferrite::permutation(in[0].shape[a.axis], key_of(in, 1, a));
    const std::vector<std::int64_t> from = order.to_vector<std::int64_t>();
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape at = i;
      at[a.axis] = from[static_cast<std::size_t>(i[a.axis])];
      out[0].at(i) = in[0].at(at);
    });
  }
  static std::vector<Sample> samples() {
    const KeyAttrs key{7, 11, 2};
    return {{.inputs = {{{5, 2}}}, .attrs = ShuffleAttrs(key, 0)},
            {.inputs = {{{2, 6}}, {{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = ShuffleAttrs({}, 1),
             .indices = {5, 3, 1}}};
  }
};

const Added added = add<Permutation, Shuffle>();

}  // namespace
}  // namespace oracles::permutations
