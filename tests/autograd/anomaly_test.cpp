// Anomaly detection names operation, layer, element and shapes of the first NaN or infinity, forward and backward.
#include "ferrite/tensor/anomaly.h"

#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/tensor/profiler.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

Tensor of(std::initializer_list<float> values) { return Tensor::from(values); }

/// Returns the message of an anomaly in f; empty if there is none.
template <class F>
std::string anomaly_of(const F& f, const AnomalyOptions& options = {}) {
  const DetectAnomaly guard(options);
  try {
    f();
  } catch (const AnomalyError& e) {
    return e.what();
  }
  return {};
}

/// sqrt(x) as a layer with a name and a matrix, whose gradient is infinite at 0.
struct Root final : nn::Module {
  Parameter scale = parameter("scale", {2}, nn::init::constant(1), {.seed = 1});
  Root() : Module({.seed = 1}) {}
  Tensor forward(const Tensor& x) const {
    return inside([&] { return sqrt(x) * scale; });
  }
};
struct Net final : nn::Module {
  Root root;
  Net() : Module({.seed = 1}) { adopt("root", root); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(anomalies)

BOOST_AUTO_TEST_CASE(forward) {
  BOOST_TEST(anomaly_of([] {
               (void)(log(of({1, 0, -1}) * 1));
             }) == "log gave nan: element [2] of f32[3], operands f32[3]");
  BOOST_TEST(anomaly_of([] { (void)log(of({1, 0})); }) == "log gave inf: element [1] of f32[2], operands f32[2]");
  BOOST_TEST(anomaly_of([] {
               (void)(of({1, 2}) / 0);
             }) == "div gave inf: element [0] of f32[2], operands f32[2], with b=0");
  BOOST_TEST(anomaly_of([] {
               (void)(reshape(of({1, 1, 2, 3}), {2, 2}) / reshape(of({1, 1, 0, 1}), {2, 2}));
             }) == "div gave inf: element [1, 0] of f32[2, 2], operands f32[2, 2], f32[2, 2]");
  BOOST_TEST(anomaly_of([] {
               (void)(of({1, 2}) + of({kNan, 0}));
             }) == "add gave nan: element [0] of f32[2], operands f32[2], f32[2], of which 1 holds nan already");
}

BOOST_AUTO_TEST_CASE(what_is_no_anomaly) {
  BOOST_TEST(anomaly_of([] { (void)exp(of({1, 2})); }) == "");
  // A mask, and a value that follows from an infinity that was an input.
  BOOST_TEST(anomaly_of([] { (void)softmax(where(lt(of({1, 2}), 2), of({1, 2}), -kInf)); }) == "");
  BOOST_TEST(anomaly_of([] { (void)(of({kInf, 1}) * 2); }) == "");
  BOOST_TEST(anomaly_of([] { (void)full({2}, kInf); }) == "");
  BOOST_TEST(anomaly_of([] { (void)log(of({1, 0})); }, {.infinities = false}) == "");
  BOOST_TEST(anomaly_of([] { (void)log(of({-1})); }, {.infinities = false}) ==
             "log gave nan: element [0] of f32[1], operands f32[1]");
}

BOOST_AUTO_TEST_CASE(backward_names_the_forward_operation_and_the_layer) {
  const Net net;
  const Tensor x = of({4, 0});
  const auto step = [&] {
    Tape tape;
    const Tensor v = tape.watch(x);
    return tape.grad(sum(net.root.forward(v * 1)), {v})[0];
  };
  BOOST_TEST(step().to_vector<float>()[1] == kInf);
  const std::string text = anomaly_of([&] { (void)step(); });
  BOOST_TEST(text.starts_with("in root: gradient of sqrt: "), text);
  BOOST_TEST(text.find(" gave inf: element [1] of f32[2], operands f32[2]") != std::string::npos, text);
  BOOST_TEST(text.ends_with("; sqrt is of f32[2]"), text);
  BOOST_TEST(anomaly_of([&] {
               (void)net.root.forward(of({1, -1}));
             }) == "in root: sqrt gave nan: element [1] of f32[2], operands f32[2]");
}

BOOST_AUTO_TEST_CASE(compiled_functions_run_operation_by_operation) {
  const auto f = compile([](const Tensor& x) { return log(x) * 2; });
  BOOST_TEST(identical(f(of({1, -1})), log(of({1, -1})) * 2));
  BOOST_TEST(anomaly_of([&] { (void)f(of({1, -1})); }) == "log gave nan: element [1] of f32[2], operands f32[2]");
  const DetectAnomaly guard;
  BOOST_TEST(identical(f(of({1, 2})), log(of({1, 2})) * 2));
}

BOOST_AUTO_TEST_CASE(guards_nest_and_end) {
  BOOST_TEST(!detail::profiling());
  {
    const DetectAnomaly outer;
    {
      const DetectAnomaly inner({.infinities = false});
      (void)log(of({0}));
    }
    BOOST_CHECK_THROW((void)log(of({0})), AnomalyError);
    Profile profile;
    profile.stop();
    BOOST_TEST(detail::profiling());
    BOOST_CHECK_THROW((void)log(of({0})), AnomalyError);
  }
  BOOST_TEST(!detail::profiling());
  BOOST_TEST(!detail::detecting_anomalies());
  (void)log(of({0}));
}

BOOST_AUTO_TEST_SUITE_END()
