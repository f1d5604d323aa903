// The ends of the logistic function in f32, and its error where it is small.
#include <cmath>
#include <limits>

#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(sigmoid_ends)

BOOST_AUTO_TEST_CASE(zero_one_and_nan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> y =
      sigmoid(Tensor::from<float>({-infinity, -1e30F, -1000, -89, -88.5F, 0, 88.5F, 1000, infinity}))
          .to_vector<float>();
  const std::vector<float> expected = {0, 0, 0, 0, 0, 0.5F, 1, 1, 1};
  BOOST_TEST(y == expected, boost::test_tools::per_element());
  BOOST_TEST(std::isnan(sigmoid(Tensor::from<float>({std::nanf("")})).to_vector<float>()[0]));
}

BOOST_AUTO_TEST_CASE(small_results_are_within_their_bound) {
  std::vector<float> x;
  for (int i = 0; i < 20000; ++i) x.push_back(-87 + 0.0035F * static_cast<float>(i));
  const std::vector<float> y = sigmoid(Tensor::from(x, {20000})).to_vector<float>();
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    int exponent = 0;
    std::frexp(exact, &exponent);
    most = std::max(most, std::abs(static_cast<double>(y[i]) - exact) / std::ldexp(1.0, exponent - 24));
  }
  BOOST_TEST(most < 2.5);
}

/// A gate near 1 that is off in the same direction at every step moves a state away over thousands of steps.
BOOST_AUTO_TEST_CASE(results_near_one_are_the_nearest) {
  std::vector<float> x;
  for (int i = 0; i < 12000; ++i) x.push_back(4.001F + 0.001F * static_cast<float>(i));
  const std::vector<float> y = sigmoid(Tensor::from(x, {12000})).to_vector<float>();
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    most = std::max(most, std::abs(static_cast<double>(y[i]) - exact) / std::ldexp(1.0, -24));
  }
  BOOST_TEST(most < 0.6);
}

BOOST_AUTO_TEST_SUITE_END()
