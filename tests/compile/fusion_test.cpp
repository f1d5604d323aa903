// Fusion: the number of kernels in the report, and always the bits of the eager function.
#include <cstdlib>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "programs.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor sample(const Shape& shape, std::uint64_t stream, double low = -2, double high = 2) {
  return uniform(shape, {5, stream, 0}, low, high);
}

/// Compiles and runs f, compares the bits, and returns the report.
template <class F>
PlanReport checked(F f, const Tensors& in) {
  const auto list = [&](const Tensors& x) { return f(x); };
  const auto g = compile(list);
  const Tensors wanted = f(in);
  for (int i = 0; i < 2; ++i) {
    const Tensors got = g(in);
    for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(identical(got[k], wanted[k]), g.report().str());
  }
  return g.report();
}

/// Checks that a plan is one kernel and nothing else.
void one_kernel(const PlanReport& r, std::size_t operations) {
  BOOST_TEST(r.steps.size() == 1U, r.str());
  BOOST_TEST(r.kernels == 1U, r.str());
  BOOST_TEST(r.steps[0].operations == operations, r.str());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fusion)

BOOST_AUTO_TEST_CASE(constants_and_literals_are_inside) {
  const Tensors in{sample({7, 9}, 1), sample({7, 9}, 2), sample({7, 9}, 3)};
  const auto literal = [](const Tensors& x) { return Tensors{relu(exp2(x[0]) - sin(x[1])) + 2.123 / (3 + x[2])}; };
  const PlanReport with_literal = checked(literal, in);
  one_kernel(with_literal, 7);
  const Tensor c = full({}, 2.123);
  const auto constant = [&](const Tensors& x) {
    return Tensors{relu(exp2(x[0]) - sin(x[1])) + expand(c, {7, 9}) / (3 + x[2])};
  };
  one_kernel(checked(constant, in), 7);
}

BOOST_AUTO_TEST_CASE(an_intermediate_used_twice_is_computed_once) {
  const Tensors in{sample({50, 30}, 1)};
  one_kernel(checked(
                 [](const Tensors& x) {
                   const Tensor b = exp(x[0]);
                   return Tensors{b + sin(b)};
                 },
                 in),
             3);
  const PlanReport r = checked(
      [](const Tensors& x) {
        const Tensor b = exp(x[0]);
        return Tensors{b + sin(b), b};
      },
      in);
  one_kernel(r, 3);
  BOOST_TEST(r.bytes_moved == 3 * 50 * 30 * 4);  // one in, two out
}

BOOST_AUTO_TEST_CASE(views_are_folded_into_the_index) {
  const Tensors in{sample({33, 21}, 1)};
  one_kernel(checked([](const Tensors& x) { return Tensors{cos(exp(gelu(transpose(x[0]))))}; }, in), 3);
  one_kernel(checked([](const Tensors& x) { return Tensors{pad(cos(slice(x[0], 1, 3, 10)), {0, 2}, {0, 1})}; }, in), 1);
  one_kernel(checked([](const Tensors& x) { return Tensors{exp(pad(x[0], {1, 1}, {1, 1}))}; }, in), 1);
  one_kernel(checked(
                 [](const Tensors& x) {
                   return Tensors{reshape(flip(tanh(slice(x[0], 0, 1, 31, 2)), {1}), {5, 63}) * 2};
                 },
                 in),
             2);
}

BOOST_AUTO_TEST_CASE(paddings_hold_their_value_at_every_subexpression) {
  const auto f =
      compile([](const Tensor& x) { return std::pair(pad(cos(slice(x, 0, 1, 3)), {1}, {1}), exp(pad(x, {1}, {0}))); });
  const auto [zero, one] = f(full({4}, 0.0));
  BOOST_TEST(identical(zero, Tensor::from({0.0F, 1.0F, 1.0F, 0.0F}, {4})));
  BOOST_TEST(identical(one, full({5}, 1.0)));
}

