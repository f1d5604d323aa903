// Errors of the selective scan, eagerly and in a program.
#include <boost/test/unit_test.hpp>

#include "ferrite/compile/compile.h"
#include "tensor/selective_scan_cases.h"

using namespace ferrite;
using namespace selective_scan_cases;

BOOST_AUTO_TEST_SUITE(selective_scan_refused)

BOOST_AUTO_TEST_CASE(operands_that_do_not_fit_are_refused) {
  const Operands o = operands(2, 3, 4, 5, Dtype::f32);
  const auto says = [](const std::string& text) {
    return [text](const Error& e) {
      const bool named = std::string(e.what()).starts_with("selective_scan: ");
      BOOST_TEST(std::string(e.what()).find(text) != std::string::npos, e.what());
      return named;
    };
  };
  const auto shape = [&](auto change, const std::string& text) {
    Operands wrong = o;
    change(wrong);
    BOOST_CHECK_EXCEPTION(wrong.run(), ShapeError, says(text));
  };
  const auto dtype = [&](auto change, const std::string& text) {
    Operands wrong = o;
    change(wrong);
    BOOST_CHECK_EXCEPTION(wrong.run(), DtypeError, says(text));
  };
  shape([](Operands& w) { w.x = zeros({2, 3}); }, "[2, 3]");
  shape([](Operands& w) { w.delta = zeros({2, 3, 5}); }, "delta [2, 3, 5]");
  shape([](Operands& w) { w.A = zeros({5, 4}); }, "A [5, 4]");
  shape([](Operands& w) { w.B = zeros({2, 3, 4}); }, "B [2, 3, 4]");
  shape([](Operands& w) { w.C = zeros({2, 4, 5}); }, "C [2, 4, 5]");
  shape([](Operands& w) { w.D = zeros({5}); }, "[5]");
  shape([](Operands& w) { w.D = zeros({1, 4}); }, "[1, 4]");
  shape([](Operands& w) { w.options.state = zeros({2, 5, 4}); }, "[2, 5, 4]");
  shape([](Operands& w) { w.options.state = zeros({8}); }, "[8]");
  shape([](Operands& w) { w.options.lengths = i64s({1, 2, 3}); }, "[3]");
  shape([](Operands& w) { w.options.lengths = i64s({1, 4}); }, "a length of 4 lies outside 0..3");
  shape([](Operands& w) { w.options.lengths = i64s({-1, 3}); }, "a length of -1 lies outside 0..3");
  shape([](Operands& w) { w.options.resets = eq(zeros({3, 2}), 0); }, "[3, 2]");
  shape([](Operands& w) { w = steps(w, 0, 0, w.options.state); }, "no steps");
  dtype([](Operands& w) { w.A = cast(w.A, Dtype::f64); }, "f64");
  dtype([](Operands& w) { w.D = cast(w.D, Dtype::f64); }, "f64");
  dtype([](Operands& w) { w.x = cast(w.x, Dtype::i64); }, "i64");
  dtype([](Operands& w) { w.options.lengths = Tensor::from({1.0, 2.0}); }, "lengths");
  dtype([](Operands& w) { w.options.resets = zeros({2, 3}); }, "resets");
}

/// A compiled function checks lengths before it writes anything, even if the result is not read.
BOOST_AUTO_TEST_CASE(a_program_checks_lengths_first) {
  Operands o = operands(2, 3, 4, 5, Dtype::f32);
  Variable count("count", zeros({}), VariableKind::state);
  auto f = compile([&](const Tensor& lengths) {
    Operands p = o;
    p.options.lengths = lengths;
    count.assign(count.value() + 1);
    static_cast<void>(p.run());
    return lengths + 1;
  });
  static_cast<void>(f(i64s({1, 3})));
  BOOST_CHECK_THROW(static_cast<void>(f(i64s({1, 4}))), ShapeError);
  BOOST_TEST(count.value().item<float>() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
