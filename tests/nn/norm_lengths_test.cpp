// Norms over sequences with lengths use the statistics of the steps that count. The expected values are those of the
// same layer for these steps without padding: a batch [N, C] of all valid steps, or every row alone (tests/golden
// compares those with PyTorch).
#include <limits>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/norms.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

constexpr std::int64_t kBatch = 3, kSteps = 7, kChannels = 4;
const std::vector<std::int64_t> kEach = {7, 2, 5};
const nn::Init kDoubles{.seed = 3, .dtype = Dtype::f64};

Tensor lengths() { return Tensor::from(kEach, {kBatch}); }
Tensor valid() { return unsqueeze(lt(arange(kSteps), unsqueeze(lengths(), 1)), 2); }
Tensor input() { return uniform({kBatch, kSteps, kChannels}, {.seed = 5}, -1, 2, Dtype::f64); }
/// Returns x with NaN after the end of each row.
Tensor ragged(const Tensor& x) { return where(valid(), x, std::numeric_limits<double>::quiet_NaN()); }

/// Returns the valid steps of [B, T, C] concatenated, [N, C].
Tensor packed(const Tensor& x) {
  Tensors rows;
  for (std::int64_t b = 0; b < kBatch; ++b)
    rows.push_back(slice(select(x, 0, b), 0, 0, kEach[static_cast<std::size_t>(b)]));
  return concat(std::span<const Tensor>(rows.data(), rows.size()), 0);
}

/// Sets affine parameters to values other than 1 and 0.
template <class L>
L drawn(L layer) {
  for (std::uint64_t i = 0; const Parameter& p : layer.parameters())
    p.assign(uniform(p.shape(), {7, i++, 0}, 0.5, 2, Dtype::f64));
  return layer;
}

/// Returns the valid steps of y, the gradients of x (packed) and of the parameters, and their gradients along fixed
/// directions.
Tensors all_of(const nn::Module& layer, const Tensor& in, const std::function<Tensor(const Tensor&)>& f,
               const std::function<Tensor(const Tensor&)>& steps) {
  Tape tape;
  const Tensor x = tape.watch(in), y = steps(f(x));
  const Tensor loss = sum(square(y) * uniform(y.shape(), {.seed = 9}, -1, 1, Dtype::f64));
  Tensors g{steps(tape.grad({{loss}}, {x}, {.create_graph = true})[0])};
  for (const Tensor& t : tape.grad({{loss}}, layer.parameters(), {.create_graph = true})) g.push_back(t);
  Tensor total = zeros({}, Dtype::f64);
  for (std::size_t i = 0; i < g.size(); ++i)
    total = total + sum(g[i] * uniform(g[i].shape(), {9, i, 1}, -1, 1, Dtype::f64));
  Tensors all{detach(y)};
  for (const Tensor& t : g) all.push_back(detach(t));
  const Tensor second = tape.grad({{total}}, {x}, {.retain = true})[0];
  all.push_back(steps(second));
  for (const Tensor& t : tape.grad({{total}}, layer.parameters())) all.push_back(t);
  return all;
}

void check_same(const Tensors& a, const Tensors& b) {
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(within(a[i], b[i], 1e-11), "tensor " << i);
}

const auto as_it_is = [](const Tensor& t) { return t; };

}  // namespace

BOOST_AUTO_TEST_SUITE(norm_lengths)

/// Batch norm treats the valid steps as a batch of vectors: values, running statistics, gradients of both orders,
/// whatever the padding holds.
BOOST_AUTO_TEST_CASE(batch_norm_is_that_of_the_steps_that_count) {
  for (const std::optional<double> momentum : {std::optional(0.3), std::optional<double>()})
    for (const bool affine : {true, false})
      for (const bool tracks : {true, false}) {
        const nn::BatchNormOptions o{.num_features = kChannels,
                                     .epsilon = 0.01,
                                     .momentum = momentum,
                                     .affine = affine,
                                     .track_running_stats = tracks,
                                     .channels_last = true};
        const nn::BatchNorm1d layer = drawn(nn::BatchNorm1d(o, kDoubles)), flat = drawn(nn::BatchNorm1d(o, kDoubles));
        for (int round = 0; round < 2; ++round) {
          check_same(all_of(
                         layer, ragged(input() * (round + 1)),
                         [&](const Tensor& x) { return layer(x, {.lengths = lengths()}); }, packed),
                     all_of(
                         flat, packed(input() * (round + 1)), [&](const Tensor& x) { return flat(x); }, as_it_is));
          for (std::size_t i = 0; i < layer.named_buffers().size(); ++i)
            BOOST_TEST(
                within(layer.named_buffers()[i].variable.peek(), flat.named_buffers()[i].variable.peek(), 1e-12));
        }
        layer.eval(), flat.eval();
        const Tensor y = layer(ragged(input()), {.lengths = lengths()});
        BOOST_TEST(within(packed(y), flat(packed(input())), 1e-12));
        if (tracks) BOOST_TEST(identical(layer(input(), {.lengths = lengths()}), layer(input())));
      }
}