BOOST_AUTO_TEST_CASE(a_row_may_lie_in_a_padding) {
  const auto f = [](const Tensors& x) {
    const Tensor outside = select(sin(pad(x[0], {0}, {2}, 0.5)), 0, 14);
    return Tensors{amax(expand(tanh(outside), {2, 4}) * 0.5, {0, 1})};
  };
  BOOST_TEST(checked(f, {sample({14}, 1)}).others == 0U);
}

BOOST_AUTO_TEST_CASE(rotary_position_embedding_is_one_kernel) {
  const std::int64_t half = 16;
  const Tensors in{sample({2, 10, 2 * half}, 1)};
  const Tensor angle = unsqueeze(arange(0.0, 10.0, 1.0), 1) * exp(arange(0.0, 16.0, 1.0) * -0.5);
  const Tensor c = cos(angle);
  const Tensor s = sin(angle);
  const PlanReport r = checked(
      [&](const Tensors& x) {
        const Tensor a = slice(x[0], -1, 0, half);
        const Tensor b = slice(x[0], -1, half);
        return Tensors{concat({a * c - b * s, b * c + a * s}, -1)};
      },
      in);
  one_kernel(r, 6);
}

BOOST_AUTO_TEST_CASE(random_stacks_of_views_are_one_kernel) {
  const char* asked = std::getenv("FERRITE_PROGRAMS");
  const std::uint64_t stacks = asked ? std::strtoull(asked, nullptr, 10) : support::unless_sanitized(2000U, 800U);
  int fused = 0;
  int all = 0;
  for (std::uint64_t seed = 1; seed <= stacks; ++seed) {
    const programs::Program f(
        seed, {.reductions = false, .joins = false, .products = false, .most_steps = 12, .chain = true});
    PlanReport report;
    const std::string difference = programs::difference(f, {}, &report);
    BOOST_TEST(difference.empty(), "seed " << seed << ": " << difference);
    ++all;
    fused += report.steps.size() <= 1;
    if (report.steps.size() > 1) BOOST_TEST_MESSAGE("seed " << seed << ": " << report.str());
  }
  BOOST_TEST(fused >= 0.95 * all, fused << " of " << all << " stacks of views are one kernel");
}

BOOST_AUTO_TEST_CASE(parts_of_one_value_are_computed_where_they_are_read) {
  const Tensors in{sample({6, 12}, 1), sample({12}, 2)};
  const auto part = [](const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
    return slice(x, axis, begin, end);
  };
  one_kernel(checked(
                 [&](const Tensors& x) {
                   const Tensor g = x[0] + x[1];
                   return Tensors{sigmoid(part(g, 1, 0, 4)) * part(g, 1, 8, 12) + tanh(part(g, 1, 4, 8))};
                 },
                 in),
             7);
  // The parts cover the whole value, so it can be written as well.
  for (const int axis : {0, 1}) {
    const std::int64_t third = in[0].shape()[axis] / 3;
    one_kernel(checked(
                   [&](const Tensors& x) {
                     const Tensor g = x[0] + x[1];
                     return Tensors{sigmoid(part(g, axis, third, 2 * third)) * part(g, axis, 2 * third, kEnd) +
                                        tanh(part(g, axis, 0, third)),
                                    g};
                   },
                   in),
               7);
  }
  // The parts overlap, leave something out, or have another order: the value is computed once, separately.
  const auto others = [&](const Tensors& x) {
    const Tensor g = x[0] + x[1];
    const Tensor h = x[0] * x[1];
    const Tensor k = exp(x[0]);
    return Tensors{part(g, 1, 0, 6) * part(g, 1, 3, 9),
                   g,
                   part(h, 1, 0, 4) - part(h, 1, 4, 8),
                   h,
                   part(k, 1, 0, 6) - flip(part(k, 1, 6, 12), {1}),
                   k};
  };
  BOOST_TEST(checked(others, in).steps.size() > 1U);
}

