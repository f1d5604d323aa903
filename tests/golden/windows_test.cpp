// Interpolation, unfold and fold and their gradients compared with PyTorch 2.13: tests/data/make_window_fixtures.py
// writes the cases.
#include "ferrite/tensor/windows.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

constexpr double kTolerance = 1e-12;

Shape numbers(const std::vector<double>& v, std::size_t first, std::size_t count) {
  Shape s;
  for (std::size_t i = first; i < first + count; ++i) s.push_back(static_cast<std::int64_t>(v[i]));
  return s;
}

Tensor applied(const std::vector<double>& o, const Tensor& x) {
  if (o[0] == 0) {
    const auto sizes = static_cast<std::size_t>(o[4]), factors = static_cast<std::size_t>(o[5]);
    InterpolateOptions options{.size = numbers(o, 6, sizes),
                               .scale_factor = {},
                               .mode = static_cast<Interpolation>(static_cast<int>(o[1])),
                               .align_corners = o[2] != 0,
                               .recompute_scale_factor = o[3] != 0};
    for (std::size_t i = 0; i < factors; ++i) options.scale_factor.push_back(o[6 + sizes + i]);
    return interpolate(x, options);
  }
  if (o[0] == 3)
    return unfold(x, static_cast<std::int64_t>(o[1]), static_cast<std::int64_t>(o[2]), static_cast<std::int64_t>(o[3]));
  const UnfoldOptions options{.stride = numbers(o, 4, 2), .padding = numbers(o, 6, 2), .dilation = numbers(o, 8, 2)};
  if (o[0] == 1) return unfold(x, numbers(o, 2, 2), options);
  return fold(x, numbers(o, 10, 2), numbers(o, 2, 2), options);
}

void check(const io::TensorFile& file, const std::string& name) {
  BOOST_TEST_CONTEXT(name) {
    const std::vector<double> options = file.tensor(name + "/options").to_vector<double>();
    const auto drawn = [&](const char* what) { return cast(file.tensor(name + what), Dtype::f64); };
    Tape tape;
    const Tensor x = tape.watch(drawn("/x")), cot = tape.watch(drawn("/cot"));
    const Tensor y = applied(options, x);
    BOOST_TEST(within(y, file.tensor(name + "/out"), kTolerance));
    const Tensor gx = tape.grad(y, {x}, {.create_graph = true}, cot)[0];
    BOOST_TEST(within(gx, file.tensor(name + "/gx"), kTolerance));
    // The functions are linear: the gradient of the gradient by the cotangent, along x, is the function of x.
    const Tensor again = tape.grad(gx, {cot}, {}, detach(x))[0];
    BOOST_TEST(within(again, file.tensor(name + "/out"), kTolerance));
    const Tensor single = applied(options, cast(drawn("/x"), Dtype::f32));
    BOOST_TEST(within(cast(single, Dtype::f64), file.tensor(name + "/out"), 1e-6));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(windows_golden)

BOOST_AUTO_TEST_CASE(values_and_gradients) {
  const io::TensorFile file = support::fixture("windows.safetensors");
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  BOOST_TEST(cases.size() >= 100U);
  for (const std::string& name : cases) check(file, name);
}

BOOST_AUTO_TEST_SUITE_END()
