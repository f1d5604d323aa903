// Programs with elements that are only stored: the bits of eager execution, texts, gradients, and errors.
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/graph.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr Dtype kStored[] = {Dtype::bf16, Dtype::f16, Dtype::i8};

Tensor sample(const Shape& shape, std::uint64_t stream) { return uniform(shape, {5, stream, 0}, -100, 100); }

/// Checks that plans, fused or not, have the results of eager execution.
template <class F>
PlanReport check(F f, const Tensors& in) {
  const auto list = [&](const Tensors& x) { return f(x); };
  const Tensors wanted = f(in);
  PlanReport report;
  for (const bool fuse : {false, true}) {
    const auto g = compile(list, {.fuse = fuse});
    for (int run = 0; run < 2; ++run) {
      const Tensors got = g(in);
      for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(identical(got[k], wanted[k]), g.report().str());
    }
    report = g.report();
  }
  return report;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(storage_types)

BOOST_AUTO_TEST_CASE(casts_are_fused_with_what_computes_between_them) {
  for (const Dtype t : kStored)
    for (const std::int64_t n : {1, 3, 16, 31, 33, 64, 1000, 5001}) {
      const auto f = [&](const Tensors& x) -> Tensors { return {cast(cast(x[0], Dtype::f32) * 0.7 + 1, t)}; };
      const PlanReport r = check(f, {cast(sample({n}, 1), t)});
      BOOST_TEST(r.kernels == 1U, r.str());
      BOOST_TEST(r.steps.size() == 1U, r.str());
    }
}

BOOST_AUTO_TEST_CASE(views_of_stored_elements_are_read_in_place) {
  for (const Dtype t : kStored)
    for (const Shape& shape : {Shape{3, 5}, Shape{17, 33}, Shape{64, 48}, Shape{130, 70}}) {
      const auto f = [&](const Tensors& x) -> Tensors {
        const std::int64_t n = shape[0], m = shape[1];
        const Tensor turned = cast(transpose(x[0]), Dtype::f32);
        const Tensor row = cast(expand(slice(x[0], 0, n - 1), {n, m}), Dtype::f32);
        const Tensor back = cast(flip(x[0], {1}), Dtype::f32);
        const Tensor every = cast(slice(x[0], 1, 0, m, 2), Dtype::f64);
        return {transpose(turned) + row * back,
                cast(turned * 2, t),
                pad(cast(select(x[0], 1, 1), Dtype::f32) * 3, {2}, {3}),
                cast(every, Dtype::f32) - 1,
                reshape(cast(permute(reshape(x[0], {n, m, 1}), {2, 1, 0}), t), {m, n}),
                contiguous(transpose(x[0]))};
      };
      check(f, {cast(sample(shape, 2), t)});
      check(f, {transpose(contiguous(transpose(cast(sample(shape, 2), t))))});
    }
}

BOOST_AUTO_TEST_CASE(special_values_convert_alike_in_every_kind_of_kernel) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values{0.0, -0.0, inf, -inf, std::nan(""), 65504, 65520, 1e300, 1e-45, 0x1p-24, 0x1p-133, 127.5};
  while (values.size() < 100) values.push_back(values[values.size() % 12] * 1.5);
  const Tensor x = Tensor::from(values, {4, 25});
  for (const Dtype from : kDtypes)
    for (const Dtype to : kDtypes) {
      const auto f = [&](const Tensors& in) -> Tensors {
        const Tensor y = cast(transpose(cast(in[0], from)), to);
        return {y, cast(y, Dtype::f64) * 0.5};
      };
      check(f, {x});
      check(f, {cast(x, Dtype::f32)});
    }
}

