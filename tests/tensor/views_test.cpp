// Views and assembling, compared with Python's and NumPy's rules written out as numbers.
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor counting(const Shape& shape) { return reshape(arange(shape.numel()), shape); }
Tensor ints(std::vector<std::int64_t> v, const Shape& shape) { return Tensor::from(v, shape); }
bool shares(const Tensor& view, const Tensor& x) { return view.raw() == x.raw(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(views)

BOOST_AUTO_TEST_CASE(slices_follow_python) {
  const Tensor x = arange(7);
  BOOST_TEST(identical(slice(x, 0, 1, 4), ints({1, 2, 3}, {3})));
  BOOST_TEST(identical(slice(x, 0, -3), ints({4, 5, 6}, {3})));
  BOOST_TEST(identical(slice(x, 0, 0, -2, 2), ints({0, 2, 4}, {3})));
  BOOST_TEST(identical(slice(x, 0, kEnd, kEnd, -1), ints({6, 5, 4, 3, 2, 1, 0}, {7})));
  BOOST_TEST(identical(slice(x, 0, 5, 1, -2), ints({5, 3}, {2})));
  BOOST_TEST(identical(slice(x, 0, -100, 100), x));
  BOOST_TEST(slice(x, 0, 5, 2).numel() == 0);
  BOOST_TEST(slice(x, 0, 9).numel() == 0);
  BOOST_CHECK_EXCEPTION((void)slice(x, 0, 0, 3, 0), ValueError, says("step must not be 0"));
  BOOST_CHECK_EXCEPTION((void)slice(x, 1, 0), ShapeError, says("slice: axis 1 is out of range for rank 1"));
}

BOOST_AUTO_TEST_CASE(a_view_shares_elements) {
  const Tensor x = counting({3, 4});
  const Tensor row = select(x, 0, 1);
  BOOST_TEST((row.data<std::int64_t>() == x.data<std::int64_t>() + 4));
  BOOST_TEST(shares(reshape(x, {12}), x));
  BOOST_TEST(!shares(reshape(transpose(x), {12}), x));
  BOOST_TEST(identical(reshape(transpose(x), {12}), ints({0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, {12})));
}

BOOST_AUTO_TEST_CASE(a_view_outlives_its_base) {
  Tensor row;
  {
    const Tensor x = counting({300, 40});
    row = select(x, 0, 299);
  }
  BOOST_TEST(row.to_vector<std::int64_t>().front() == 299 * 40);
}

BOOST_AUTO_TEST_CASE(reshape_infers_one_extent) {
  const Tensor x = counting({3, 4});
  BOOST_TEST(reshape(x, {2, -1}).shape().str() == "[2, 6]");
  BOOST_CHECK_EXCEPTION((void)reshape(x, {5, -1}), ShapeError,
                        says("reshape: numbers of elements differ: [3, 4] to [5, -1]"));
  BOOST_CHECK_EXCEPTION((void)reshape(x, {-1, -1}), ShapeError, says("one at most -1"));
}

BOOST_AUTO_TEST_CASE(reshape_of_strided_windows_keeps_views_where_it_can) {
  const Tensor x = counting({4, 6});
  const Tensor columns = slice(x, 1, 0, 3);  // strides [6, 1]
  BOOST_TEST(identical(reshape(columns, {2, 2, 3}), contiguous(reshape(contiguous(columns), {2, 2, 3}))));
  BOOST_TEST(shares(reshape(columns, {2, 2, 3}), x));
  BOOST_TEST(!shares(reshape(columns, {12}), x));
}

BOOST_AUTO_TEST_CASE(permute_flip_squeeze_unsqueeze) {
  const Tensor x = counting({1, 2, 3});
  BOOST_TEST(permute(x, {2, 0, 1}).shape().str() == "[3, 1, 2]");
  BOOST_TEST(identical(flip(counting({2, 2}), {0, 1}), ints({3, 2, 1, 0}, {2, 2})));
  BOOST_TEST(squeeze(x, 0).shape().str() == "[2, 3]");
  BOOST_TEST(squeeze(counting({1, 2, 1})).shape().str() == "[2]");
  BOOST_TEST(unsqueeze(x, -1).shape().str() == "[1, 2, 3, 1]");
  BOOST_CHECK_EXCEPTION((void)squeeze(x, 1), ShapeError, says("squeeze: axis 1 of [1, 2, 3] is not of extent 1"));
  BOOST_CHECK_EXCEPTION((void)permute(x, {0, 0, 1}), ShapeError, says("given twice"));
  BOOST_TEST(flatten(counting({2, 3, 4}), 1).shape().str() == "[2, 12]");
}

BOOST_AUTO_TEST_CASE(split_chunk_unbind) {
  const Tensor x = counting({5, 2});
  const Tensors parts = split(x, 2);
  BOOST_TEST(parts.size() == 3U);
  BOOST_TEST(identical(parts[2], ints({8, 9}, {1, 2})));
  BOOST_TEST(chunk(x, 2).size() == 2U);
  BOOST_TEST(chunk(x, 2)[0].shape().str() == "[3, 2]");
  const std::vector<std::int64_t> sizes = {1, 4};
  BOOST_TEST(identical(split(x, sizes)[1], slice(x, 0, 1)));
  const std::vector<std::int64_t> wrong = {1, 3};
  BOOST_CHECK_EXCEPTION((void)split(x, wrong), ShapeError, says("sizes add up to 4"));
  BOOST_TEST(unbind(x, 1)[1].shape().str() == "[5]");
}

BOOST_AUTO_TEST_CASE(expand_repeats_without_copying) {
  const Tensor x = counting({3, 1});
  const Tensor y = expand(x, {2, -1, 4});
  BOOST_TEST(y.shape().str() == "[2, 3, 4]");
  BOOST_TEST(y.strides().str() == "[0, 1, 0]");
  BOOST_TEST(identical(select(select(y, 0, 1), 1, 3), ints({0, 1, 2}, {3})));
  BOOST_CHECK_EXCEPTION((void)expand(x, {4, 4}), ShapeError, says("expand: [3, 1] does not broadcast to [4, 4]"));
}

BOOST_AUTO_TEST_CASE(concat_stack_pad) {
  const Tensor a = counting({2, 2});
  BOOST_TEST(identical(concat({a, a}, 1), ints({0, 1, 0, 1, 2, 3, 2, 3}, {2, 4})));
  BOOST_TEST(stack({a, a}, -1).shape().str() == "[2, 2, 2]");
  BOOST_TEST(identical(pad(a, {0, 1}, {1, 0}, 9), ints({9, 0, 1, 9, 2, 3, 9, 9, 9}, {3, 3})));
  BOOST_TEST(identical(pad(a, {-1, 0}, {0, -1}, 0), ints({2}, {1, 1})));
  BOOST_CHECK_EXCEPTION((void)concat({a, counting({2})}), ShapeError, says("concat: shapes differ"));
  BOOST_CHECK_EXCEPTION((void)pad(a, {0}, {0, 0}), ShapeError, says("one amount for each axis"));
  BOOST_CHECK_EXCEPTION((void)pad(a, {-3, 0}, {0, 0}), ShapeError, says("crop more"));
}

BOOST_AUTO_TEST_CASE(indexing_checks_its_indices) {
  const Tensor x = counting({3, 2});
  BOOST_TEST(identical(index_select(x, 0, ints({2, -1, 0}, {3})), ints({4, 5, 4, 5, 0, 1}, {3, 2})));
  BOOST_TEST(identical(gather(x, 1, ints({1, 0, 1}, {3, 1})), ints({1, 2, 5}, {3, 1})));
  BOOST_TEST(identical(scatter_add(zeros({3}, Dtype::i64), 0, ints({0, 2, 0}, {3}), ints({1, 5, 10}, {3})),
                       ints({11, 0, 5}, {3})));
  BOOST_CHECK_EXCEPTION((void)index_select(x, 0, ints({3}, {1})), ShapeError, says("index 3 is out of range"));
  BOOST_CHECK_EXCEPTION((void)gather(x, 0, ints({-4}, {1, 1})), ShapeError, says("index -4 is out of range"));
  BOOST_CHECK_EXCEPTION((void)index_select(x, 0, ones({1})), DtypeError, says("must be i64 or i32"));
  BOOST_TEST(identical(one_hot(ints({1, 0}, {2}), 3, Dtype::i64), ints({0, 1, 0, 1, 0, 0}, {2, 3})));
}

BOOST_AUTO_TEST_CASE(creation) {
  BOOST_TEST(identical(arange(5, 0, -2), ints({5, 3, 1}, {3})));
  BOOST_TEST(arange(0.0, 1.0, 0.25).numel() == 4);
  BOOST_TEST(arange(3, 3).numel() == 0);
  BOOST_TEST(identical(cast(eye(2, 3), Dtype::i64), ints({1, 0, 0, 0, 1, 0}, {2, 3})));
  BOOST_TEST(identical(linspace(0, 1, 3, Dtype::f64), Tensor::from({0.0, 0.5, 1.0})));
  BOOST_CHECK_EXCEPTION((void)arange(0, 1, 0), ValueError, says("step must not be 0"));
  BOOST_CHECK_EXCEPTION((void)full({2}, 0.5, Dtype::i32), DtypeError, says("float literal 0.5"));
}

BOOST_AUTO_TEST_CASE(reductions_of_nothing) {
  const Tensor none = zeros({2, 0});
  BOOST_TEST(identical(sum(none, {1}), zeros({2})));
  BOOST_TEST(identical(prod(none, {1}), ones({2})));
  BOOST_TEST(std::isnan(mean(none).item()));
  BOOST_CHECK_EXCEPTION((void)amax(none, {1}), ShapeError, says("amax: no elements to choose from: [2, 0]"));
  BOOST_CHECK_EXCEPTION((void)argmax(none, 1), ShapeError, says("argmax: no elements"));
  BOOST_TEST(softmax(none, 1).shape().str() == "[2, 0]");
  BOOST_TEST(matmul(zeros({2, 0}), zeros({0, 3})).shape().str() == "[2, 3]");
  BOOST_TEST(sum(matmul(zeros({2, 0}), zeros({0, 3}))).item() == 0.0F);
}

BOOST_AUTO_TEST_CASE(dtype_rules) {
  const Tensor i = arange(3);
  BOOST_CHECK_EXCEPTION((void)(i + ones({3})), DtypeError,
                        says("add: dtypes differ: i64[3] and f32[3]; cast one of them"));
  BOOST_CHECK_EXCEPTION((void)(i * 0.5), DtypeError, says("mul: float literal 0.5 with a tensor of i64"));
  BOOST_CHECK_EXCEPTION((void)(i / 2), DtypeError, says("div: dtype i64 is not supported"));
  BOOST_CHECK_EXCEPTION((void)mean(i), DtypeError, says("mean: dtype i64"));
  BOOST_CHECK_EXCEPTION((void)exp(i), DtypeError, says("f32 or f64"));
  BOOST_CHECK_EXCEPTION((void)add(1, 2), ValueError, says("every operand is a literal"));
  BOOST_TEST((sum(lt(i, 2)).dtype() == Dtype::i64));
  BOOST_TEST(sum(lt(i, 2)).item<std::int64_t>() == 2);
  BOOST_TEST((argmax(i).dtype() == Dtype::i64));
  BOOST_CHECK_EXCEPTION((void)(ones({2, 3}) + ones({4})), ShapeError,
                        says("add: shapes do not broadcast: [2, 3] with [4]"));
}

BOOST_AUTO_TEST_SUITE_END()
