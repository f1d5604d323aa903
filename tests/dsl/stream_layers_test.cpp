// Every causal layer of the builder, and layers of a user, streamed: they have the bits of the whole sequence, whatever
// happens to the stream meanwhile.
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "dsl/layer_catalogue.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "support/causal_layers.h"
#include "support/compare.h"
#include "support/fed.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

using layer_catalogue::catalogue;
using layer_catalogue::input;
using layer_catalogue::kFeatures;
using layer_catalogue::kSteps;

/// Words that are not causal, or not layers.
const std::set<std::string> kNotCausal = {
    "mean_over_time", "embedding_bag",    "flatten",          "unflatten",           "conv2d",
    "conv3d",         "conv_transpose2d", "conv_transpose3d", "max_pool2d",          "max_pool3d",
    "avg_pool2d",     "avg_pool3d",       "group_norm",       "adaptive_avg_pool2d", "adaptive_max_pool2d"};

/// Returns the outputs of n steps of x [B, n, ...] by `steps`, as [B, n, N].
template <class In, class Out>
Tensor at_once(nn::Stream& stream, const Tensor& x, std::int64_t width) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  const std::vector<In> in = contiguous(transpose(x, 0, 1)).template to_vector<In>();
  std::vector<Out> out(static_cast<std::size_t>(T * B * width));
  stream.steps(T, std::span<const In>(in), std::span<Out>(out));
  return transpose(Tensor::from(out, {T, B, width}), 0, 1);
}
Tensor at_once(nn::Stream& stream, const Tensor& x, const Spec& y) {
  const std::int64_t N = y.shape[-1];
  if (x.dtype() == Dtype::i64)
    return y.dtype == Dtype::f64 ? at_once<std::int64_t, double>(stream, x, N)
                                 : at_once<std::int64_t, float>(stream, x, N);
  return y.dtype == Dtype::f64 ? at_once<double, double>(stream, x, N) : at_once<float, float>(stream, x, N);
}

/// Returns the outputs of a stream over x [B, T, ...] as [B, T, N].
Tensor streamed(nn::Stream& stream, const Tensor& x, const Spec& y) {
  const support::RowOutputs rows = support::fed(stream, x, y);
  return stack(std::span<const Tensor>(rows.data(), rows.size()), 0);
}

/// Returns the outputs that a stream must have: all steps, or for `last_step` those of growing pieces.
Tensor whole(const nn::Layer& net, const Tensor& x) {
  const Tensor y = net(x);
  if (y.rank() == 3) return y;
  Tensors steps;
  for (std::int64_t t = 0; t < x.shape()[1]; ++t) steps.push_back(net(slice(x, 1, 0, t + 1)));
  return stack(std::span<const Tensor>(steps.data(), steps.size()), 1);
}

