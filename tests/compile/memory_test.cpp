// The memory planner: values that live at the same time do not overlap, and little memory is wasted.
#include "ferrite/compile/plan/detail/plan_memory.h"

#include <boost/test/unit_test.hpp>
#include <random>

#include "ferrite/tensor/error.h"

using namespace ferrite::detail;

namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

void check(const std::vector<Lifetime>& lives, const MemoryLayout& m) {
  for (std::size_t i = 0; i < lives.size(); ++i) {
    BOOST_TEST(m.offsets[i] % 64 == 0);
    BOOST_TEST(m.offsets[i] + lives[i].bytes <= m.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      if (!overlap(lives[i], lives[j])) continue;
      const bool apart = m.offsets[i] + lives[i].bytes <= m.offsets[j] || m.offsets[j] + lives[j].bytes <= m.offsets[i];
      BOOST_TEST(apart);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory)

BOOST_AUTO_TEST_CASE(what_lives_together_stands_apart) {
  std::mt19937_64 random(3);
  double worst = 1;
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 60; ++i) {
      const std::size_t first = random() % 100;
      lives.push_back({first, first + random() % 12, static_cast<std::int64_t>(random() % 5000 + 1)});
    }
    const MemoryLayout m = lay_out(lives);
    check(lives, m);
    check(lives, lay_out_apart(lives));
    BOOST_TEST(m.bytes >= m.bound);
    worst = std::max(worst, static_cast<double>(m.bytes) / static_cast<double>(m.bound));
  }
  BOOST_TEST(worst < 1.3);
}

BOOST_AUTO_TEST_CASE(a_chain_needs_two_buffers) {
  std::vector<Lifetime> chain;
  for (std::size_t t = 0; t < 100; ++t) chain.push_back({t, t + 1, 640});
  const MemoryLayout m = lay_out(chain);
  BOOST_TEST(m.bound == 1280);
  BOOST_TEST(m.bytes == 1280);
}

/// The bytes of four values add up to 0 in 64 bits, and so do those of one value.
BOOST_AUTO_TEST_CASE(bytes_that_wrap_are_refused) {
  using ferrite::Dtype, ferrite::ShapeError, ferrite::Spec;
  constexpr std::int64_t quarter = std::int64_t{1} << 62;
  const std::vector<Spec> many(4, Spec{{quarter}, Dtype::boolean});
  BOOST_CHECK_THROW(check_bytes(many), ShapeError);
  const std::vector<Spec> one = {{{quarter}, Dtype::f32}};
  BOOST_CHECK_THROW(check_bytes(one), ShapeError);
  check_bytes(std::vector<Spec>{{{1 << 20, 1 << 20}, Dtype::f64}, {{}, Dtype::f32}});
}

BOOST_AUTO_TEST_CASE(nothing_needs_nothing) {
  BOOST_TEST(lay_out({}).bytes == 0);
  BOOST_TEST(lay_out({}).bound == 0);
}

BOOST_AUTO_TEST_SUITE_END()
