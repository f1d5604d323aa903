// Every wrong call of activations, norms and rearrangements is refused with its type of error and its full message.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <vector>

#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/shapes.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using support::check_refused;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Tensor kVector = ones({3}), kMatrix = ones({2, 3}), kCube = ones({2, 3, 4}), kNumber = ones({});
const Tensor kIntegers = ones({2, 3}, Dtype::i64), kDoubles = ones({2, 3}, Dtype::f64), kNone = ones({2, 0});
const Tensor kMask = Tensor::from({true, true, true});

}  // namespace

BOOST_AUTO_TEST_SUITE(composed_errors)

BOOST_AUTO_TEST_CASE(dtypes) {
  check_refused<DtypeError>({
      {[] { relu6(kIntegers); }, "relu6: dtype i64 is not supported; cast it to a float first"},
      {[] { prelu(kMatrix, ones({3}, Dtype::f64)); }, "prelu: dtypes differ: f32[2, 3] and f64[3]; cast one of them"},
      {[] { glu(kIntegers); }, "glu: dtype i64 is not supported; cast it to a float first"},
      {[] { norm(kIntegers); }, "norm: dtype i64 is not supported; cast it to a float first"},
      {[] { stddev(kIntegers); }, "stddev: dtype i64 is not supported; cast it to a float first"},
      {[] { nanmean(kIntegers); }, "nanmean: dtype i64 is not supported; cast it to a float first"},
      {[] { cosine_similarity(kMatrix, kDoubles); },
       "cosine_similarity: dtypes differ: f32[2, 3] and f64[2, 3]; cast one of them"},
      {[] { pairwise_distance(kMatrix, kDoubles); },
       "pairwise_distance: dtypes differ: f32[2, 3] and f64[2, 3]; cast one of them"},
      {[] { cdist(kMatrix, kDoubles); }, "cdist: dtypes differ: f32[2, 3] and f64[2, 3]; cast one of them"},
      {[] { masked_fill(kVector, kVector, 0); }, "masked_fill: the mask must be bool, got f32[3]"},
      {[] { einsum("ij->i", {kIntegers}); }, "einsum: dtype i64 is not supported; cast it to a float first"},
      {[] {
         einsum("ij,ij", {kMatrix, kDoubles});
       },
       "einsum: dtypes differ: f32[2, 3] and f64[2, 3]"},
      {[] { tensordot(kIntegers, kIntegers); }, "tensordot: dtype i64 is not supported; cast it to a float first"},
      {[] { vander(ones({3}, Dtype::i32)); }, "vander: dtype i32 is not supported; cast it to a float first"},
  });
}

BOOST_AUTO_TEST_CASE(values) {
  check_refused<ValueError>({
      {[] { celu(kVector, 0); }, "celu: alpha must not be 0, got 0.0"},
      {[] { rrelu(kVector, 0.5, 0.25); }, "rrelu: the lower bound must not exceed the upper 0.25, got 0.5"},
      {[] { rrelu(kVector, -kInfinity, 0); }, "rrelu: the lower bound must be finite, got -inf"},
      {[] { rrelu(kVector, 0, kNan); }, "rrelu: the upper bound must be finite, got nan"},
      {[] { hardtanh(kVector, 1, -1); }, "hardtanh: low must not exceed high -1.0, got 1.0"},
      {[] { softshrink(kVector, -1); }, "softshrink: lambda must not be negative, got -1.0"},
      {[] { hardshrink(kVector, kNan); }, "hardshrink: lambda must be a number, got nan"},
      {[] { norm(kVector, {.p = kNan}); }, "norm: p must be a number, got nan"},
      {[] { stddev(kVector, {}, false, kInfinity); }, "stddev: the correction must be finite, got inf"},
      {[] { normalize(kMatrix, {.epsilon = -1}); }, "normalize: epsilon must not be negative, got -1.0"},
      {[] { cosine_similarity(kMatrix, kMatrix, 1, kNan); },
       "cosine_similarity: epsilon must not be negative, got nan"},
      {[] { cdist(kMatrix, kMatrix, -1); }, "cdist: p must not be negative, got -1.0"},
      {[] {
         roll(kMatrix, {1, 1});
       },
       "roll: without axes one shift is needed, got [1, 1]"},
      {[] {
         roll(kMatrix, {1}, {0, 1});
       },
       "roll: one shift for each axis is needed, got [1] for axes [0, 1]"},
      {[] { rot90(kMatrix, 1, {0}); }, "rot90: two axes are needed, got [0]"},
      {[] {
         tile(kMatrix, {2, -1});
       },
       "tile: counts must not be negative, got [2, -1]"},
      {[] { repeat(kMatrix, {2}); }, "repeat: a count for every axis of [2, 3] is needed, got [2]"},
      {[] {
         repeat(kMatrix, {2, -1});
       },
       "repeat: counts must not be negative, got [2, -1]"},
      {[] { repeat_interleave(kMatrix, -1); }, "repeat_interleave: the count must not be negative, got -1"},
      {[] {
         repeat_interleave(kMatrix, std::vector<std::int64_t>{1, -2}, 0);
       },
       "repeat_interleave: counts must not be negative, got -2"},
      {[] { meshgrid({}); }, "meshgrid: at least one vector is needed"},
      {[] {
         movedim(kMatrix, {0, 1}, {1});
       },
       "movedim: axes [0, 1] and [1] are not as many"},
      {[] { unflatten(kMatrix, 0, {}); }, "unflatten: at least one extent is needed, got []"},
      {[] { hstack({}); }, "hstack: at least one tensor is needed"},
      {[] { vstack({}); }, "vstack: at least one tensor is needed"},
      {[] { tensordot(kMatrix, kMatrix, 3); },
       "tensordot: the number of axes must lie in 0..the ranks of [2, 3] and [2, 3], got 3"},
      {[] {
         tensordot(kMatrix, kMatrix, {0, 1}, {1});
       },
       "tensordot: axes [0, 1] and [1] are not as many"},
      {[] { vander(kVector, -2); }, "vander: the number of powers must not be negative, got -2"},
  });
}

