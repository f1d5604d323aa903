/// Random orders: permutations, and tensors shuffled by them.
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/draws.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

struct PermutationAttrs : KeyAttrs {
  std::int64_t n = 0;
  static constexpr auto fields = KeyAttrs::fields.with(attr("n", &PermutationAttrs::n));
  PermutationAttrs() = default;
  PermutationAttrs(const KeyAttrs& key, std::int64_t count) : KeyAttrs(key), n(count) {}
};

struct Permutation {
  using Attributes = PermutationAttrs;
  static constexpr auto name = "permutation", onnx = "", stablehlo = "";
  static constexpr auto summary = "0..n - 1 in random order (Fisher and Yates)";
  static constexpr Effects effects{.draws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes& a) {
    if (a.n < 0) throw ValueError("permutation: the length must not be negative, got " + std::to_string(a.n));
    check_key(name, in, 0);
    return {{{a.n}, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const NewFrame frame;
    copy_to(Writer::raw(out[0]), ferrite::permutation(a.n, key_of(in, 0, a)));
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
  static constexpr auto name = "shuffle", onnx = "", summary = "slices along an axis in the order of a permutation";
  static Tensor parts(Inputs in, const Attributes& a) {
    InlineVector<const Tensor*, 4> operands;
    for (std::size_t i = 1; i < in.size(); ++i) operands.push_back(&in[i]);
    const Tensor order =
        call(structured<Permutation>, {operands.data(), operands.size()}, PermutationAttrs(a, in[0].shape()[a.axis]));
    return index_select(in[0], a.axis, order);
  }
};

}  // namespace

Family permutation_family() {
  static constexpr const Primitive* list[] = {&structured<Permutation>};
  return list;
}
Family composite_permutation_family() {
  static constexpr const Primitive* list[] = {&composite<Shuffle>};
  return list;
}

}  // namespace detail

Tensor permutation(std::int64_t n, const DrawKey& key) {
  Tensor out = detail::call(detail::structured<detail::Permutation>, detail::DrawOperands({}, key),
                            detail::PermutationAttrs(detail::KeyAttrs::of(key.constant()), n));
  key.drawn();
  return out;
}

Tensor shuffle(const Tensor& x, const DrawKey& key, std::int64_t axis) {
  const detail::ShuffleAttrs attrs(detail::KeyAttrs::of(key.constant()), axis_of(axis, x.rank(), "shuffle"));
  Tensor out = detail::composed<detail::Shuffle>(detail::DrawOperands({&x}, key), attrs);
  key.drawn();
  return out;
}

Tensor shuffle(const Tensor& x, const RandomKey& key, std::int64_t axis) { return shuffle(x, DrawKey(key), axis); }

}  // namespace ferrite