BOOST_AUTO_TEST_CASE(parts_of_a_stack_are_written_where_they_belong) {
  const Tensors in{sample({4, 6}, 1), sample({6, 6}, 2)};
  for (const int axis : {0, 1, 2}) {
    const PlanReport r = checked(
        [&](const Tensors& x) {
          Tensor h = x[0];
          Tensors all;
          for (int t = 0; t < 5; ++t) {
            const Tensor u = tanh(matmul(h, x[1]));
            all.push_back(u * 2);
            h = sin(u);
          }
          return Tensors{stack(std::span<const Tensor>(all.data(), all.size()), axis) + 1};
        },
        in);
    BOOST_TEST(r.kernels == 6U, r.str());  // one per step, none that copies, and the sum
  }
}

BOOST_AUTO_TEST_CASE(a_step_of_a_gru_takes_few_kernels) {
  const std::int64_t B = 8;
  const std::int64_t H = 16;
  Parameter w("w", sample({H, 3 * H}, 1));
  Parameter b("b", sample({3 * H}, 2));
  const auto forward = compile([&](const Tensor& i, const Tensor& h) { return gru_step(i, h, w, b); });
  const Tensor i = sample({B, 3 * H}, 3);
  const Tensor h = sample({B, H}, 4);
  BOOST_TEST(identical(forward(i, h), gru_step(i, h, w, b)));
  BOOST_TEST(forward.report().kernels + forward.report().others == 1U, forward.report().str());
  BOOST_TEST(forward.report().steps.size() == 1U, forward.report().str());  // the product is part of it
  BOOST_TEST(forward.report().products == 1U);
  const auto both = [&](const Tensor& x, const Tensor& state, const Tensor& d) {
    Tape tape;
    const Tensor vx = tape.watch(x);
    const Tensor vs = tape.watch(state);
    const Tensor y = gru_step(vx, vs, w, b);
    Tensors g = tape.grad(y, {vx, vs}, {.retain = true}, d);
    for (const Tensor& p : tape.grad(y, std::vector<Parameter>{w, b}, {}, d)) g.push_back(p);
    return g;
  };
  const auto backward = compile(both);
  const Tensor d = sample({B, H}, 5);
  const Tensors got = backward(i, h, d);
  const Tensors wanted = both(i, h, d);
  for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(identical(got[k], wanted[k]));
  const PlanReport r = backward.report();
  BOOST_TEST(r.kernels + r.others <= 1U + 2U, r.str());  // 1 forward, 2 backward, sums of biases among them
  BOOST_TEST(r.products == 3U, r.str());
}

BOOST_AUTO_TEST_CASE(products_run_with_what_reads_their_rows) {
  for (const Shape& shape : {Shape{8, 16, 24}, Shape{1, 7, 5}, Shape{700, 30, 1000}, Shape{3001, 20, 257}}) {
    const Tensors in{sample({shape[0], shape[1]}, 1), sample({shape[1], shape[2]}, 2), sample({shape[2]}, 3),
                     sample({shape[0], shape[2]}, 4), sample({shape[1], shape[2]}, 5)};
    const auto epilogue = [](const Tensors& x) { return Tensors{tanh(matmul(x[0], x[1]) + x[2]) + x[3]}; };
    const PlanReport r = checked(epilogue, in);
    one_kernel(r, 4);
    BOOST_TEST(r.products == 1U);
    BOOST_TEST(r.epilogues == 1U);
    BOOST_TEST(r.arena_bytes <= (2 << 20), r.str());  // blocks of rows, not the matrix
    one_kernel(checked([](const Tensors& x) { return Tensors{softmax(matmul(x[0], x[1]) * 0.125)}; }, in), 10);
    one_kernel(checked([](const Tensors& x) { return Tensors{matmul(x[0], x[1]) * matmul(x[0], x[4])}; }, in), 3);
  }
}

