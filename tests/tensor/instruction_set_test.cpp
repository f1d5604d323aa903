// The instruction set with which the library computes: the best available, or the one that FERRITE_ISA names.
#include "ferrite/tensor/instruction_set.h"

#include <algorithm>
#include <cstdlib>

#include "ferrite/tensor/kernel/choose_level.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"
#include "support/system.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr detail::Level kBuilt[] = {{"sse2", true}, {"avx2", true}, {"avx512", false}};

std::string_view chosen(std::string_view asked) { return kBuilt[detail::choose_level(kBuilt, asked)].name; }

}  // namespace

BOOST_AUTO_TEST_SUITE(instruction_set)

BOOST_AUTO_TEST_CASE(the_widest_that_the_processor_runs_is_chosen) {
  BOOST_TEST(chosen("") == "avx2");
  BOOST_TEST(chosen("sse2") == "sse2");
  BOOST_TEST(chosen("avx2") == "avx2");
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_refused_by_name) {
  BOOST_CHECK_EXCEPTION(chosen("avx512"), ValueError,
                        says("FERRITE_ISA: this processor does not have the instruction set: 'avx512'; it runs sse2, "
                             "avx2"));
  for (const std::string_view asked : {"avx3", "AVX2", "avx2 ", "neon"})
    BOOST_CHECK_EXCEPTION(
        chosen(asked), ValueError,
        says("FERRITE_ISA: the library has no kernels for the instruction set: '" + std::string(asked) +
             "'; it has sse2, avx2, avx512, of which this processor runs sse2, "
             "avx2"));
}

BOOST_AUTO_TEST_CASE(a_processor_without_any_is_told_what_to_build) {
  const detail::Level wide[] = {{"avx2", false}, {"avx512", false}};
  BOOST_CHECK_EXCEPTION(detail::choose_level(wide, ""), ValueError,
                        says("instruction_set: this processor has none of those that the library was built for: avx2, "
                             "avx512; build it with FERRITE_ISA_LEVELS=all"));
}

/// FERRITE_ISA has the value that the user set; ctest sets it to each set in turn.
BOOST_AUTO_TEST_CASE(this_process_uses_what_it_was_asked_for) {
  const std::vector<std::string_view> all = ferrite::instruction_sets();
  const char* const asked = std::getenv("FERRITE_ISA");
  BOOST_TEST(ferrite::instruction_set() == (asked && *asked ? asked : all.back()));
  const std::int64_t lanes = detail::products_in_use.of<float>().lanes;
  const std::string_view used = ferrite::instruction_set();
  if (used == "sse2" || used == "neon") BOOST_TEST(lanes == 4);
  if (used == "avx2") BOOST_TEST(lanes == 8);
  if (used == "avx512") BOOST_TEST(lanes == 16);
}

BOOST_AUTO_TEST_CASE(it_stays_what_it_was) {
  const std::string_view before = ferrite::instruction_set();
  const Tensor a = uniform({5, 40}, {3, 1, 0}, -1, 1), b = uniform({40, 33}, {3, 2, 0}, -1, 1);
  const Tensor product = matmul(a, b);
  const char* const found = std::getenv("FERRITE_ISA");
  const std::string asked = found ? found : "";
  for (const std::string_view other : ferrite::instruction_sets()) {
    support::set_environment("FERRITE_ISA", std::string(other));
    BOOST_TEST(ferrite::instruction_set() == before);
    BOOST_TEST(identical(matmul(a, b), product));
  }
  if (found) {
    support::set_environment("FERRITE_ISA", asked);
  } else {
    support::unset_environment("FERRITE_ISA");
  }
}

/// ctest runs this case in a separate process, with FERRITE_ISA=avx3.
BOOST_AUTO_TEST_CASE(none_such, *boost::unit_test::disabled()) {
  const auto refused = says("FERRITE_ISA: the library has no kernels for the instruction set: 'avx3'; it has ");
  const Tensor x = Tensor::from({1.0F, 2.0F}, {2});
  for (int time = 0; time < 2; ++time) {
    BOOST_CHECK_EXCEPTION(ferrite::instruction_set(), ValueError, refused);
    BOOST_CHECK_EXCEPTION(x + x, ValueError, refused);
    BOOST_CHECK_EXCEPTION(matmul(unsqueeze(x, 0), unsqueeze(x, 1)), ValueError, refused);
  }
  BOOST_TEST(x.to_vector<float>().back() == 2.0F);
  BOOST_TEST(!ferrite::instruction_sets().empty());
}

BOOST_AUTO_TEST_SUITE_END()
