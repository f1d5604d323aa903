// Sizes that represent batch and time inside the builder, layers that need the number of steps, and error texts.
#include "ferrite/dsl/builder.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

namespace {

/// A layer that reads values, which do not exist while a net is built.
class Reader final : public nn::Layer {
 public:
  std::string kind() const override { return "reader"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return x * x.to_vector<float>()[0]; }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Reader>(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(fit)

/// A layer has H C multiply-adds for every size, including the sizes with which a chain is tried (batch and time).
BOOST_AUTO_TEST_CASE(any_size_can_be_built) {
  for (const std::int64_t n : {1, 2, 3, 5, 89, 256, 257, 261}) {
    const auto vectors = dsl::features(n).linear(3).build(0);
    BOOST_TEST(vectors(zeros({2, n})).shape().str() == "[2, 3]");
    BOOST_TEST(vectors.rows()[0].multiply_adds == 3 * n);
    const auto steps = dsl::sequence(2).linear(n).last_step().linear(3).build(0);
    BOOST_TEST(steps(zeros({2, 4, 2})).shape().str() == "[2, 3]");
    BOOST_TEST(steps.rows()[2].multiply_adds == 3 * n);
  }
  const auto net = dsl::sequence(12).gru(89).last_step().linear(9).build(0);
  BOOST_TEST(net.rows()[1].output == "[B, 89]");
}

BOOST_AUTO_TEST_CASE(what_needs_the_number_of_steps_is_refused) {
  BOOST_CHECK_EXCEPTION((void)dsl::sequence(3).flatten().linear(4).build(0), ShapeError,
                        says("layer 0 (flatten \"0\"): flatten: the output's size depends on the number of steps; use "
                             "last_step or mean_over_time; the input is [B, T, 3]"));
  BOOST_TEST(dsl::sequence(3).last_step().flatten().build(0)(zeros({2, 5, 3})).shape().str() == "[2, 3]");
}

BOOST_AUTO_TEST_CASE(errors_say_once_what_came_in) {
  const auto text = [](const dsl::Builder& b) {
    try {
      (void)b.build(0);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  BOOST_TEST(text(dsl::features(784).gru(64)) ==
             "layer 0 (gru \"0\"): gru: expects input [B, T, 784], got [B, 784]; the input is [B, 784]");
  const auto nested = [](dsl::Builder& b) { b.linear(4).add(nn::Linear(9, 2), "x"); };
  BOOST_TEST(
      text(dsl::features(3).stage("enc", nested)) ==
      "layer 0 (stage \"enc\"): layer 1 (linear \"x\"): linear: expects 9 features, got [2, 4]; the layer before "
      "it gives [B, 4]");
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).linear(2).add(Reader()).build(0), TraceError,
                        says("layer 1 (reader \"1\"): "));
}

BOOST_AUTO_TEST_CASE(names_must_differ_in_full) {
  const auto part = [](dsl::Builder& b) { b.linear(3, "b"); };
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).stage("a", part).linear(3, "a.b").build(0), ValueError,
                        says("layer 1 (linear \"a.b\"): adopt: the name 'a.b.weight' is taken"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).stage("a", nullptr), ValueError, says("stage: the part is empty"));
  BOOST_CHECK_EXCEPTION((void)dsl::features(3).repeat(2, nullptr), ValueError, says("repeat: the part is empty"));
}

BOOST_AUTO_TEST_SUITE_END()