BOOST_AUTO_TEST_CASE(texts_keep_every_bit_of_stored_constants) {
  const Tensor halves = Tensor::build<float16>({6}, [](std::span<float16> to) {
    const std::uint16_t bits[] = {0x0001, 0x8000, 0x7c00, 0xfe01, 0x3c01, 0x7bff};
    for (std::size_t i = 0; i < 6; ++i) to[i] = float16::from_bits(bits[i]);
  });
  const Tensor brains = Tensor::build<bfloat16>({3}, [](std::span<bfloat16> to) {
    const std::uint16_t bits[] = {0x0001, 0xff81, 0x3f81};
    for (std::size_t i = 0; i < 3; ++i) to[i] = bfloat16::from_bits(bits[i]);
  });
  const Tensor bytes = Tensor::from<std::int8_t>({-128, 127, 0});
  const auto f = [&](const Tensors& x) -> Tensors {
    return {cast(halves, Dtype::f32), cast(brains, Dtype::f32), cast(bytes, Dtype::i32), cast(x[0], Dtype::i8),
            full({2}, 1.5, Dtype::bf16)};
  };
  const std::vector<Spec> specs{{{2}, Dtype::bf16}};
  const Graph g = trace(f, specs);
  const std::string text = g.str();
  BOOST_TEST(text.find("input %0: bf16[2]") != std::string::npos, text);
  BOOST_TEST(text.find("nan:fe01") != std::string::npos, text);
  const Graph back = parse_graph(text);
  BOOST_TEST(back.str() == text);
  BOOST_TEST(detail::same_graph(g, back));
}

BOOST_AUTO_TEST_CASE(texts_that_compute_with_stored_types_are_refused) {
  BOOST_CHECK_EXCEPTION(parse_graph("graph {\n  input %0: bf16[2]\n  %1: bf16[2] = exp(%0)\n  return %1\n}\n"),
                        DtypeError, says("exp: bf16 is only stored"));
  BOOST_CHECK_EXCEPTION(
      trace([](const Tensors& x) -> Tensors { return {x[0] * 2}; }, std::vector<Spec>{{{2}, Dtype::f16}}), DtypeError,
      says("mul: f16 is only stored"));
}

BOOST_AUTO_TEST_CASE(gradients_pass_compiled_functions_of_stored_arguments) {
  const Tensor w = cast(sample({4, 3}, 3), Dtype::bf16), x = sample({2, 4}, 4), a = sample({4, 3}, 5);
  const auto f = [](const Tensors& in) -> Tensors {
    const Tensor w32 = cast(in[0], Dtype::f32);
    return {tanh(matmul(in[1], w32) * 0.01), cast(w32 * 0.1, Dtype::f16)};
  };
  const auto compiled = compile([&](const Tensors& in) { return f(in); });
  const auto gradients = [&](const auto& function) {
    Tape tape;
    const Tensor vw = tape.watch(w), vx = tape.watch(x), va = tape.watch(a);
    const Tensors first = function(Tensors{vw, vx});
    const Tensors second = function(Tensors{cast(va, Dtype::bf16), vx});
    const Tensor loss =
        sum(square(first[0])) + sum(cast(first[1], Dtype::f32)) + sum(second[0]) + sum(cast(second[1], Dtype::f32) * a);
    return tape.grad(loss, {vw, vx, va});
  };
  const Tensors wanted = gradients(f), got = gradients(compiled);
  BOOST_TEST(got[0].spec().str() == "f32[4, 3]");
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(support::within(got[i], wanted[i], 1e-6));
}

BOOST_AUTO_TEST_CASE(states_are_stored_in_half_the_memory) {
  const auto run = [](bool compiled) {
    const State total("total", zeros({5}, Dtype::bf16));
    const auto step = [&](const Tensor& x) {
      const Tensor sum = cast(total.value(), Dtype::f32) + x;
      total.assign(cast(sum, Dtype::bf16));
      return sum;
    };
    const auto fast = compile(step);
    Tensor last;
    for (std::uint64_t i = 0; i < 4; ++i) last = compiled ? fast(sample({5}, i)) : step(sample({5}, i));
    return Tensors{last, total.value()};
  };
  const Tensors wanted = run(false), got = run(true);
  BOOST_TEST(identical(got[0], wanted[0]));
  BOOST_TEST(identical(got[1], wanted[1]));
}

BOOST_AUTO_TEST_CASE(scans_refuse_stored_types) {
  const Tensor xs = zeros({3, 2}, Dtype::bf16);
  const auto body = [](const Tensors& carry, const Tensors& x) -> ScanStep {
    return {{carry[0] + cast(x[0], Dtype::f32)}, {}};
  };
  BOOST_CHECK_EXCEPTION(scan(body, {zeros({2})}, {xs}), DtypeError, says("scan: bf16 is only stored"));
}

BOOST_AUTO_TEST_SUITE_END()