/// Instance and group norms treat every row alone.
BOOST_AUTO_TEST_CASE(rows_are_normalised_by_their_own_steps) {
  const auto rows_alone = [](const nn::Layer& layer) {
    return [&layer](const Tensor& x) {
      Tensors rows;
      for (std::int64_t b = 0; b < kBatch; ++b)
        rows.push_back(squeeze(layer(slice(slice(x, 0, b, b + 1), 1, 0, kEach[static_cast<std::size_t>(b)])), 0));
      return concat(std::span<const Tensor>(rows.data(), rows.size()), 0);
    };
  };
  const auto is_that_of_rows = [&](const nn::Layer& layer) {
    const Tensors got = all_of(
        layer, ragged(input()), [&](const Tensor& x) { return layer(x, {.lengths = lengths()}); }, packed);
    Tensors wanted = all_of(layer, input(), rows_alone(layer), as_it_is);
    const std::size_t first = 1, second = 2 + layer.parameters().size();
    for (const std::size_t i : {first, second}) wanted[i] = packed(wanted[i]);
    // The directions are those of packed steps; gradients along others are not compared.
    for (std::size_t i = 0; i < second; ++i) BOOST_TEST(within(got[i], wanted[i], 1e-11), "tensor " << i);
  };
  is_that_of_rows(
      drawn(nn::InstanceNorm1d({.num_features = kChannels, .affine = true, .channels_last = true}, kDoubles)));
  is_that_of_rows(nn::InstanceNorm1d({.num_features = kChannels, .channels_last = true}, kDoubles));
  for (const std::int64_t groups : {1, 2, 4})
    is_that_of_rows(drawn(nn::GroupNorm(
        {.num_groups = groups, .num_channels = kChannels, .epsilon = 0.1, .channels_last = true}, kDoubles)));

  // Second derivatives are compared with central differences.
  const nn::GroupNorm layer =
      drawn(nn::GroupNorm({.num_groups = 2, .num_channels = kChannels, .channels_last = true}, kDoubles));
  const nn::InstanceNorm1d instance({.num_features = kChannels, .channels_last = true}, kDoubles);
  for (const nn::Layer* l : {static_cast<const nn::Layer*>(&layer), static_cast<const nn::Layer*>(&instance)}) {
    const GradcheckReport report =
        gradcheck([&](const Tensors& x) { return where(valid(), (*l)(x[0], {.lengths = lengths()}), 0); }, {input()},
                  {.order = 2, .directions = 4});
    BOOST_TEST(bool(report), report.str());
  }
}

/// The running statistics of instances are the means of those of the rows, each corrected by its own number of steps.
BOOST_AUTO_TEST_CASE(running_numbers_of_instances) {
  const nn::InstanceNorm1d layer(
      {.num_features = kChannels, .momentum = 0.25, .track_running_stats = true, .channels_last = true}, kDoubles);
  (void)layer(ragged(input()), {.lengths = lengths()});
  Tensor means = zeros({kChannels}, Dtype::f64), vars = means;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    const Tensor row = slice(select(input(), 0, b), 0, 0, kEach[static_cast<std::size_t>(b)]);
    means = means + mean(row, {0}) / 3, vars = vars + var(row, {0}, false, 1) / 3;
  }
  BOOST_TEST(within(layer.running_mean.peek(), 0.25 * means, 1e-12));
  BOOST_TEST(within(layer.running_var.peek(), 0.75 + 0.25 * vars, 1e-12));
}