BOOST_AUTO_TEST_CASE(equations) {
  const auto sums = [](const char* equation) { return [=] { einsum(equation, {kMatrix, kMatrix}); }; };
  check_refused<ValueError>({
      {sums("ij,jk,kl"), "einsum: \"ij,jk,kl\" has 3 operands, got 2"},
      {sums("ij"), "einsum: \"ij\" has 1 operands, got 2"},
      {sums("i1,jk"), "einsum: '1' stands where a letter, \",\", \"->\" or \"...\" may stand: \"i1,jk\""},
      {sums("ij,jk->i->k"), "einsum: '-' stands where a letter, \",\", \"->\" or \"...\" may stand: \"ij,jk->i->k\""},
      {sums("ij,jk->i,k"), "einsum: ',' stands where a letter, \",\", \"->\" or \"...\" may stand: \"ij,jk->i,k\""},
      {sums("i..,jk"), "einsum: '.' stands where a letter, \",\", \"->\" or \"...\" may stand: \"i..,jk\""},
      {sums("i......,jk"), "einsum: one \"...\" for an operand is allowed: \"i......,jk\""},
      {sums("ij,ij->iji"), "einsum: the result has the axis 'i' more than once: \"ij,ij->iji\""},
      {sums("ij,ij->k"), "einsum: no operand has the result's axis 'k': \"ij,ij->k\""},
  });
  check_refused<ShapeError>({
      {sums("ijk,ij"), "einsum: operand 0 of \"ijk,ij\" has the shape [2, 3]"},
      {sums("ij,i"), "einsum: operand 1 of \"ij,i\" has the shape [2, 3]"},
      {sums("ij,ji"), "einsum: extents 3 and 2 of one axis differ in \"ij,ji\""},
      {sums("ii,jk"), "einsum: extents 2 and 3 of one axis differ in \"ii,jk\""},
      {[] {
         einsum("abcde,fghij", {ones({1, 1, 1, 1, 1}), ones({1, 1, 1, 1, 1})});
       },
       "einsum: the result of \"abcde,fghij\" has more than 8 axes"},
      {[] {
         einsum("abcde,fghij->", {ones({2, 2, 2, 2, 2}), ones({2, 2, 2, 2, 2})});
       },
       "nothing"},
      {[] {
         einsum("abcde,fghij,abcdefgh->ij", {ones({1, 1, 1, 1, 1}), ones({1, 1, 1, 1, 1}), ones(Shape::filled(8, 1))});
       },
       "einsum: a product of two operands has 10 axes, more than 8; sum some of them or change the order of the "
       "operands"},
  });
}