void try_stream(const dsl::Network& net, std::int64_t batch, Dtype dtype) {
  net.eval();
  const Tensor x = input(net, batch, dtype), y = whole(net, x);
  const auto piece = [&](std::int64_t from, std::int64_t to) { return slice(x, 1, from, to); };
  // Feeds steps from..to - 1 and compares the outputs.
  const auto goes = [&](nn::Stream& s, std::int64_t from, std::int64_t to, const Tensor& wanted) {
    return support::gave(s, support::fed(s, piece(from, to), y.spec()), wanted, from, to);
  };
  nn::Stream stream = net.stream(batch);
  BOOST_TEST(support::outputs_of(stream, kSteps) == y.shape()[1]);
  BOOST_TEST(goes(stream, 0, kSteps, y), "the whole sequence");
  BOOST_TEST(stream.on_tensors() == 0U);
  stream.reset();
  BOOST_TEST(goes(stream, 0, 4, y), "after reset");
  nn::Stream clone = stream.clone();
  const std::vector<Tensor> saved = stream.save();
  BOOST_TEST(goes(clone, 4, kSteps, y), "a clone");
  BOOST_TEST(goes(stream, 4, 7, y), "the original");
  stream.restore(saved);
  BOOST_TEST(goes(stream, 4, kSteps, y), "restored");
  nn::Stream other = net.stream(batch);
  if (net.step_input().width == 0) (void)goes(other, 0, 1, y);  // determines the width
  other.restore(saved);
  BOOST_TEST(goes(other, 4, 6, y), "restored in another stream");

  // Several steps at once, between single ones.
  const bool even = net.pace().even();
  if (even) {
    other.restore(saved);
    BOOST_TEST(identical(at_once(other, piece(4, 7), y.spec()), slice(y, 1, 4, 7)), "three steps at once");
    BOOST_TEST(goes(other, 7, 8, y), "one after them");
    BOOST_TEST(identical(at_once(other, piece(8, kSteps), y.spec()), slice(y, 1, 8, kSteps)), "the rest at once");
  }

  // One row restarts from its first steps; the others continue.
  const std::int64_t fresh = batch - 1;
  other.restore(saved);
  other.reset(fresh);
  const auto own = [&](std::int64_t b) { return b == fresh ? slice(x, 1, 0, kSteps - 4) : piece(4, kSteps); };
  Tensors rows;
  for (std::int64_t b = 0; b < batch; ++b) rows.push_back(select(own(b), 0, b));
  const support::RowOutputs mixed =
      support::fed(other, stack(std::span<const Tensor>(rows.data(), rows.size()), 0), y.spec());
  for (std::int64_t b = 0; b < batch; ++b)
    BOOST_TEST(support::gave_row(other, mixed, y, b, b == fresh ? 0 : 4, b == fresh ? kSteps - 4 : kSteps),
               "row " << b);

  // A stream has a snapshot of the weights until refresh.
  if (net.parameters().empty()) return;
  stream.reset();
  for (const Parameter& p : net.parameters()) p.assign(p.value() * 0.5);
  BOOST_TEST(goes(stream, 0, kSteps, y), "a snapshot");
  stream.reset();
  stream.refresh();
  BOOST_TEST(goes(stream, 0, kSteps, whole(net, x)), "refreshed");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_layers)

BOOST_AUTO_TEST_CASE(every_causal_layer_streams_with_the_bits_of_the_whole_sequence) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& [word, nets] : catalogue(dtype))
      for (std::size_t k = 0; k < nets.size(); ++k)
        for (const std::int64_t batch : {1, 3})
          BOOST_TEST_CONTEXT(word << " " << k << ", " << name_of(dtype) << ", batch " << batch)
  try_stream(nets[k]().build(2, dtype), batch, dtype);
}

/// Every word of the builder is streamed above, or listed as one that cannot be.
BOOST_AUTO_TEST_CASE(no_word_of_the_builder_is_left_out) {
  std::ifstream file(std::string(FERRITE_SOURCE_DIR) + "/dsl/builder.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  static const std::regex pattern(R"(\n  Builder& (\w+)\()");
  const auto tried = catalogue(Dtype::f32);
  std::size_t found = 0;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at) {
    const std::string word = (*at)[1];
    if (word == "word" || word == "branches") continue;  // the words that others are made of
    ++found;
    BOOST_TEST(tried.contains(word) != kNotCausal.contains(word), word);
  }
  BOOST_TEST(found > 20U);
}

/// Attention over all steps so far holds as many as declared, and refuses more.
BOOST_AUTO_TEST_CASE(a_state_that_grows_has_a_capacity) {
  const nn::Init init{.seed = 4};
  const auto net = dsl::sequence(kFeatures)
                       .gru(kFeatures)
                       .lstm(kFeatures)
                       .add(causal_layers::Attention(kFeatures, 4, init), "attention")
                       .recurrent<nn::LayerNormGruCell>(2)
                       .build(1);
  net.eval();
  const Tensor x = uniform({2, 5, kFeatures}, {5, 2, 0}, -1, 1), y = net(x);
  nn::Stream stream = net.stream(2);
  BOOST_TEST(identical(streamed(stream, slice(x, 1, 0, 4), y.spec()), slice(y, 1, 0, 4)));
  const std::vector<Tensor> before = stream.save();
  const auto is_full = [](const nn::CapacityError& e) {
    return says(
               "in attention: stream: 'keys' of attention is full: row 0 has made 4 steps; reset it, or declare a "
               "larger capacity")(e) &&
           e.layer() == "attention";
  };
  for (int again = 0; again < 2; ++again)
    BOOST_CHECK_EXCEPTION((void)streamed(stream, slice(x, 1, 4), y.spec()), nn::CapacityError, is_full);
  const std::vector<Tensor> after = stream.save();
  BOOST_REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) BOOST_TEST(identical(before[i], after[i]), "state " << i);
  stream.reset(0);
  BOOST_CHECK_EXCEPTION((void)streamed(stream, slice(x, 1, 4), y.spec()), nn::CapacityError,
                        says("row 1 has made 4 steps"));
  stream.reset();
  BOOST_TEST(identical(streamed(stream, slice(x, 1, 0, 4), y.spec()), slice(y, 1, 0, 4)));
  std::vector<Tensor> wrong = before;
  wrong[5] = Tensor::from<std::int64_t>({1, 9});
  BOOST_CHECK_EXCEPTION(stream.restore(wrong), ValueError,
                        says("'steps' of a row cannot be 9, which lies outside 0..4"));
}

