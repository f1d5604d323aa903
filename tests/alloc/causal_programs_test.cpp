// Random causal programs, given by `forward` alone, as streams: bit for bit the whole sequence, whatever happens to the
// stream meanwhile, without memory from the system or the pool and without locks.
#include "support/causal_programs.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <cstring>

#include "counted.h"

using namespace ferrite;

namespace {

using causal_programs::Program;

/// Returns the number of programs, from the environment variable; 10,000 take a minute.
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
        T_(between(24, 48)),
        x_(uniform({B_, T_, net.width()}, {seed, 1, 0}, -1, 1, dtype_of<T>)),
        whole_(contiguous(net(x_)).template to_vector<T>()),
        y_(net(x_).shape()) {}

  void run() {
    nn::Stream stream = net_.stream(B_);
    BOOST_TEST(stream.on_tensors() == 0U);
    BOOST_TEST(goes(stream, 0, T_, begin()), "the whole sequence");
    stream.reset();
    const std::int64_t cut = between(1, T_ - 1);
    Given given = begin();
    BOOST_TEST(goes(stream, 0, cut, given), "up to the cut");
    const std::vector<Tensor> saved = stream.save();
    nn::Stream clone = stream.clone(), other = net_.stream(B_);
    BOOST_TEST(goes(stream, cut, T_, Given(given)), "the original");
    BOOST_TEST(goes(clone, cut, T_, Given(given)), "a clone");
    (void)goes(other, 0, between(0, T_ - 1), begin());
    other.restore(saved);
    BOOST_TEST(goes(other, cut, T_, Given(given)), "restored in another stream");
    stream.restore(saved);
    counting([&] { stream.reset(B_ - 1); });
    given.back() = 0;
    BOOST_TEST(one_row_anew(stream, cut, given), "a row begun anew");
    BOOST_TEST(system_ == 0U);
    BOOST_TEST(locks_ == 0U);
  }

 private:
  /// The number of steps that each row has returned.
  using Given = std::vector<std::int64_t>;
  Given begin() const { return Given(static_cast<std::size_t>(B_)); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  template <class F>
  void counting(const F& f) {
    const std::uint64_t locks = counted::counts().locks;
    system_ += counted::during(f);
    locks_ += counted::counts().locks - locks;
  }
  std::size_t at(std::int64_t values) const { return static_cast<std::size_t>(values * B_); }

  /// Runs steps [from, to), in blocks of random lengths if each input gives a step, then what remains at the end.
  /// Returns whether all outputs have the bits of the whole.
  bool goes(nn::Stream& s, std::int64_t from, std::int64_t to, Given&& given) { return goes(s, from, to, given); }
  bool goes(nn::Stream& s, std::int64_t from, std::int64_t to, Given& given) {
    const std::vector<T> in = contiguous(transpose(slice(x_, 1, from, to), 0, 1)).template to_vector<T>();
    const bool even = s.stride() == 1 && s.delay() == 0;
    const std::int64_t D = x_.shape()[2], N = y_[2];
    bool all = true;
    std::vector<T> y(at(N * (to - from + 1)));
    for (std::int64_t t = 0; t < to - from;) {
      const std::int64_t n = even ? std::min(between(1, 20), to - from - t) : 1;
      const auto x = std::span<const T>(in).subspan(at(t * D), at(n * D));
      const auto room = std::span<T>(y).first(at(n * N));
      bool gave = true;
      counting([&] {
        if (!even) gave = s.feed(x, room);
        if (even) n == 1 ? s.step(x, room) : s.steps(n, x, room);
      });
      for (std::int64_t i = 0; i < n && gave; ++i)
        all = all && fits(even ? nullptr : &s, room.subspan(at(i * N)), given);
      t += n;
    }
    bool more = to == T_;
    while (more) {
      counting([&] { more = s.finish(std::span<T>(y).first(at(N))); });
      if (more) all = all && fits(&s, y, given);
    }
    const auto complete = [&](std::int64_t n) { return n == y_[1]; };
    return all && (to < T_ || std::all_of(given.begin(), given.end(), complete));
  }
  /// Returns whether the rows that gave a step have the bits of their next step of the whole.
  bool fits(const nn::Stream* s, std::span<const T> y, Given& given) const {
    const auto N = static_cast<std::size_t>(y_[2]);
    bool all = true;
    for (std::int64_t b = 0; b < B_; ++b) {
      std::int64_t& u = given[static_cast<std::size_t>(b)];
      if (s && !s->gave(b)) continue;
      all = all && u < y_[1] &&
            std::memcmp(whole_.data() + static_cast<std::size_t>(b * y_[1] + u) * N,
                        y.data() + static_cast<std::size_t>(b) * N, N * sizeof(T)) == 0;
      ++u;
    }
    return all;
  }

  /// Restarts the last row from its first steps; the others continue from the cut.
  bool one_row_anew(nn::Stream& s, std::int64_t cut, Given& given) {
    const bool even = s.stride() == 1 && s.delay() == 0;
    const Tensor rows =
        concat({slice(slice(x_, 0, 0, B_ - 1), 1, cut, T_), slice(slice(x_, 0, B_ - 1), 1, 0, T_ - cut)}, 0);
    bool all = true;
    std::vector<T> out(at(y_[2]));
    for (std::int64_t t = 0; t < T_ - cut; ++t) {
      const std::vector<T> in = contiguous(select(rows, 1, t)).template to_vector<T>();
      counting([&] {
        if (even) s.step(std::span<const T>(in), std::span<T>(out));
        if (!even) (void)s.feed(std::span<const T>(in), std::span<T>(out));
      });
      all = all && fits(even ? nullptr : &s, out, given);
    }
    return all;
  }

  const Program& net_;
  std::mt19937_64 random_;
  std::int64_t B_, T_;
  Tensor x_;
  std::vector<T> whole_;
  Shape y_;
  std::uint64_t system_ = 0, locks_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(causal_programs_test)

BOOST_AUTO_TEST_CASE(random_programs_stream_with_the_bits_of_the_whole_sequence_and_ask_for_nothing) {
  std::uint64_t carrying = 0, striding = 0, late = 0;
  for (std::uint64_t seed = 0; seed < programs(); ++seed) {
    const Dtype dtype = seed % 4 == 3 ? Dtype::f64 : Dtype::f32;
    const Program net(seed, dtype);
    BOOST_TEST_CONTEXT("program " << seed << ": " << net.text()) {
      const nn::Stream made = net.stream();
      carrying += made.save().empty() ? 0U : 1U;
      striding += made.stride() > 1 ? 1U : 0U;
      late += made.stride() == 1 && made.delay() > 0 ? 1U : 0U;
      if (dtype == Dtype::f64) {
        ProgramTrial<double>(net, seed).run();
      } else {
        ProgramTrial<float>(net, seed).run();
      }
    }
  }
  BOOST_TEST(carrying > programs() / 2);
  BOOST_TEST(striding > programs() / 8);
  BOOST_TEST(late > programs() / 30);
}

BOOST_AUTO_TEST_SUITE_END()
