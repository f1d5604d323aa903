/// Updates of RMSprop and of stochastic gradient descent in place.
#include "ferrite/nn/optim/detail/sweep.h"

#include "ferrite/nn/optim/detail/shares.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/strided.h"
#include "ferrite_levels.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

#define FERRITE_DECLARE(level)             \
  namespace level {                        \
  extern const SweepKernels sweep_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {

#define FERRITE_TABLE(level) &nn::detail::level::sweep_kernels,
constexpr const SweepKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
constinit const TableInUse<SweepKernels> sweep_in_use(kTables);

void sweep(const SweepRule& rule, float rate, const SweepRun<float>& run, std::int64_t n) {
  sweep_in_use.get().f32(rule, rate, run, n);
}
void sweep(const SweepRule& rule, double rate, const SweepRun<double>& run, std::int64_t n) {
  sweep_in_use.get().f64(rule, rate, run, n);
}

/// An update, its share for each thread.
template <class T>
void update(const SweepRule& rule, T rate, const SweepRun<T>& run, std::int64_t n) {
  if (!is_shared(n)) return sweep(rule, rate, run, n);
  each_share(n, [&](std::int64_t at, std::int64_t count) { sweep(rule, rate, run.from(at), count); });
}

const Tensor* held_at(const std::vector<State>& states, std::size_t i) {
  return states.empty() ? nullptr : &held_by(states[i]);
}

}  // namespace

struct Sweeps::Pending {
  const Variable* variable;
  const Tensor *w, *g, *rate;
  const Tensor* states[3];
  Tensor dense, fresh;  ///< the gradient row-major; for the new value, where somebody else holds the old one

  template <class T>
  void run(const SweepRule& rule) {
    const auto written = [](const Tensor* state) -> T* {
      if (!state) return nullptr;
      Tensor t = *state;
      return Writer::data<T>(t);
    };
    Tensor out = fresh.defined() ? fresh : *w;
    const Tensor& from = dense.defined() ? dense : *g;
    update<T>(rule, *rate->data<T>(),
              {w->data<T>(), from.data<T>(), Writer::data<T>(out), written(states[0]), written(states[1]),
               written(states[2])},
              out.numel());
  }
};

Sweeps::Sweeps(const SweepRule& rule, SweepStates states) : rule_(rule), states_(std::move(states)) {}
Sweeps::~Sweeps() = default;

void Sweeps::begin() { pending_.clear(); }

bool Sweeps::prepare(const Variable& w, std::size_t i, const Tensor& grad, const Tensor& rate) {
  Pending p{&w,
            &held_by(w),
            &grad,
            &rate,
            {held_at(states_.square, i), held_at(states_.mean, i), held_at(states_.velocity, i)},
            {},
            {}};
  if (grad.is_abstract() || !p.w->contiguous()) return false;
  for (const Tensor* s : p.states)
    if (s && !owned_alone(*s)) return false;
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < a; ++b)
      if (p.states[a] && p.states[a] == p.states[b]) return false;  // tied
  if (!grad.contiguous()) p.dense = dense(grad);
  if (!owned_alone(*p.w)) p.fresh = Tensor::empty(p.w->spec());
  pending_.push_back(std::move(p));
  return true;
}

void Sweeps::run() {
  for (Pending& p : pending_) {
    const ProfileEvent event(states_.square.empty() ? "sgd_update" : "rmsprop_update", Scope());
    if (p.w->dtype() == Dtype::f32) {
      p.run<float>(rule_);
    } else {
      p.run<double>(rule_);
    }
    if (p.fresh.defined()) p.variable->assign(p.fresh);
  }
  pending_.clear();
}

}  // namespace ferrite::nn::detail