/// An error in the middle of a network has not changed any of its states.
BOOST_AUTO_TEST_CASE(a_step_that_throws_has_changed_nothing) {
  struct Strict final : nn::Layer {
    std::string kind() const override { return "strict"; }
    bool causal() const override { return true; }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      return x + 0 * cast(checked(cast(x, Dtype::i64), -9, 9, "strict: a value of"), x.dtype());
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Strict>(); }
  };
  /// A layer that cannot be streamed because it reads all steps.
  struct Turning final : nn::Layer {
    nn::Gru gru{kFeatures, kFeatures, nn::Init{.seed = 3}};
    Turning() { adopt("gru", gru); }
    std::string kind() const override { return "turning"; }
    bool causal() const override { return true; }
    nn::StepInput step_input() const override { return gru.step_input(); }
    Tensor forward(const Tensor& x, const nn::Context& c) const override { return gru(flip(flip(x, {1}), {1}), c); }
    std::unique_ptr<nn::Layer> clone() const override {
      auto copy = std::make_unique<Turning>();
      nn::copy_values(*this, *copy);
      return copy;
    }
  };
  const nn::Init init{.seed = 4};
  const auto net = dsl::sequence(kFeatures)
                       .residual([&](dsl::Builder& b) {
                         b.gru(kFeatures).lstm(kFeatures).rnn(kFeatures).add(Turning());
                         b.add(causal_layers::FilteredGru(kFeatures, init));
                         b.recurrent<nn::LayerNormGruCell>(kFeatures);
                       })
                       .add(Strict())
                       .linear(2)
                       .build(1);
  net.eval();
  const Tensor x = uniform({1, 6, kFeatures}, {5, 2, 0}, -0.5, 0.5), y = net(x);
  nn::Stream stream = net.stream();
  BOOST_TEST(stream.on_tensors() == 1U);
  BOOST_TEST(identical(streamed(stream, slice(x, 1, 0, 3), y.spec()), slice(y, 1, 0, 3)));
  const std::vector<Tensor> before = stream.save();
  std::vector<float> out(2);
  const std::vector<float> bad(kFeatures, 100.0F);
  BOOST_CHECK_EXCEPTION(stream.step(bad, out), ShapeError, says("in 1: strict: a value of"));
  const std::vector<Tensor> after = stream.save();
  BOOST_REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) BOOST_TEST(identical(before[i], after[i]), "state " << i);
  BOOST_TEST(identical(streamed(stream, slice(x, 1, 3), y.spec()), slice(y, 1, 3)));
}

BOOST_AUTO_TEST_SUITE_END()
