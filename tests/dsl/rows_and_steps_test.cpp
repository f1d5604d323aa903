// Batches without rows and sequences of one step, through every layer: eager, with gradients, compiled, with carries
// and streamed. (Exported: tests/onnx/rows_and_steps_test.cpp.)
#include <cmath>

#include "dsl/layer_catalogue.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fed.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

using layer_catalogue::catalogue;
using layer_catalogue::kFeatures;

/// A net that does not stream, and an input of one row.
struct Other {
  std::string name;
  dsl::Builder words;
  Spec row;
};

std::vector<Other> others(Dtype dtype) {
  const Spec sequence{{1, 5, kFeatures}, dtype}, image{{1, 2, 6, 5}, dtype}, volume{{1, 2, 4, 4, 4}, dtype};
  const auto steps = [] { return dsl::sequence(kFeatures); };
  const auto pixels = [] { return dsl::image(2, 6, 5); };
  const auto voxels = [] { return dsl::volume(2, 4, 4, 4); };
  return {{"mean_over_time", steps().mean_over_time(), sequence},
          {"flatten", pixels().flatten().linear(3), image},
          {"unflatten", dsl::features(12).unflatten({3, 2, 2}).conv2d(2, 2), {{1, 12}, dtype}},
          {"conv2d", pixels().conv2d(4, 3, {.padding = {1}}), image},
          {"conv3d", voxels().conv3d(3, 2), volume},
          {"conv_transpose2d", pixels().conv_transpose2d(3, 2, {.stride = {2}}), image},
          {"conv_transpose3d", voxels().conv_transpose3d(3, 2), volume},
          {"max_pool2d", pixels().max_pool2d(2), image},
          {"max_pool3d", voxels().max_pool3d(2), volume},
          {"avg_pool2d", pixels().avg_pool2d(2, {.padding = {1}}), image},
          {"avg_pool3d", voxels().avg_pool3d(2), volume},
          {"adaptive_avg_pool2d", pixels().adaptive_avg_pool2d(2), image},
          {"adaptive_max_pool2d", pixels().adaptive_max_pool2d(3), image},
          {"group_norm", pixels().group_norm(2), image},
          {"batch_norm of images", pixels().batch_norm(), image},
          {"embedding_bag", dsl::tokens(7).embedding_bag(4), {{1, 5}, Dtype::i64}},
          {"embedding_bag, max", dsl::tokens(7).embedding_bag(4, {.mode = nn::BagMode::max}), {{1, 5}, Dtype::i64}},
          {"two directions", steps().gru(4, {.bidirectional = true}).lstm(3, {.bidirectional = true}), sequence},
          {"s5 of two directions", steps().s5(4, {.bidirectional = true}), sequence},
          {"attention", steps().linear(8).attention(2, {.positions = nn::Positions::alibi}), sequence},
          {"instance_norm1d",
           steps().add(nn::InstanceNorm1d({.num_features = kFeatures, .affine = true, .channels_last = true},
                                          {.seed = 2, .prefix = {}, .dtype = dtype})),
           sequence},
          {"mlstm in chunks", steps().linear(8).mlstm({.num_heads = 2, .round_up_to = 4, .chunk = 2}), sequence},
          {"centred stft", steps().stft(4), sequence}};
}

Shape without_rows(const Tensor& y) {
  Shape s = y.shape();
  s[0] = 0;
  return s;
}

