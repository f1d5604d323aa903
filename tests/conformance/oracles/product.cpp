// Oracles and samples of tensor/ops/product.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::product {
namespace {

/// a [..., M, K] . b [..., K, N] -> [..., M, N]; `matmul` turns vectors into matrices before.
struct MatMul {
  static constexpr auto name = "matmul";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const std::int64_t K = in[0].shape[-1];
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape ia = i;
      Shape ib = i;
      double s = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        ia[-1] = k;
        ib[-2] = k;
        s += at_matrix(in[0], ia) * at_matrix(in[1], ib);
      }
      out[0].at(i) = s;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}, {{4, 5}}}},          {.inputs = {{{1, 7}}, {{7, 19}}}},
            {.inputs = {{{2, 3, 4}}, {{4, 2}}}},       {.inputs = {{{2, 3, 4}}, {{2, 4, 5}}}},
            {.inputs = {{{2, 1, 3, 4}}, {{3, 4, 2}}}}, {.inputs = {{{2, 0}}, {{0, 3}}}},
            {.inputs = {{{0, 2}}, {{2, 3}}}},          {.inputs = {{{9, 17}}, {{17, 33}}}}};
  }
  static Shape lead(const Shape& s) {
    Shape out;
    for (int i = 0; i + 2 < s.rank(); ++i) out.push_back(s[i]);
    return out;
  }
  /// Returns the element at an index whose last two entries are exact and whose leading ones broadcast.
  static double at_matrix(const Dense& x, const Shape& index) {
    const int lead = index.rank() - x.shape.rank();
    Shape own;
    for (int i = 0; i < x.shape.rank(); ++i) {
      const bool repeated = i + 2 < x.shape.rank() && x.shape[i] == 1;
      own.push_back(repeated ? 0 : index[i + lead]);
    }
    return x.at(own);
  }
};

const Added added = add<MatMul>();

}  // namespace
}  // namespace oracles::product
