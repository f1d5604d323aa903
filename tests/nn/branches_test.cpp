// Parallel layers: values, names, copies, and errors.
#include "ferrite/nn/layers/branches.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

using Parts = std::vector<dsl::Builder::Part>;

Parts parts() {
  return {[](dsl::Builder& b) { b.gru(4); }, [](dsl::Builder& b) { b.linear(4).dropout(0.5); },
          [](dsl::Builder& b) { b.causal_conv1d(4, 3); }};
}

dsl::Network sum() { return dsl::sequence(3).parallel(parts(), "sum").linear(2, "head").build(1); }
dsl::Network joined() { return dsl::sequence(3).concat(parts(), "all").linear(2, "head").build(1); }

}  // namespace

BOOST_AUTO_TEST_SUITE(branches)

/// The expected values come from the layers inside one by one; fails if two are exchanged or one is left out.
BOOST_AUTO_TEST_CASE(gives_what_the_branches_give) {
  const Tensor x = uniform({2, 7, 3}, {3, 1, 0}, -1, 1);
  for (const bool adds : {true, false}) {
    const auto net = adds ? sum() : joined();
    net.eval();
    const auto& all = dynamic_cast<const nn::Branches&>(net[0]);
    BOOST_TEST(all.size() == 3U);
    const Tensor a = all[0](x), b = all[1](x), c = all[2](x);
    const Tensor wanted = adds ? a + b + c : concat({a, b, c}, 2);
    BOOST_TEST(identical(all(x), wanted));
    BOOST_TEST(identical(net(x), net[1](wanted)));
    BOOST_TEST(identical(net.compiled()(x), net(x)));
    BOOST_TEST(identical(net.copy()(x), net(x)));
    const auto lengths = Tensor::from<std::int64_t>({7, 4});
    BOOST_TEST(identical(all(x, {.lengths = lengths}), adds ? all[0](x, {.lengths = lengths}) + b + c
                                                            : concat({all[0](x, {.lengths = lengths}), b, c}, 2)));
  }
}

BOOST_AUTO_TEST_CASE(variables_are_named_by_their_branch) {
  std::string names;
  for (const auto& p : sum().named_parameters()) names += p.name + " ";
  BOOST_TEST(names ==
             "sum.0.0.weight_ih_l0 sum.0.0.weight_hh_l0 sum.0.0.bias_ih_l0 sum.0.0.bias_hh_l0 sum.1.0.weight "
             "sum.1.0.bias sum.2.0.weight sum.2.0.bias head.weight head.bias ");
  BOOST_TEST(sum().rows()[0].kind == "parallel");
  BOOST_TEST(sum().rows()[0].output == "[B, T, 4]");
  BOOST_TEST(joined().rows()[0].output == "[B, T, 12]");
  // 3 gates of 4 units from 3 and 4 inputs of the GRU, the linear layer, the convolution.
  BOOST_TEST(sum().rows()[0].multiply_adds == 3 * 4 * (3 + 4) + 3 * 4 + 3 * 3 * 4);
}

/// Modes reach the branches, and gradients reach all their parameters.
BOOST_AUTO_TEST_CASE(branches_train) {
  const auto net = joined();
  const Tensor x = uniform({2, 7, 3}, {3, 1, 0}, -1, 1);
  BOOST_TEST(!identical(net(x), net(x)));  // dropout makes new draws each time
  net.eval();
  BOOST_TEST(identical(net(x), net(x)));
  Tape tape;
  const Tensor loss = ferrite::sum(net(x));
  for (const Tensor& g : tape.grad(loss, net.parameters())) BOOST_TEST(amax(abs(g)).item() > 0);
}

BOOST_AUTO_TEST_CASE(pieces_have_the_bits_of_the_whole) {
  const auto net = joined();
  net.eval();
  const Tensor x = uniform({2, 9, 3}, {3, 2, 0}, -1, 1);
  const nn::Carry carry(net, 2);
  Tensors all;
  for (const Tensor& piece : nn::pieces(x, 4)) all.push_back(net(piece, {.carry = &carry}));
  BOOST_TEST(identical(concat(std::span<const Tensor>(all.data(), all.size()), 1), net(x)));
}

