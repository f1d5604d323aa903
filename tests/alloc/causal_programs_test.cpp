// Random causal programs, of which nothing is said but `forward`, streamed: the bits of the whole sequence whatever the
// stream goes through meanwhile, and nothing asked of the system, of the pool or of a lock.
#include "support/causal_programs.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "counted.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

using causal_programs::Program;

/// As many as the variable says: 10,000 take a minute.
std::uint64_t programs() {
  const char* const n = std::getenv("FERRITE_CAUSAL_PROGRAMS");
  return n ? std::strtoull(n, nullptr, 10) : 400;
}

template <class T>
class ProgramTrial {
 public:
  ProgramTrial(const Program& net, std::uint64_t seed)
      : net_(net),
        random_(seed),
        B_(between(1, 3)),
        T_(between(6, 24)),
        x_(uniform({B_, T_, net.width()}, {seed, 1, 0}, -1, 1, dtype_of<T>)),
        y_(net(x_)),
        N_(y_.shape()[2]),
        in_(contiguous(transpose(x_, 0, 1)).to_vector<T>()) {}

  void run() {
    nn::Stream stream = net_.stream(B_);
    BOOST_TEST(stream.on_tensors() == 0U);
    BOOST_TEST(goes(stream, 0, T_), "the whole sequence");
    stream.reset();
    const std::int64_t cut = between(1, T_ - 1);
    BOOST_TEST(goes(stream, 0, cut), "up to the cut");
    const std::vector<Tensor> saved = stream.save();
    nn::Stream clone = stream.clone(), other = net_.stream(B_);
    BOOST_TEST(goes(stream, cut, T_), "the original");
    BOOST_TEST(goes(clone, cut, T_), "a clone");
    (void)goes(other, 0, between(0, T_));
    other.restore(saved);
    BOOST_TEST(goes(other, cut, T_), "restored in another stream");
    stream.restore(saved);
    BOOST_TEST(one_row_anew(stream, cut), "a row begun anew");
    BOOST_TEST(system_ == 0U);
    BOOST_TEST(locks_ == 0U);
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  template <class F>
  void counting(const F& f) {
    const std::uint64_t locks = counted::counts().locks;
    system_ += counted::during(f);
    locks_ += counted::counts().locks - locks;
  }
  /// Steps [from, to) in blocks of any length.
  bool goes(nn::Stream& s, std::int64_t from, std::int64_t to) {
    std::vector<T> out(static_cast<std::size_t>((to - from) * B_ * N_));
    for (std::int64_t t = from; t < to;) {
      const std::int64_t n = std::min(between(1, 9), to - t);
      const auto x = std::span<const T>(in_).subspan(at(t * x_.shape()[2]), at(n * x_.shape()[2]));
      const auto y = std::span<T>(out).subspan(at((t - from) * N_), at(n * N_));
      counting([&] { n == 1 ? s.step(x, y) : s.steps(n, x, y); });
      t += n;
    }
    if (to == from) return true;
    const Tensor given = contiguous(transpose(Tensor::from(out, {to - from, B_, N_}), 0, 1));
    return support::identical(given, contiguous(slice(y_, 1, from, to)));
  }
  std::size_t at(std::int64_t values) const { return static_cast<std::size_t>(values * B_); }

  /// The last row begins with its first steps again, the others go on from the cut.
  bool one_row_anew(nn::Stream& s, std::int64_t cut) {
    counting([&] { s.reset(B_ - 1); });
    const Tensor rows =
        concat({slice(slice(x_, 0, 0, B_ - 1), 1, cut, T_), slice(slice(x_, 0, B_ - 1), 1, 0, T_ - cut)}, 0);
    const Tensor wanted =
        concat({slice(slice(y_, 0, 0, B_ - 1), 1, cut, T_), slice(slice(y_, 0, B_ - 1), 1, 0, T_ - cut)}, 0);
    bool all = true;
    std::vector<T> out(static_cast<std::size_t>(B_ * N_));
    for (std::int64_t t = 0; t < T_ - cut; ++t) {
      const std::vector<T> in = contiguous(select(rows, 1, t)).to_vector<T>();
      counting([&] { s.step(std::span<const T>(in), std::span<T>(out)); });
      all = all && support::identical(Tensor::from(out, {B_, N_}), contiguous(select(wanted, 1, t)));
    }
    return all;
  }

  const Program& net_;
  std::mt19937_64 random_;
  std::int64_t B_, T_;
  Tensor x_, y_;
  std::int64_t N_;
  std::vector<T> in_;
  std::uint64_t system_ = 0, locks_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(causal_programs_test)

BOOST_AUTO_TEST_CASE(random_programs_stream_with_the_bits_of_the_whole_sequence_and_ask_for_nothing) {
  std::uint64_t carrying = 0;
  for (std::uint64_t seed = 0; seed < programs(); ++seed) {
    const Dtype dtype = seed % 4 == 3 ? Dtype::f64 : Dtype::f32;
    const Program net(seed, dtype);
    BOOST_TEST_CONTEXT("program " << seed << ": " << net.text()) {
      carrying += net.stream().save().empty() ? 0U : 1U;
      if (dtype == Dtype::f64) {
        ProgramTrial<double>(net, seed).run();
      } else {
        ProgramTrial<float>(net, seed).run();
      }
    }
  }
  BOOST_TEST(carrying > programs() / 2);
}

BOOST_AUTO_TEST_SUITE_END()
