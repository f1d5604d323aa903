// Random programs: eager = planned = fused, to the bit.
#include <cstdlib>

#include "programs.h"
#include "support/sanitized.h"

namespace {

/// FERRITE_PROGRAMS asks for more (or FERRITE_SEED for one).
std::uint64_t programs_to_run() {
  const char* n = std::getenv("FERRITE_PROGRAMS");
  return n ? std::strtoull(n, nullptr, 10) : support::unless_sanitized(2000U, 200U);
}

void check(std::uint64_t seed, const programs::Mix& mix) {
  const programs::Program f(seed, mix);
  for (const ferrite::PlanOptions& options :
       {ferrite::PlanOptions{}, ferrite::PlanOptions{.fuse = false}, ferrite::PlanOptions{.reuse = false}}) {
    std::string difference;
    try {
      difference = programs::difference(f, options);
    } catch (const std::exception& e) {
      difference = e.what();
    }
    BOOST_TEST(difference.empty(),
               "seed " << seed << ", fuse " << options.fuse << ", reuse " << options.reuse << ": " << difference);
    if (!difference.empty()) return;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_programs)

BOOST_AUTO_TEST_CASE(give_the_bits_of_eager_ones) {
  if (const char* seed = std::getenv("FERRITE_SEED")) return check(std::strtoull(seed, nullptr, 10), {});
  for (std::uint64_t seed = 1; seed <= programs_to_run(); ++seed) check(seed, {});
}

BOOST_AUTO_TEST_SUITE_END()