/// Returns whether a net takes lengths: some windows cannot.
bool takes_lengths(const nn::Layer& net, const Tensor& x) {
  try {
    (void)net(x, {.lengths = full({x.shape()[0]}, x.shape()[1], Dtype::i64)});
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool has_batch_norm(const nn::Module& net) {
  for (const auto& b : net.named_buffers())
    if (b.name.ends_with("num_batches_tracked")) return true;
  return false;
}

/// Checks a net with a batch without rows. `trains`: false for a user's layers whose output does not depend on a
/// parameter, and for norms, which like PyTorch's refuse to train on fewer than two values.
void try_no_rows(const dsl::Network& net, const Tensor& some, bool trains) {
  const Tensor none = slice(some, 0, 0, 0);
  net.eval();
  const Tensor y = net(some);
  const std::string wanted = Spec{without_rows(y), y.dtype()}.str();
  BOOST_TEST(net(none).spec().str() == wanted, "evaluating");
  const auto planned = compile([&](const Tensor& x) { return net(x); });
  BOOST_TEST(planned(none).spec().str() == wanted, "compiled");
  BOOST_TEST(identical(planned(some), y), "compiled, with rows after none");
  if (some.rank() == 3 && takes_lengths(net, some))
    BOOST_TEST(net(none, {.lengths = full({0}, some.shape()[1], Dtype::i64)}).spec().str() == wanted, "lengths");
  BOOST_CHECK_EXCEPTION((void)net.stream(0), Error, [](const Error& e) {
    return says("the batch must be positive")(e) || says("is not causal")(e);
  });

  if (!trains || has_batch_norm(net) || net.parameters().empty()) return;
  net.train();
  const auto gradients = [&](const Tensor& x) {
    Tape tape;
    return tape.grad(sum(net(x)), net.parameters());
  };
  for (const Tensor& g : gradients(none))
    if (g.defined()) BOOST_TEST(identical(g + 0.0, zeros(g.shape(), g.dtype())), "a gradient");
  const auto step = compile(gradients);
  for (const Tensor& g : step(none))
    if (g.defined()) BOOST_TEST(identical(g + 0.0, zeros(g.shape(), g.dtype())), "a gradient of a compiled step");
  net.eval();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rows_and_steps)

BOOST_AUTO_TEST_CASE(every_layer_takes_a_batch_without_rows) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    for (const auto& [word, nets] : catalogue(dtype))
      for (std::size_t k = 0; k < nets.size(); ++k) BOOST_TEST_CONTEXT(word << " " << k << ", " << name_of(dtype)) {
          const dsl::Network net = nets[k]().build(2, dtype);
          BOOST_CHECK_NO_THROW(try_no_rows(net, layer_catalogue::input(net, 2, dtype), word != "add"));
        }
    for (const Other& o : others(dtype)) BOOST_TEST_CONTEXT(o.name << ", " << name_of(dtype)) {
        const dsl::Network net = o.words.build(2, dtype);
        Shape two = o.row.shape;
        two[0] = 2;
        const Tensor x = is_integer(o.row.dtype) ? full(two, 3, Dtype::i64) : uniform(two, {.seed = 1}, -1, 1, dtype);
        BOOST_CHECK_NO_THROW(try_no_rows(net, x, o.name != "instance_norm1d"));
      }
  }
}

BOOST_AUTO_TEST_CASE(what_is_carried_on_may_have_no_rows) {
  for (const auto& [word, nets] : catalogue(Dtype::f32))
    for (std::size_t k = 0; k < nets.size(); ++k) BOOST_TEST_CONTEXT(word << " " << k) {
        const dsl::Network net = nets[k]().build(2);
        net.eval();
        const Tensor x = layer_catalogue::input(net, 1, Dtype::f32);
        const nn::Carry one(net, 1), carry(net, 0);
        Tensor y;
        try {
          y = net(x, {.carry = &one});
        } catch (const ValueError&) {  // layers with states that no carry holds
          continue;
        }
        BOOST_CHECK_NO_THROW(
            BOOST_TEST(net(slice(x, 0, 0, 0), {.carry = &carry}).shape().str() == without_rows(y).str()));
      }
}

/// The first output step is that of a longer sequence, for layers whose outputs depend on no later step. A window of
/// several steps has no output, and is refused by name.
BOOST_AUTO_TEST_CASE(every_layer_takes_a_single_step) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& [word, nets] : catalogue(dtype))
      for (std::size_t k = 0; k < nets.size(); ++k) BOOST_TEST_CONTEXT(word << " " << k << ", " << name_of(dtype)) {
          const dsl::Network net = nets[k]().build(2, dtype);
          net.eval();
          const Tensor whole = net(layer_catalogue::input(net, 2, dtype));
          const Tensor x = slice(layer_catalogue::input(net, 2, dtype), 1, 0, 1);
          Tensor y;
          try {
            y = net(x);
          } catch (const ShapeError& e) {
            BOOST_TEST((net.pace().delay > 0 || net.pace().stride > 1), e.what());
            continue;
          }
          const bool steps = y.rank() == 3;
          if (steps) {
            BOOST_TEST(identical(contiguous(y), contiguous(slice(whole, 1, 0, y.shape()[1]))), "the first step");
          }
          BOOST_TEST(identical(net.compiled()(x), y), "compiled");
          const Tensor as_steps = steps ? y : unsqueeze(y, 1);
          nn::Stream stream = net.stream(2);
          BOOST_TEST(support::gave(stream, support::fed(stream, x, as_steps.spec()), as_steps, 0, 1), "streamed");
          if (word == "add" || has_batch_norm(net) || net.parameters().empty()) continue;
          net.train();
          Tape tape;
          for (const Tensor& g : tape.grad(sum(net(x)), net.parameters()))
            if (g.defined() && g.numel() > 0)
              BOOST_TEST(std::isfinite(amax(abs(cast(g, Dtype::f64))).item<double>()), "a gradient");
        }
}

BOOST_AUTO_TEST_SUITE_END()
