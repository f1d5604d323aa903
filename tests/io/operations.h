#pragma once
/// Limits on the work of reading, in instructions: the same on every run, whatever else the machine does.
#include <boost/test/unit_test.hpp>
#include <cstddef>

#include "../bench/instructions.h"
#include "support/sanitized.h"

namespace operations {

/// A precondition: the system counts instructions, and no sanitizer adds its own. If not, a case that needs nothing
/// else is skipped, visibly.
inline boost::test_tools::assertion_result counted(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!support::kSanitized && bench::Instructions().available());
  result.message() << "instructions are not counted here";
  return result;
}

#ifdef FERRITE_OPTIMIZED
inline constexpr double kAsOptimized = 1;
#else
inline constexpr double kAsOptimized = 20;  ///< largest factor of instructions if the library is not optimised
#endif

/// Runs f and checks that it takes at most a number of instructions for each byte, and 20 million independent of their
/// number.
template <class F>
void check_linear(std::size_t bytes, double instructions_a_byte, F&& f) {
  const bench::Instructions counter;
  counter.start();
  f();
  const std::int64_t spent = counter.stop();
  if (spent < 0 || support::kSanitized) return;
  BOOST_TEST_MESSAGE(bytes << " bytes: " << static_cast<double>(spent) / static_cast<double>(bytes)
                           << " instructions a byte");
  const double most = 2e7 + instructions_a_byte * static_cast<double>(bytes);
  BOOST_TEST(static_cast<double>(spent) <= kAsOptimized * most);
}

}  // namespace operations
