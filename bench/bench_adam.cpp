// Adam: nanoseconds a step, as one operation and as its definition in operations, compared with a sweep written by hand
// with the vectors of the instruction set in use, and with the least time for reading w, g, m and v and writing w, m
// and v. FERRITE_ISA=avx2 compares with AVX2.
#include <cstdio>
#include <vector>

#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/detail/rule_update.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/primitive.h"
#include "timing.h"
#ifdef __AVX512F__
#include "limit/adam.h"
#endif

using namespace ferrite;

namespace {

/// The memory traffic of an update in place, with just enough arithmetic that it is not optimised away.
class Sweep {
 public:
  explicit Sweep(std::int64_t n) : n_(n) {
    for (Tensor& x : buffers_) x = zeros({n});
  }
  void run() {
    float* __restrict const w = at(0);
    float* __restrict const m = at(1);
    float* __restrict const v = at(2);
    const float* __restrict const g = at(3);
    for (std::int64_t i = 0; i < n_; ++i) {
      m[i] += g[i];
      v[i] += g[i];
      w[i] += g[i];
    }
    bench::keep(*w);
  }

 private:
  float* at(std::size_t k) { return detail::Writer::data<float>(buffers_[k]); }

  std::int64_t n_;
  Tensor buffers_[4];
};

#ifdef __AVX512F__
/// An update in place, written for this machine.
class ByHand {
 public:
  explicit ByHand(std::int64_t n) : n_(limit::padded(n, 16)), w_(n_), g_(n_), m_(n_), v_(n_) {
    for (limit::Index i = 0; i < n_; ++i) g_[i] = 1.0F / static_cast<float>(i + 1);
  }
  void run() {
    ++steps_;
    if (instruction_set() == "avx2") {
      limit::Adam().update_by_eight(w_, g_, m_, v_, n_, steps_);
    } else {
      limit::Adam().update(w_, g_, m_, v_, n_, steps_);
    }
    bench::keep(w_[0]);
  }

 private:
  limit::Index n_;
  limit::Buffer w_, g_, m_, v_;
  int steps_ = 0;
};
#else
struct ByHand {
  explicit ByHand(std::int64_t) {}
  void run() {}
};
#endif

/// One step in which the definition of `rule_update` replaces the operation.
class Composed {
 public:
  explicit Composed(std::int64_t n)
      : w_("w", ones({n})), m_("m", zeros({n})), v_("v", zeros({n})), steps_("step", zeros({}, Dtype::f64)) {}
  void step(const Tensor& g) {
    const Tensor t = steps_.value() + 1;
    steps_.assign(t);
    const Tensor correction1 = 1 - pow(0.9, t), correction2 = 1 - pow(0.999, t);
    const Tensor w = w_.value(), m = m_.value(), v = v_.value();
    const Tensor* const in[] = {&w, &g, &m, &v, &correction1, &correction2, &rate_};
    const Tensors out = op_->reference(Inputs(in), attrs_);
    w_.assign(out[0]);
    m_.assign(out[1]);
    v_.assign(out[2]);
  }

 private:
  Parameter w_;
  State m_, v_, steps_;
  Tensor rate_ = full({}, 1e-3, Dtype::f64);
  Attrs attrs_ = nn::detail::rule_attrs(
      {{.kind = nn::detail::RuleKind::adam, .constants = {0.999, 1 - 0.999, 1e-8}, .numbers = {0.9, 1 - 0.9}},
       0b11,
       0b101100});
  const Primitive* op_ = &nn::detail::rule_operation();
};

/// Times the other optimisers and compares them with the same bound.
void others() {
  std::printf("\n%9s %12s %12s %12s %12s %12s\n", "elements", "sgd", "momentum", "rmsprop", "centered", "bound");
  for (const std::int64_t n : {16, 1'000, 25'000, 100'000, 1'000'000}) {
    const Tensors grads = {uniform({n}, {1, 1, 1}, -1, 1)};
    const auto parameter = [n] { return std::vector<Parameter>{{"w", ones({n})}}; };
    nn::Sgd sgd(parameter()), momentum(parameter(), {.momentum = 0.9});
    nn::RmsProp rmsprop(parameter()), centered(parameter(), {.momentum = 0.9, .centered = true});
    Sweep sweep(n);
    const std::vector<double> t =
        bench::interleaved({[&] { sgd.step(grads); }, [&] { momentum.step(grads); }, [&] { rmsprop.step(grads); },
                            [&] { centered.step(grads); }, [&] { sweep.run(); }},
                           21, 5e-3);
    std::printf("%9ld", static_cast<long>(n));
    for (const double seconds : t) std::printf(" %12.0f", 1e9 * seconds);
    std::printf("\n");
  }
}

}  // namespace

int main() {
  std::printf("instruction set %s\n", std::string(instruction_set()).c_str());
  std::printf("%9s %12s %12s %12s %12s %10s %10s %10s\n", "elements", "one sweep", "composed", "by hand", "bound",
              "composed/", "/ by hand", "/ bound");
  for (const std::int64_t n : {16, 1'000, 25'000, 100'000, 1'000'000, 10'000'000}) {
    const Tensor g = uniform({n}, {1, 1, 1}, -1, 1);
    const Parameter w("w", ones({n}));
    nn::Adam adam({w});
    const Tensors grads = {g};
    Composed composed(n);
    ByHand by_hand(n);
    Sweep sweep(n);
    const std::vector<double> t = bench::interleaved(
        {[&] { adam.step(grads); }, [&] { composed.step(g); }, [&] { by_hand.run(); }, [&] { sweep.run(); }},
        n < 10'000'000 ? 21 : 5, 5e-3);
    std::printf("%9ld %12.0f %12.0f %12.0f %12.0f %10.2f %10.2f %10.2f\n", static_cast<long>(n), 1e9 * t[0], 1e9 * t[1],
                1e9 * t[2], 1e9 * t[3], t[1] / t[0], t[0] / t[2], t[0] / t[3]);
  }
  others();
}
