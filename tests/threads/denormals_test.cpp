// Denormals count as zero where that was requested, and only there.
#include <bit>
#include <cstring>
#include <latch>
#include <stdexcept>
#include <thread>

#include "ferrite/compile/compile.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

struct Supported {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result yes(FlushDenormals::supported());
    yes.message() << "this processor cannot flush denormals";
    return yes;
  }
};

/// Made before any guard, because a conversion would be flushed, too.
const Tensor kDenormal = full({33}, 0x1p-140, Dtype::f32);

/// Returns whether all bits are zero: a comparison would take a denormal operand for 0.
template <class T>
bool all_zero(const Tensor& x) {
  const std::span<const T> v = x.values<T>();
  const std::vector<T> zeros(v.size());
  return std::memcmp(v.data(), zeros.data(), v.size_bytes()) == 0;
}

/// Returns whether denormal results of products become 0 at this point.
bool flushes_results() { return all_zero<float>(full({33}, 1e-30) * 1e-10); }
bool flushes_wide_results() { return all_zero<double>(full({33}, 1e-200, Dtype::f64) * 1e-110); }
/// Returns whether denormal operands count as 0.
bool flushes_operands() { return all_zero<float>(kDenormal * 0x1p100); }
bool flushes() { return flushes_results() && flushes_wide_results() && flushes_operands(); }
bool keeps() { return !flushes_results() && !flushes_wide_results() && !flushes_operands(); }

/// Returns whether a product is flushed, without tensors, for the helpers of a loop.
bool flushes_a_product() {
  volatile float small = 1e-30F;
  volatile float product = small * 1e-10F;
  return std::bit_cast<std::uint32_t>(static_cast<float>(product)) == 0;
}

/// Returns in how many of three loop bodies, each on its own thread, a product is flushed.
int bodies_that_flush() {
  std::latch all_here(3);
  std::atomic<int> count{0};
  detail::parallel_for(3, [&](std::int64_t) {
    all_here.arrive_and_wait();
    if (flushes_a_product()) ++count;
  });
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(denormals, *boost::unit_test::precondition(Supported()))

BOOST_AUTO_TEST_CASE(off_unless_asked) {
  BOOST_TEST(keeps());
  BOOST_TEST(!FlushDenormals::active());
}

BOOST_AUTO_TEST_CASE(flushed_inside_and_not_outside) {
  {
    const FlushDenormals guard;
    BOOST_TEST(flushes());
    BOOST_TEST(FlushDenormals::active());
  }
  BOOST_TEST(keeps());
}

BOOST_AUTO_TEST_CASE(restored_after_an_exception) {
  try {
    const FlushDenormals guard;
    (void)(ones({2}) + ones({3}));
  } catch (const ShapeError&) {
  }
  BOOST_TEST(keeps());
}

BOOST_AUTO_TEST_CASE(an_inner_guard_leaves_the_outer_one) {
  const FlushDenormals outer;
  {
    const FlushDenormals inner;
    BOOST_TEST(flushes());
  }
  BOOST_TEST(flushes());
}

BOOST_AUTO_TEST_CASE(kept_within_a_guard_that_flushes) {
  const FlushDenormals guard;
  {
    const KeepDenormals kept;
    BOOST_TEST(keeps());
    const FlushDenormals again;
    BOOST_TEST(flushes());
  }
  BOOST_TEST(flushes());
}

/// A constant that a compiled function computes once, for all calls, does not depend on the guard at the first call.
BOOST_AUTO_TEST_CASE(constants_of_a_compiled_function_are_those_of_any_call) {
  const auto f = compile([](const Tensor& x) { return x * (full({33}, 1e-30) * 1e-10); });
  const Tensor x = full({33}, 0x1p100);
  {
    const FlushDenormals guard;
    (void)f(x);
  }
  BOOST_TEST(identical(f(x), x * (full({33}, 1e-30) * 1e-10)));
}

BOOST_AUTO_TEST_CASE(other_threads_go_on_as_they_were) {
  std::latch guarded(1);
  bool kept = false;
  {
    std::jthread other([&] {
      guarded.wait();
      kept = keeps();
    });
    const FlushDenormals guard;
    guarded.count_down();
    other.join();
  }
  BOOST_TEST(kept);
}

BOOST_AUTO_TEST_CASE(helpers_compute_as_their_caller_does) {
  set_threads(3);
  BOOST_TEST(bodies_that_flush() == 0);
  {
    const FlushDenormals guard;
    BOOST_TEST(bodies_that_flush() == 3);
  }
  BOOST_TEST(bodies_that_flush() == 0);
  set_threads(1);
}

BOOST_AUTO_TEST_CASE(helpers_forget_it_also_after_an_exception) {
  set_threads(3);
  const auto fail = [] {
    std::latch all_here(3);
    detail::parallel_for(3, [&](std::int64_t) {
      all_here.arrive_and_wait();
      throw std::runtime_error("no");
    });
  };
  {
    const FlushDenormals guard;
    BOOST_CHECK_THROW(fail(), std::runtime_error);
  }
  BOOST_TEST(bodies_that_flush() == 0);
  set_threads(1);
}

BOOST_AUTO_TEST_CASE(ordinary_values_keep_their_bits) {
  const nn::Gru gru(5, 7, {}, {.seed = 1});
  const Tensor x = uniform({2, 6, 5}, {1, 2, 3}, -1, 1);
  const Tensor wanted = gru(x);
  const FlushDenormals guard;
  BOOST_TEST(identical(gru(x), wanted));
}

BOOST_AUTO_TEST_SUITE_END()
