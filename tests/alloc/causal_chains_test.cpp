// Random chains of layers as streams: bit for bit the whole sequence, whatever happens to the stream meanwhile, without
// memory from the system or the pool and without locks.
#include "support/causal_chains.h"

#include <boost/test/unit_test.hpp>

#include "counted.h"
#include "support/fed.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kChains = 500, kAhead = 300;

struct Asked {
  std::uint64_t system = 0, pool = 0, locks = 0;
};

/// Streams a net over x in pieces, and does to the stream everything that can happen to one.
class Trial {
 public:
  Trial(const dsl::Network& net, const Tensor& x)
      : net_(net), x_(x), y_(net(x)), T_(x.shape()[1]), B_(x.shape()[0]), stream_(net.stream(B_)) {}

  void run(std::int64_t cut) {
    BOOST_TEST(stream_.on_tensors() == 0U);
    BOOST_TEST(goes(stream_, 0, T_), "the whole sequence");
    BOOST_TEST(ends(stream_), "its end");
    if (net_.step_input().width == 0) asked_ = {};  // the first step made the plan
    stream_.reset();
    BOOST_TEST(goes(stream_, 0, cut), "up to the cut");
    const std::vector<Tensor> saved = stream_.save();
    nn::Stream clone = stream_.clone(), other = net_.stream(B_);
    BOOST_TEST(goes(clone, cut, T_), "a clone");
    BOOST_TEST(ends(clone), "a clone's end");
    BOOST_TEST(goes(stream_, cut, T_), "the original");
    nn::Stream at_end = stream_.clone();
    BOOST_TEST(ends(stream_), "its end");
    BOOST_TEST(ends(at_end), "the end of a clone of the last step");
    if (net_.step_input().width == 0) {  // the first step determines the width, and makes the plan
      const Asked before = asked_;
      (void)goes(other, 0, 1);
      asked_ = before;
    }
    other.restore(saved);
    BOOST_TEST(goes(other, cut, T_), "restored in another stream");
    BOOST_TEST(ends(other), "its end");
    stream_.restore(saved);
    BOOST_TEST(one_row_anew(stream_, cut), "a row begun anew");
    BOOST_TEST(asked_.system == 0U);
    BOOST_TEST(asked_.pool == 0U);
    BOOST_TEST(asked_.locks == 0U);
  }

 private:
  auto counting() {
    return [this](const auto& f) {
      const std::uint64_t locks = counted::counts().locks, requests = pool_counts().requests;
      asked_.system += counted::during(f);
      asked_.pool += pool_counts().requests - requests;
      asked_.locks += counted::counts().locks - locks;
    };
  }
  bool goes(nn::Stream& s, std::int64_t from, std::int64_t to) {
    return support::gave(s, support::fed(s, slice(x_, 1, from, to), y_.spec(), counting()), y_, from, to);
  }
  bool ends(nn::Stream& s) {
    const support::RowOutputs rows = support::finished(s, y_.spec(), counting());
    bool all = true;
    for (std::int64_t b = 0; b < B_; ++b)
      all = all && support::gave_the_rest(s, rows[static_cast<std::size_t>(b)], select(y_, 0, b), T_);
    return all;
  }
  /// Restarts the last row from its first steps; the others continue from the cut.
  bool one_row_anew(nn::Stream& s, std::int64_t cut) {
    const std::int64_t n = std::min(T_ - cut, T_);
    s.reset(B_ - 1);
    const Tensor goes_on = slice(slice(x_, 0, 0, B_ - 1), 1, cut, T_), anew = slice(slice(x_, 0, B_ - 1), 1, 0, n);
    const support::RowOutputs rows = support::fed(s, concat({goes_on, anew}, 0), y_.spec(), counting());
    bool all = support::gave_row(s, rows, y_, B_ - 1, 0, n);
    for (std::int64_t b = 0; b + 1 < B_; ++b) all = all && support::gave_row(s, rows, y_, b, cut, T_);
    const support::RowOutputs end = support::finished(s, y_.spec(), counting());
    for (std::int64_t b = 0; b + 1 < B_; ++b)
      all = all && support::gave_the_rest(s, end[static_cast<std::size_t>(b)], select(y_, 0, b), T_);
    if (support::outputs_of(s, n) == 0) return all;  // perhaps too short for the layers as a whole
    return all && support::gave_the_rest(s, end.back(), select(net_(slice(x_, 1, 0, n)), 0, B_ - 1), n);
  }

  const dsl::Network& net_;
  Tensor x_, y_;
  std::int64_t T_, B_;
  nn::Stream stream_;
  Asked asked_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(causal_chains_test)

BOOST_AUTO_TEST_CASE(random_chains_stream_with_the_bits_of_the_whole_sequence_and_ask_for_nothing) {
  std::int64_t strided = 0, delayed = 0;
  for (std::uint64_t seed = 0; seed < kChains; ++seed) {
    causal_chains::Maker make(seed);
    const causal_chains::Chain chain = make.chain();
    BOOST_TEST_CONTEXT("chain " << seed << ": " << chain.text) {
      const Dtype dtype = seed % 4 == 3 ? Dtype::f64 : Dtype::f32;
      const dsl::Network net = chain.words.build(seed, dtype);
      net.eval();
      const nn::Pace pace = net.pace();
      strided += pace.stride > 1, delayed += pace.delay > 0;
      const std::int64_t B = make.between(1, 3), T = pace.delay + pace.stride * 2 + make.between(1, 6);
      const Tensor x = uniform({B, T, net.input().size}, {seed, 1, 0}, -1, 1, dtype);
      Trial(net, x).run(make.between(1, T - 1));
    }
  }
  BOOST_TEST(strided > kChains / 3);
  BOOST_TEST(delayed > kChains / 4);
}

/// Rows of branches wait for those of others, and the last steps come when the inputs end.
BOOST_AUTO_TEST_CASE(random_chains_that_look_ahead_stream_with_the_bits_of_the_whole_sequence) {
  std::int64_t ahead = 0, lined_up = 0;
  for (std::uint64_t seed = 0; seed < kAhead; ++seed) {
    causal_chains::Maker make(seed, true);
    const causal_chains::Chain chain = make.chain();
    BOOST_TEST_CONTEXT("chain " << seed << ": " << chain.text) {
      const Dtype dtype = seed % 4 == 3 ? Dtype::f64 : Dtype::f32;
      const dsl::Network net = chain.words.build(seed, dtype);
      net.eval();
      const nn::Pace pace = net.pace();
      ahead += pace.after > 0;
      lined_up += pace.after > 0 && chain.text.find('{') != std::string::npos;
      const std::int64_t B = make.between(1, 3), T = pace.delay + pace.stride * 2 + make.between(1, 6);
      const Tensor x = uniform({B, T, net.input().size}, {seed, 2, 0}, -1, 1, dtype);
      Trial(net, x).run(make.between(1, T - 1));
    }
  }
  BOOST_TEST(ahead > kAhead / 3);
  BOOST_TEST(lined_up > kAhead / 8);
}

BOOST_AUTO_TEST_SUITE_END()