BOOST_AUTO_TEST_CASE(shapes) {
  check_refused<ShapeError>({
      {[] { prelu(kMatrix, ones({2})); },
       "prelu: the weight must hold one element or one for each of 3 channels, got [2]"},
      {[] {
         prelu(kMatrix, ones({1, 3}));
       },
       "prelu: the weight must hold one element or one for each of 3 channels, got [1, 3]"},
      {[] { glu(kMatrix); }, "glu: axis -1 of [2, 3] has no two halves"},
      {[] { norm(kNone, {.p = kInfinity, .axes = {1}}); }, "norm: no elements to choose from with p = inf: [2, 0]"},
      {[] { norm(kNone, {.p = -1}); }, "norm: no elements to choose from with p = -1.0: [2, 0]"},
      {[] { cdist(kVector, kMatrix); }, "cdist: [..., P, M] and [..., R, M] are needed, got [3] and [2, 3]"},
      {[] { cdist(kMatrix, kNone); }, "cdist: [..., P, M] and [..., R, M] are needed, got [2, 3] and [2, 0]"},
      {[] { pairwise_distance(kNumber, kNumber); }, "pairwise_distance: the operands need an axis: [] and []"},
      {[] { tril(kVector); }, "tril: at least two axes are needed, got [3]"},
      {[] { triu(kVector); }, "triu: at least two axes are needed, got [3]"},
      {[] { diagonal(kVector); }, "diagonal: at least two axes are needed, got [3]"},
      {[] { diagonal(kMatrix, 0, 1, -1); }, "diagonal: the axes must differ: 1 and -1"},
      {[] { diag_embed(kNumber); }, "diag_embed: at least one axis is needed, got []"},
      {[] { diag_embed(kVector, 0, 1, -1); }, "diag_embed: the axes must differ: 1 and -1"},
      {[] { diag(kCube); }, "diag: a vector or a matrix is needed, got [2, 3, 4]"},
      {[] { trace(kVector); }, "trace: a matrix is needed, got [3]"},
      {[] {
         rot90(kMatrix, 1, {0, -2});
       },
       "rot90: the axes must differ: [0, -2]"},
      {[] { repeat_interleave(kMatrix, std::vector<std::int64_t>{1}, 0); },
       "repeat_interleave: 1 counts for axis 0 of [2, 3]"},
      {[] {
         meshgrid({kVector, kMatrix});
       },
       "meshgrid: vectors are needed, got [2, 3]"},
      {[] { masked_fill(kNumber, kMask, 0); }, "masked_fill: mask [3] does not broadcast to []"},
      {[] { masked_fill(kMatrix, kMask, kVector); }, "masked_fill: the value must have rank 0, got [3]"},
      {[] {
         movedim(kMatrix, {0, 0}, {0, 1});
       },
       "movedim: axis 0 is given twice"},
      {[] {
         unflatten(kMatrix, 1, {2, 2});
       },
       "unflatten: [2, 2] does not divide axis 1 of [2, 3]"},
      {[] {
         unflatten(kMatrix, 1, {-1, -1});
       },
       "unflatten: [-1, -1] does not divide axis 1 of [2, 3]"},
      {[] {
         unflatten(kMatrix, 1, {-2, 3});
       },
       "unflatten: extents must not be negative: [-2, 3]"},
      {[] { tensordot(kMatrix, kMatrix, {0}, {1}); },
       "tensordot: extents differ: axis 0 of [2, 3] and axis 1 of [2, 3]"},
      {[] {
         tensordot(kMatrix, kMatrix, {0, 0}, {0, 1});
       },
       "tensordot: axis 0 is given twice"},
      {[] { outer(kMatrix, kVector); }, "outer: operands of ranks 1 and 1 are needed, got [2, 3] and [3]"},
      {[] { bmm(kMatrix, kMatrix); }, "bmm: operands of ranks 3 and 3 are needed, got [2, 3] and [2, 3]"},
      {[] {
         bmm(kCube, ones({1, 4, 2}));
       },
       "bmm: batches differ: [2, 3, 4] and [1, 4, 2]"},
      {[] { mv(kVector, kVector); }, "mv: operands of ranks 2 and 1 are needed, got [3] and [3]"},
      {[] { dot(kMatrix, kVector); }, "dot: operands of ranks 1 and 1 are needed, got [2, 3] and [3]"},
      {[] { cross(kMatrix, kMatrix, 0); }, "cross: axis 0 must have extent 3: [2, 3] and [2, 3]"},
      {[] { vander(kMatrix); }, "vander: a vector is needed, got [2, 3]"},
  });
}

BOOST_AUTO_TEST_SUITE_END()
