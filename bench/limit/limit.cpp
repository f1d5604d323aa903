// The interface of the code written by hand; without AVX-512 there is none of it.
#include "limit.h"

#ifdef __AVX512F__
#include "perceptron.h"
#include "small_stream.h"
#include "trainer.h"

namespace limit {
namespace {

class Sequence final : public Forward {
 public:
  Sequence(const Sizes& s, const Weights& w, const float* x)
      : gru_(s.D, s.H), T_(s.T), B_(s.B), x_(T_ * B_ * gru_.D), hs_((T_ + 1) * B_ * gru_.H), i_(T_ * B_ * 3 * gru_.H) {
    gru_.load(w, s.D, s.H);
    for (Index b = 0; b < B_; ++b)
      for (Index t = 0; t < T_; ++t) std::copy_n(x + (b * T_ + t) * s.D, s.D, x_ + (t * B_ + b) * gru_.D);
  }
  void run() override {
    if (T_ * B_ == 1) return gru_.stream(x_, hs_, hs_ + gru_.H);
    gru_.forward<false>(x_, T_, B_, hs_, i_, nullptr);
  }
  float output(std::int64_t t, std::int64_t b, std::int64_t j) const override {
    return hs_[((t + 1) * B_ + b) * gru_.H + j];
  }

 private:
  Gru gru_;
  Index T_, B_;
  Buffer x_, hs_, i_;
};

template <std::size_t H, std::size_t G>
class Samples final : public SampleBySample {
 public:
  explicit Samples(const Weights& w) : stream_(w, w.w_out, *w.b_out) {}
  void run(const float* x, float* y, std::int64_t n) override { stream_.run(x, y, n); }

 private:
  SmallStream<H, G> stream_;
};
template <std::size_t G>
std::unique_ptr<SampleBySample> samples_of(std::int64_t units, const Weights& w) {
  switch (units) {
    case 8: return std::make_unique<Samples<8, G>>(w);
    case 12: return std::make_unique<Samples<12, G>>(w);
    case 16: return std::make_unique<Samples<16, G>>(w);
    case 20: return std::make_unique<Samples<20, G>>(w);
    case 24: return std::make_unique<Samples<24, G>>(w);
    case 32: return std::make_unique<Samples<32, G>>(w);
    case 40: return std::make_unique<Samples<40, G>>(w);
    default: return nullptr;
  }
}

}  // namespace

bool available() { return true; }
std::unique_ptr<SampleBySample> sample_by_sample(std::int64_t units, std::int64_t gates, const Weights& w) {
  return gates == 3 ? samples_of<3>(units, w) : samples_of<4>(units, w);
}
std::unique_ptr<Forward> forward(const Sizes& sizes, const Weights& weights, const float* x) {
  return std::make_unique<Sequence>(sizes, weights, x);
}
std::unique_ptr<Training> training(const Sizes& sizes, const Weights& weights, const float* x,
                                   const std::vector<std::int64_t>& targets) {
  return std::make_unique<Trainer>(sizes, weights, x, targets);
}
std::unique_ptr<Training> perceptron(const Sizes& sizes, const Weights& weights, const float* x,
                                     const std::vector<std::int64_t>& targets) {
  return std::make_unique<Perceptron>(sizes, weights, x, targets);
}

}  // namespace limit

#else

namespace limit {

bool available() { return false; }
std::unique_ptr<SampleBySample> sample_by_sample(std::int64_t, std::int64_t, const Weights&) { return nullptr; }
std::unique_ptr<Forward> forward(const Sizes&, const Weights&, const float*) { return nullptr; }
std::unique_ptr<Training> training(const Sizes&, const Weights&, const float*, const std::vector<std::int64_t>&) {
  return nullptr;
}
std::unique_ptr<Training> perceptron(const Sizes&, const Weights&, const float*, const std::vector<std::int64_t>&) {
  return nullptr;
}

}  // namespace limit

#endif