BOOST_AUTO_TEST_CASE(products_run_alone_where_that_costs_less) {
  const Tensors in{sample({40, 40}, 1), sample({40, 40}, 2)};
  const auto steps = [&](auto f) { return checked(f, in).steps.size(); };
  BOOST_TEST(steps([](const Tensors& x) { return Tensors{transpose(matmul(x[0], x[1])) + 1}; }) == 2U);
  BOOST_TEST(steps([](const Tensors& x) {
               const Tensor y = matmul(x[0], x[1]);
               return Tensors{exp(y), y};
             }) == 2U);
  BOOST_TEST(steps([](const Tensors& x) { return Tensors{x[0] + matmul(x[0], x[1]) * matmul(x[1], x[0])}; }) == 1U);
}

BOOST_AUTO_TEST_CASE(softmax_and_layer_norm_are_one_kernel) {
  for (const Shape& shape : {Shape{6, 33}, Shape{40, 3}, Shape{2, 3, 50}, Shape{3, 2000}, Shape{64, 64}}) {
    const Tensors in{sample(shape, 1)};
    BOOST_TEST(checked([](const Tensors& x) { return Tensors{softmax(x[0])}; }, in).steps.size() == 1U);
    BOOST_TEST(checked([](const Tensors& x) { return Tensors{layer_norm(x[0])}; }, in).steps.size() == 1U);
    BOOST_TEST(checked([](const Tensors& x) { return Tensors{log_softmax(x[0]) * 2}; }, in).steps.size() == 1U);
    const PlanReport r = checked([](const Tensors& x) { return Tensors{tanh(amax(exp(x[0]) + 1, {-1})) * 0.5}; }, in);
    BOOST_TEST(r.steps.size() == 1U, r.str());
  }
}

BOOST_AUTO_TEST_CASE(reductions_that_no_tile_holds_end_the_kernel_of_their_operand) {
  const auto bias = [](const Tensors& x) {
    const Tensor d = tanh(x[0]) * x[1];
    return Tensors{d, sum(d, {0}), amax(d, {0}, true)};
  };
  const auto error = [](const Tensors& x) { return Tensors{sum(square(x[0] - x[1]))}; };
  for (const Shape& shape :
       {Shape{8, 48}, Shape{2, 3}, Shape{3000, 5}, Shape{1025, 300}, Shape{70, 1000}, Shape{5000}}) {
    const Tensors in{sample(shape, 1), sample(shape, 2)};
    BOOST_TEST(checked(bias, in).steps.size() <= 2U);
    one_kernel(checked([](const Tensors& x) { return Tensors{sum(exp(x[0] * 2) - x[1], {0})}; }, in), 4);
    if (in[0].numel() > 4096) one_kernel(checked(error, in), 3);
  }
  // Large operands in parallel, through views, broadcast, in f64, and with axes that do not merge.
  const Tensors large{sample({300, 700}, 1), sample({700, 300}, 2), sample({700}, 3)};
  one_kernel(checked([](const Tensors& x) { return Tensors{sum(square(x[0] - transpose(x[1])))}; }, large), 3);
  one_kernel(checked([](const Tensors& x) { return Tensors{sum(square(transpose(x[0]) - x[1]))}; }, large), 3);
  one_kernel(checked([](const Tensors& x) { return Tensors{sum(tanh(x[0]) * x[2], {0})}; }, large), 3);
  one_kernel(checked([](const Tensors& x) { return Tensors{sum(cast(x[0], Dtype::f64) * 3)}; }, large), 3);
  const Tensors cube{sample({40, 30, 50}, 4), sample({30, 1}, 5), sample({40, 1, 50}, 6)};
  const auto mixed = [](const Tensors& x) { return exp(x[0] * x[1]) + x[2]; };
  one_kernel(checked([&](const Tensors& x) { return Tensors{sum(mixed(x), {0})}; }, cube), 4);
  one_kernel(checked([&](const Tensors& x) { return Tensors{sum(mixed(x), {0, 1})}; }, cube), 4);
  one_kernel(checked([&](const Tensors& x) { return Tensors{sum(mixed(x))}; }, cube), 4);
  const PlanReport middle = checked([&](const Tensors& x) { return Tensors{sum(mixed(x), {1})}; }, cube);
  BOOST_TEST(middle.steps.size() == 2U);
  BOOST_TEST(middle.str().find("it reduces neither the first axes nor the last") != std::string::npos, middle.str());
}

