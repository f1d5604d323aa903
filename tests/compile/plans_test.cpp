// The plans of a compiled function: how many are kept, calls while a plan is made, and what a plan cannot see.
#include <string>
#include <vector>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

BOOST_AUTO_TEST_SUITE(plans)

/// The plan that was not used for longest is dropped first, and traced again when it is needed.
BOOST_AUTO_TEST_CASE(only_so_many_plans_are_kept) {
  int traced = 0;
  const auto f = compile(
      [&](const Tensor& x) {
        ++traced;
        return exp(x) * 2;
      },
      {.most_plans = 3});
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::info) lines.emplace_back(line);
  });
  for (std::int64_t n = 1; n <= 3; ++n) (void)f(ones({n}));
  BOOST_TEST(lines.empty());
  (void)f(ones({1}));  // now the plan of {2} is the oldest
  BOOST_TEST(traced == 3);
  BOOST_TEST(identical(f(ones({4})), exp(ones({4})) * 2));
  set_log_sink({});
  BOOST_TEST(lines.size() == 1U);
  BOOST_TEST((!lines.empty() && lines[0].find("more than 3 plans") != std::string::npos));
  BOOST_TEST(f.plans() == 3U);
  (void)f(ones({1})), (void)f(ones({3})), (void)f(ones({4}));
  BOOST_TEST(traced == 4);
  BOOST_TEST(identical(f(ones({2})), exp(ones({2})) * 2));
  BOOST_TEST(traced == 5);
}

/// The gradients of a call outlive its plan.
BOOST_AUTO_TEST_CASE(a_dropped_plan_is_still_differentiated) {
  const auto f = compile([](const Tensor& x) { return sum(square(x)); }, {.most_plans = 1});
  Tape tape;
  const Tensor x = tape.watch(ones({3})), z = tape.watch(ones({2}));
  const Tensor y = f(x);
  (void)f(z);
  BOOST_TEST(identical(tape.grad(y, {x})[0], full({3}, 2.F)));
}

BOOST_AUTO_TEST_CASE(plans_and_reports_may_be_asked_for_while_a_plan_is_made) {
  std::function<void()> ask;
  std::size_t seen = 99;
  const auto f = compile([&](const Tensor& x) {
    if (ask) ask();
    return x + 1;
  });
  ask = [&] { seen = f.plans(); };
  (void)f(ones({1}));
  BOOST_TEST(seen == 0U);
  ask = [&] { seen = f.report().operations; };
  (void)f(ones({2}));
  BOOST_TEST(seen == 1U);
  ask = nullptr;
  std::size_t in_sink = 99;
  set_log_sink([&](LogLevel, std::string_view) { in_sink = f.plans(); }, LogLevel::debug);
  (void)f(ones({3}));
  set_log_sink({});
  BOOST_TEST(in_sink == 2U);
}

BOOST_AUTO_TEST_CASE(a_null_function_is_refused) {
  BOOST_CHECK_EXCEPTION((void)compile(std::function<Tensor(const Tensor&)>()), ValueError,
                        says("compile: the function is null"));
  using Function = Tensor (*)(const Tensor&);
  BOOST_CHECK_EXCEPTION((void)compile(Function(nullptr)), ValueError, says("compile: the function is null"));
  BOOST_CHECK_EXCEPTION((void)scan({}, {ones({1})}, {}, {.steps = 1}), ValueError, says("scan: the body is null"));
  BOOST_CHECK_EXCEPTION((void)Scan({}), ValueError, says("scan: the body is null"));
  BOOST_CHECK_EXCEPTION((void)trace({}, {}), ValueError, says("trace: the function is null"));
}

/// Captured C++ values are read once, and `verify` notices when they change.
BOOST_AUTO_TEST_CASE(verify_notices_what_a_plan_cannot_see) {
  double scale = 2;
  Tensor captured = ones({2});
  const State a("a", zeros({2})), b("b", zeros({2})), other_a("a", zeros({2}));
  const State* which = &a;
  const auto f = compile([&](const Tensor& x) { return x * scale + captured + which->value(); });
  const Tensor x = ones({2});
  BOOST_CHECK_EXCEPTION(f.verify(x), Error, says("call the function first"));
  const Tensor first = f(x);
  f.verify(x);
  scale = 3;
  BOOST_TEST(identical(f(x), first));
  BOOST_CHECK_EXCEPTION(f.verify(x), TraceError, says("b=~2.0' is now"));
  scale = 2;
  captured = zeros({2});
  BOOST_CHECK_EXCEPTION(f.verify(x), TraceError, says("is no longer the one that was traced"));
  captured = ones({2});
  f.verify(x);
  which = &b;
  BOOST_CHECK_EXCEPTION(f.verify(x), TraceError, says("state \"b\"'"));
  which = &other_a;
  BOOST_CHECK_EXCEPTION(f.verify(x), TraceError, says("another variable 'a'"));
}

BOOST_AUTO_TEST_SUITE_END()