BOOST_AUTO_TEST_CASE(images_are_joined_by_channels) {
  const auto net = dsl::features(32)
                       .unflatten({2, 4, 4})
                       .concat({[](dsl::Builder& b) { b.conv2d(3, 3, {.padding = {1}}); },
                                [](dsl::Builder& b) { b.max_pool2d(3, {.stride = {1}, .padding = {1}}); }})
                       .build(1);
  BOOST_TEST(net.rows()[0].output == "[B, 2, 4, 4]");
  BOOST_TEST(net.rows()[1].output == "[B, 5, 4, 4]");
  const Tensor x = uniform({2, 32}, {3, 3, 0}, -1, 1), image = reshape(x, {2, 2, 4, 4});
  BOOST_TEST(identical(slice(net(x), 1, 3), max_pool2d(image, {3}, {.stride = {1}, .padding = {1}})));
}

BOOST_AUTO_TEST_CASE(unflatten_cuts_an_axis) {
  const Tensor x = uniform({2, 12, 3}, {3, 4, 0}, -1, 1);
  const auto of = [&](std::int64_t axis, const Shape& sizes) {
    return nn::Unflatten({.axis = axis, .sizes = sizes})(x);
  };
  BOOST_TEST(identical(of(1, {3, 4}), reshape(x, {2, 3, 4, 3})));
  BOOST_TEST(identical(of(-2, {2, -1, 3}), reshape(x, {2, 2, 2, 3, 3})));
  BOOST_TEST(identical(of(0, {1, 2}), reshape(x, {1, 2, 12, 3})));
  BOOST_TEST(nn::Unflatten({.axis = 2, .sizes = {3, 1}}).summary() == "unflatten(axis=2, sizes=[3, 1])");
  BOOST_CHECK_EXCEPTION((void)of(1, {5, 2}), ShapeError,
                        says("unflatten: axis 1 of [2, 12, 3] cannot have the extents [5, 2]"));
  BOOST_CHECK_THROW((void)of(1, {5, -1}), ShapeError);
  BOOST_CHECK_THROW((void)of(3, {1}), ShapeError);
  BOOST_CHECK_EXCEPTION(nn::Unflatten({.sizes = {-1, -1}}), ValueError, says("at most one of them -1"));
  BOOST_CHECK_EXCEPTION(nn::Unflatten({.sizes = {0, 2}}), ValueError, says("sizes must be positive"));
  BOOST_CHECK_THROW(nn::Unflatten(nn::UnflattenOptions{}), ValueError);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const auto two = [](const dsl::Builder::Part& a, const dsl::Builder::Part& b) { return Parts{a, b}; };
  const dsl::Builder::Part wide = [](dsl::Builder&b) { b.linear(5); }, narrow = [](dsl::Builder&b) { b.linear(4); };
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).parallel(two(wide, narrow)).build(1), ShapeError,
                        says("parallel: the branches give different shapes: [2, 256, 5] and [2, 256, 4]"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).concat({}), ValueError, says("concat: there are no parts"));
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).concat({nullptr}), ValueError, says("concat: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)nn::Parallel()(zeros({2, 3})), ValueError, says("parallel: has no branches"));
  nn::Concat all;
  BOOST_CHECK_EXCEPTION(all.add("a", nullptr), ValueError, says("concat: the branch 'a' is null"));
  all.add("a", std::make_unique<nn::CausalConv1d>(
                   nn::CausalConv1dOptions{.in_channels = 3, .out_channels = 2, .kernel_size = 2, .stride = 2},
                   nn::Init{.seed = 1}));
  BOOST_CHECK_EXCEPTION(all.add("a", std::make_unique<nn::Linear>(3, 2)), ValueError, says("the name 'a' is taken"));
  BOOST_CHECK_EXCEPTION((void)all(zeros({2, 4, 3}), {.state = zeros({1})}), ValueError, says("initial state"));
  all.add("b", std::make_unique<nn::MaxPool1d>(nn::MaxPoolLayerOptions{.kernel_size = {2}, .channels_last = true}));
  BOOST_TEST(all(zeros({2, 4, 3})).shape().str() == "[2, 2, 5]");
  BOOST_CHECK_EXCEPTION((void)all.stream(), nn::PaceError,
                        says("concat: the branch 'b' gives one step for 2, 1 fewer in all, 'a' one for 2, 0 fewer; "
                             "give all the same strides"));
}

BOOST_AUTO_TEST_SUITE_END()