BOOST_AUTO_TEST_CASE(reductions_run_over_views_and_are_stored_for_others) {
  const Tensors in{sample({5, 4, 6}, 1), sample({6, 4}, 2)};
  const auto f = [](const Tensors& x) {
    const Tensor y = transpose(x[0]) * x[1];               // [5, 6, 4]
    const Tensor total = sum(flip(y, {1}), {1, 2}, true);  // two axes at once
    return Tensors{y / (1 + square(total)), total, softmax(reshape(y, {5, 24}))};
  };
  const PlanReport r = checked(f, in);
  BOOST_TEST(r.others == 0U, r.str());
}

BOOST_AUTO_TEST_CASE(cross_entropy_keeps_one_intermediate_of_the_size_of_the_logits) {
  const std::int64_t rows = 128;
  const std::int64_t classes = 64;
  const Tensor labels = cast(uniform({rows}, {1, 1, 1}, 0, 64), Dtype::i64);
  const auto f = [&](const Tensors& x) {
    Tape tape;
    const Tensor logits = tape.watch(x[0]);
    const Tensor loss = nn::cross_entropy(logits, labels);
    return Tensors{loss.unmarked(), tape.grad(loss, {logits})[0]};
  };
  const PlanReport r = checked(f, {sample({rows, classes}, 3)});
  const std::int64_t logits_bytes = rows * classes * 4;
  BOOST_TEST(r.arena_bytes < 2 * logits_bytes, r.str());
}

BOOST_AUTO_TEST_CASE(training_steps_need_little_more_memory_than_lives_at_once) {
  const auto check = [](const auto& net, const Tensor& x, std::int64_t classes) {
    nn::Adam adam(net.parameters());
    const Tensor y = cast(uniform({x.shape()[0]}, {1, 1, 1}, 0, static_cast<double>(classes)), Dtype::i64);
    const auto step = compile([&](const Tensor& a, const Tensor& b) {
      Tape tape;
      const Tensor loss = nn::cross_entropy(net(a), b);
      adam.step(tape.grad(loss, net.parameters()));
      return loss;
    });
    (void)step(x, y);
    const PlanReport r = step.report();
    BOOST_TEST(static_cast<double>(r.arena_bytes) <= 1.1 * static_cast<double>(r.bound_bytes), r.str());
  };
  check(dsl::sequence(12).gru(64).last_step().linear(9).build(0), sample({32, 29, 12}, 1), 9);
  check(dsl::features(784).linear(128).relu().linear(10).build(0), sample({32, 784}, 2), 10);
  nn::GruOptions unrolled;
  unrolled.form = nn::Form::unrolled;
  struct Unrolled : nn::Module {
    explicit Unrolled(const nn::GruOptions& o) : gru(12, 32, o, {.seed = 1, .prefix = "gru"}) { adopt("gru", gru); }
    Tensor operator()(const Tensor& x) const { return select(gru(x), 1, -1); }
    nn::Gru gru;
  };
  check(Unrolled(unrolled), sample({4, 100, 12}, 3), 32);
}

BOOST_AUTO_TEST_CASE(plans_need_little_more_memory_than_lives_at_once) {
  const programs::Mix mix{.most_steps = 60};
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const programs::Program f(seed, mix);
    PlanReport r;
    (void)programs::difference(f, {}, &r);
    BOOST_TEST(static_cast<double>(r.arena_bytes) <= 1.1 * static_cast<double>(r.bound_bytes), r.str());
  }
}

BOOST_AUTO_TEST_SUITE_END()
