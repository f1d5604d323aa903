// Gradients through values that are stored as bf16 and f16 are f32.
#include "ferrite/autograd/tape.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {
Tensor sample(const Shape& shape, std::uint64_t stream) { return uniform(shape, {9, stream, 0}, -2, 2); }
}  // namespace

BOOST_AUTO_TEST_SUITE(storage_types)

BOOST_AUTO_TEST_CASE(a_gradient_passes_a_cast_to_bf16_and_back_unrounded) {
  for (const Dtype stored : {Dtype::bf16, Dtype::f16})
    for (const Dtype real : {Dtype::f32, Dtype::f64}) {
      const Tensor x = cast(sample({4, 3}, 1), real), w = sample({4, 3}, 2);
      Tape tape;
      const Tensor v = tape.watch(x);
      const Tensor y = cast(cast(v, stored), Dtype::f32);
      BOOST_TEST(identical(tape.grad(sum(y * w), {v})[0], cast(w, real)));
    }
}

BOOST_AUTO_TEST_CASE(views_of_stored_values_and_two_readers_have_gradients) {
  const Tensor x = sample({4, 3}, 1), w = sample({3, 4}, 2), u = sample({2, 4, 3}, 3), s = sample({2, 3}, 4);
  const auto gradient = [&](Dtype between) {
    Tape tape;
    const Tensor v = tape.watch(x);
    const Tensor y = cast(v, between);
    const auto read = [](const Tensor& t) { return cast(t, Dtype::f32); };
    const Tensor loss = sum(read(transpose(y)) * w) + sum(read(expand(y, {2, 4, 3})) * u) +
                        sum(read(slice(y, 0, 1, 3)) * s) + sum(read(unbind(y, 1)[2])) + sum(read(reshape(y, {12})));
    return tape.grad(loss, {v})[0];
  };
  BOOST_TEST(identical(gradient(Dtype::bf16), gradient(Dtype::f32)));
}

BOOST_AUTO_TEST_CASE(a_watched_bf16_tensor_has_a_gradient_of_f32) {
  const Tensor x = cast(sample({5}, 1), Dtype::bf16), w = sample({5}, 2);
  Tape tape;
  const Tensor v = tape.watch(x), unread = tape.watch(x);
  const Tensors g = tape.grad(sum(cast(v, Dtype::f32) * w), {v, unread});
  BOOST_TEST(identical(g[0], w));
  BOOST_TEST(identical(g[1], zeros({5})));
}

BOOST_AUTO_TEST_CASE(a_stored_result_takes_a_cotangent_of_f32) {
  const Tensor x = sample({3}, 1), d = sample({3}, 2);
  {
    Tape tape;
    const Tensor v = tape.watch(x);
    BOOST_TEST(identical(tape.grad(cast(v, Dtype::bf16), {v}, {}, d)[0], d));
  }
  Tape tape;
  const Tensor v = tape.watch(x);
  const Tensor y = cast(v, Dtype::bf16);
  BOOST_CHECK_EXCEPTION(tape.grad(y, {v}, {}, cast(d, Dtype::bf16)), ShapeError,
                        says("the cotangent bf16[3] does not fit"));
}

BOOST_AUTO_TEST_CASE(bytes_have_no_gradient) {
  Tape tape;
  BOOST_CHECK_EXCEPTION(tape.watch(zeros({2}, Dtype::i8)), DtypeError, says("only floats have gradients, got i8[2]"));
  const Tensor v = tape.watch(sample({2}, 1));
  const Tensor y = sum(cast(cast(v, Dtype::i8), Dtype::f32)) + sum(v);
  BOOST_TEST(identical(tape.grad(y, {v})[0], ones({2})));
}

BOOST_AUTO_TEST_SUITE_END()