/// After a stride the norm uses the remaining lengths, as a chain passes them on, also when compiled.
BOOST_AUTO_TEST_CASE(in_a_chain) {
  const auto words = [] { return dsl::sequence(kChannels).conv1d(3, 2, {.stride = {2}}).batch_norm().gru(2); };
  const auto net = words().build(1, Dtype::f64), same = words().build(1, Dtype::f64);
  const Tensor y = net(ragged(input()), {.lengths = lengths()});
  const auto compiled = compile([&](const Tensor& x, const Tensor& n) { return same(x, {.lengths = n}); });
  BOOST_TEST(identical(compiled(ragged(input()), lengths()), y));
  BOOST_TEST(identical(same.named_buffers()[0].variable.peek(), net.named_buffers()[0].variable.peek()));
  Tensors steps;
  for (std::int64_t b = 0; b < kBatch; ++b)
    steps.push_back(squeeze(net[0](slice(slice(input(), 0, b, b + 1), 1, 0, kEach[static_cast<std::size_t>(b)])), 0));
  const Tensor all = concat(std::span<const Tensor>(steps.data(), steps.size()), 0);  // 3 + 1 + 2 of them
  BOOST_TEST(within(net.named_buffers()[0].variable.peek(), 0.1 * mean(all, {0}), 1e-12));
  BOOST_TEST(within(net.named_buffers()[1].variable.peek(), 0.9 + 0.1 * var(all, {0}, false, 1), 1e-12));
  const auto last = dsl::sequence(kChannels).last_step().batch_norm().build(1, Dtype::f64);
  const Tensor vectors = last[0](input(), {.lengths = lengths()});
  BOOST_TEST(identical(last(input(), {.lengths = lengths()}),
                       drawn(nn::BatchNorm1d({.num_features = 4, .affine = false}, kDoubles))(vectors)));
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  const nn::Context context{.lengths = lengths()};
  const auto refused = [&](const nn::Layer& layer, const Tensor& x, const char* text) {
    BOOST_CHECK_EXCEPTION((void)layer(x, context), ValueError, says(text));
  };
  const nn::BatchNorm1d first({.num_features = kSteps}, kDoubles);
  refused(first, input(), "batch_norm1d: takes no lengths for [3, 7, 4], whose steps it does not know");
  first.eval();
  BOOST_TEST(identical(first(input(), context), first(input())));
  const Tensor image = zeros({kBatch, 2, 3, 3}, Dtype::f64);
  refused(nn::BatchNorm2d({.num_features = 2}, kDoubles), image, "batch_norm2d: takes no lengths for [3, 2, 3, 3]");
  refused(nn::InstanceNorm2d({.num_features = 2}, kDoubles), image, "instance_norm2d: takes no lengths");
  refused(nn::GroupNorm({.num_groups = 2, .num_channels = 2}, kDoubles), image, "group_norm: takes no lengths");
  const nn::GroupNorm flat({.num_groups = 2, .num_channels = kChannels}, kDoubles);
  const Tensor vectors = select(input(), 1, 0);
  BOOST_TEST(identical(flat(vectors, context), flat(vectors)));

  const nn::BatchNorm1d batch({.num_features = kChannels, .channels_last = true}, kDoubles);
  const auto with = [](std::vector<std::int64_t> each) {
    return nn::Context{.lengths = Tensor::from(each, {static_cast<std::int64_t>(each.size())})};
  };
  BOOST_CHECK_EXCEPTION((void)batch(input(), with({7, 8, 1})), ShapeError, says("batch_norm1d: a length of 8 lies"));
  BOOST_CHECK_EXCEPTION((void)batch(input(), with({7, 7})), ShapeError, says("batch_norm1d: expects lengths i64[3]"));
  BOOST_CHECK_EXCEPTION((void)batch(slice(input(), 0, 0, 1), with({1})), ValueError,
                        says("batch_norm1d: training needs more than one value a channel: the sum of lengths 1"));
  BOOST_TEST(batch.num_batches_tracked.peek().item<std::int64_t>() == 0);
  BOOST_CHECK_EXCEPTION((void)batch(zeros({3, 7, 5}, Dtype::f64), context), ShapeError, says("expects 4 channels"));
  const nn::InstanceNorm1d instance({.num_features = kChannels, .channels_last = true}, kDoubles);
  BOOST_CHECK_EXCEPTION((void)instance(input(), with({7, 1, 4})), ShapeError,
                        says("instance_norm1d: a length of 1 lies"));
  instance.eval();
  BOOST_TEST(
      within(select(select(instance(input(), with({7, 1, 4})), 0, 1), 0, 0), zeros({kChannels}, Dtype::f64), 1e-12));
}

BOOST_AUTO_TEST_SUITE_END()
