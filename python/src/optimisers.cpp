// Optimisers and schedules in Python.
#include <nanobind/stl/unique_ptr.h>

#include "enums.h"
#include "ferrite/nn/optim/accumulate_gradients.h"
#include "ferrite/nn/optim/cyclic_schedule.h"
#include "ferrite/nn/optim/lbfgs.h"
#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/nn/optim/plateau_schedule.h"
#include "ferrite/nn/optim/rates.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/weight_average.h"
#include "module.h"

namespace ferrite::python {

void define_written_optimisers(nb::module_& m);

namespace {

using nb::literals::operator""_a;
using Rate = nn::RateFunction;

/// Defines a schedule that is a function of the number of steps; Python's names are PyTorch's.
template <class... Args, class... Extra>
void define_rate(nb::module_& m, const char* name, Rate (*rate)(Args...), const char* doc, Extra... extra) {
  m.def(
      name,
      [rate, name](const nn::Optimizer& o, Args... args) {
        return std::make_unique<nn::FunctionSchedule>(o, rate(std::move(args)...), name);
      },
      "optimizer"_a, extra..., nb::keep_alive<0, 1>(), doc);
}

void define_optimizer(nb::module_& m) {
  nb::class_<nn::Optimizer> c(m, "Optimizer", "Updates parameters from their gradients.");
  c.def(
      "step", [](nn::Optimizer& o, const Tensors& grads) { return o.step(grads); }, "grads"_a, Call(),
      "Performs one update. ``grads[i]`` belongs to the i-th parameter; None leaves it unchanged. Returns False where\n"
      "``skip_nonfinite`` skipped the update.");
  c.def_prop_rw(
      "lr", [](const nn::Optimizer& o) { return o.learning_rate(); },
      [](nn::Optimizer& o, double r) { o.set_learning_rate(r); },
      "The learning rate of the first group; setting it sets that of all groups.");
  c.def(
      "learning_rate", [](const nn::Optimizer& o, std::size_t g) { return o.learning_rate(g); }, "group"_a = 0,
      "Returns the learning rate of a group.");
  c.def(
      "set_learning_rate", [](const nn::Optimizer& o, double r, std::size_t g) { o.set_learning_rate(r, g); }, "rate"_a,
      "group"_a, "Sets the learning rate of a group.");
  c.def_prop_ro("has_momentum", &nn::Optimizer::has_momentum, "Whether schedules may change a momentum.");
  c.def(
      "momentum", [](const nn::Optimizer& o, std::size_t g) { return o.momentum(g); }, "group"_a = 0,
      "Returns the momentum of a group.");
  c.def("set_momentum", &nn::Optimizer::set_momentum, "momentum"_a, "group"_a = 0, "Sets the momentum of a group.");
  c.def_prop_ro("groups", &nn::Optimizer::groups, "The number of groups of parameters.");
  c.def(
      "freeze", [](nn::Optimizer& o, const std::vector<Parameter>& p) { o.freeze(p); }, "parameters"_a,
      "Excludes parameters from updates until they are unfrozen.");
  c.def(
      "unfreeze", [](nn::Optimizer& o, const std::vector<Parameter>& p) { o.unfreeze(p); }, "parameters"_a,
      "Lets parameters be updated again.");
  c.def("frozen", &nn::Optimizer::frozen, "parameter"_a, "Returns whether a parameter is excluded from updates.");
  c.def(
      "parameters", [](const nn::Optimizer& o) { return o.parameters(); }, "Returns the parameters of all groups.");
  c.def(
      "states",
      [](const nn::Optimizer& o) {
        nb::dict all;
        for (const auto& s : o.states()) all[s.name.c_str()] = s.variable;
        return all;
      },
      "Returns the state variables by name, such as \"exp_avg.gru.weight_ih_l0\".");
}

void define_schedules(nb::module_& m) {
  nb::class_<nn::Schedule> c(m, "Schedule",
                             "Sets the learning rate of an optimiser as a function of the number of steps.");
  c.def(
      "step", [](nn::Schedule& s) { s.advance(); },
      "Counts a finished step, or epoch, and sets the rates of the next one.");
  c.def_prop_ro("steps", &nn::Schedule::steps, "The number of finished steps.");
  c.def("set_steps", &nn::Schedule::set_steps, "steps"_a, "Sets the number of finished steps, and the rates.");
  c.def("rate_at", &nn::Schedule::rate_at, "steps"_a, "base"_a,
        "Returns the rate after so many steps for an initial rate.");
  c.def("__repr__", &nn::Schedule::summary);
  nb::class_<nn::FunctionSchedule, nn::Schedule>(m, "LambdaLR",
                                                 "Multiplies the initial rate by a function of the number of steps.")
      .def(
          "__init__",
          [](nn::FunctionSchedule* self, const nn::Optimizer& o, std::function<double(std::int64_t)> f) {
            new (self) nn::FunctionSchedule(o, [f = std::move(f)](std::int64_t n, double base) { return base * f(n); });
          },
          "optimizer"_a, "lr_lambda"_a, nb::keep_alive<1, 2>());
  nb::class_<nn::PlateauSchedule, nn::Schedule>(m, "ReduceLROnPlateau",
                                                "Lowers the rates when a metric stops improving.")
      .def(
          "__init__",
          [](nn::PlateauSchedule* self, const nn::Optimizer& o, bool maximize, double factor, std::int64_t patience,
             double threshold, bool relative, std::int64_t cooldown, double low, double eps) {
            new (self) nn::PlateauSchedule(o, {maximize, factor, patience, threshold, relative, cooldown, low, eps});
          },
          "optimizer"_a, nb::kw_only(), "maximize"_a = false, "factor"_a = 0.1, "patience"_a = 10, "threshold"_a = 1e-4,
          "relative"_a = true, "cooldown"_a = 0, "min_lr"_a = 0.0, "eps"_a = 1e-8, nb::keep_alive<1, 2>())
      .def(
          "step", [](nn::PlateauSchedule& s, double metric) { s.advance(metric); }, "metric"_a,
          "Takes the metric of an epoch.");
  nb::class_<nn::OneCycleSchedule, nn::Schedule>(
      m, "OneCycleLR", "Raises the rate from a low one to ``max_lr`` and lowers it to almost nothing.")
      .def(
          "__init__",
          [](nn::OneCycleSchedule* self, nn::Optimizer& o, nb::handle max_lr, std::int64_t total_steps,
             double pct_start, nn::Anneal anneal, bool cycle_momentum, double base_momentum, double max_momentum,
             double div_factor, double final_div_factor, bool three_phase) {
            std::vector<double> rates = PyFloat_Check(max_lr.ptr()) || PyLong_Check(max_lr.ptr())
                                            ? std::vector<double>{nb::cast<double>(max_lr)}
                                            : nb::cast<std::vector<double>>(max_lr);
            new (self) nn::OneCycleSchedule(o, {rates, total_steps, pct_start, anneal, cycle_momentum, base_momentum,
                                                max_momentum, div_factor, final_div_factor, three_phase});
          },
          "optimizer"_a, "max_lr"_a, "total_steps"_a, nb::kw_only(), "pct_start"_a = 0.3,
          "anneal"_a = nn::Anneal::cosine, "cycle_momentum"_a = true, "base_momentum"_a = 0.85, "max_momentum"_a = 0.95,
          "div_factor"_a = 25.0, "final_div_factor"_a = 1e4, "three_phase"_a = false, nb::keep_alive<1, 2>());
  nb::class_<nn::CyclicSchedule, nn::Schedule>(m, "CyclicLR", "Moves the rate up and down between two bounds.")
      .def(
          "__init__",
          [](nn::CyclicSchedule* self, nn::Optimizer& o, double base_lr, double max_lr, std::int64_t up,
             std::optional<std::int64_t> down, nn::CycleHeight height, double gamma, bool cycle_momentum,
             double base_momentum, double max_momentum) {
            new (self) nn::CyclicSchedule(
                o, {{base_lr}, {max_lr}, up, down, height, gamma, cycle_momentum, base_momentum, max_momentum});
          },
          "optimizer"_a, "base_lr"_a, "max_lr"_a, nb::kw_only(), "step_size_up"_a = 2000,
          "step_size_down"_a.none() = nb::none(), "height"_a = nn::CycleHeight::same, "gamma"_a = 1.0,
          "cycle_momentum"_a = true, "base_momentum"_a = 0.8, "max_momentum"_a = 0.9, nb::keep_alive<1, 2>());
  define_rate(m, "StepLR", nn::step_rate, "Multiplies the rate by a factor every so many steps.", "step_size"_a,
              "gamma"_a = 0.1);
  define_rate(m, "MultiStepLR", nn::multistep_rate, "Multiplies the rate by a factor at each milestone.",
              "milestones"_a, "gamma"_a = 0.1);
  define_rate(m, "ConstantLR", nn::constant_rate, "Multiplies the rate by a factor for the first steps.",
              "factor"_a = 1.0 / 3, "total_iters"_a = 5);
  define_rate(m, "LinearLR", nn::linear_rate, "Moves the factor of the rate from one value to another in equal steps.",
              "start_factor"_a = 1.0 / 3, "end_factor"_a = 1.0, "total_iters"_a = 5);
  define_rate(m, "ExponentialLR", nn::exponential_rate, "Multiplies the rate by a factor at every step.", "gamma"_a);
  define_rate(m, "PolynomialLR", nn::polynomial_rate, "Lowers the rate to 0 by a power of the steps that are left.",
              "total_iters"_a = 5, "power"_a = 1.0);
  define_rate(m, "CosineAnnealingLR", nn::cosine_rate, "Lowers the rate along half a cosine.", "T_max"_a,
              "eta_min"_a = 0.0);
  define_rate(m, "CosineAnnealingWarmRestarts", nn::warm_restarts_rate,
              "Lowers the rate along half a cosine, again and again.", "T_0"_a, "T_mult"_a = 1, "eta_min"_a = 0.0);
  define_rate(m, "MultiplicativeLR", nn::multiplicative_rate,
              "Multiplies the rate at each step by a function of the number of the step.", "lr_lambda"_a);
}

}  // namespace

void define_optimisers(nb::module_& m) {
  define_optimizer(m);
  define_written_optimisers(m);
  define_schedules(m);
  nb::class_<nn::WeightAverage>(m, "WeightAverage", "Averages parameters over the course of training.")
      .def(
          "__init__",
          [](nn::WeightAverage* self, const std::vector<Parameter>& p, std::optional<double> decay) {
            new (self) nn::WeightAverage(p, {.decay = decay});
          },
          "parameters"_a, nb::kw_only(), "decay"_a.none() = nb::none())
      .def("update", &nn::WeightAverage::update, Call(), "Takes the present values into the averages.")
      .def("swap", &nn::WeightAverage::swap, Call(), "Exchanges the parameters' values and the averages.")
      .def_prop_ro("swapped", &nn::WeightAverage::swapped, "Whether the parameters hold the averages now.")
      .def_prop_ro("count", &nn::WeightAverage::count, "The number of updates.");
  nb::class_<nn::GradientAccumulator>(m, "GradientAccumulator", "Adds up the gradients of several batches.")
      .def(nb::init<std::int64_t, bool>(), "batches"_a, "mean"_a = false)
      .def("add", &nn::GradientAccumulator::add, "grads"_a, Call(),
           "Adds gradients and returns whether enough batches are in.")
      .def("take", &nn::GradientAccumulator::take, "Returns the sums, or means, and begins again.")
      .def_prop_ro("count", &nn::GradientAccumulator::count, "The number of batches since the last `take`.");
  nb::class_<nn::Lbfgs>(m, "LBFGS",
                        "The quasi-Newton method with limited memory; each step calls a function of the loss and "
                        "gradients several times.")
      .def(
          "__init__",
          [](nn::Lbfgs* self, const std::vector<Parameter>& p, double lr, std::int64_t max_iter,
             std::optional<std::int64_t> max_eval, double tolerance_grad, double tolerance_change,
             std::size_t history_size, bool strong_wolfe) {
            new (self)
                nn::Lbfgs(p, {lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size, strong_wolfe});
          },
          "parameters"_a, nb::kw_only(), "lr"_a = 1.0, "max_iter"_a = 20, "max_eval"_a.none() = nb::none(),
          "tolerance_grad"_a = 1e-7, "tolerance_change"_a = 1e-9, "history_size"_a = 100, "strong_wolfe"_a = false)
      .def(
          "step",
          [](nn::Lbfgs& s, std::function<std::pair<double, Tensors>()> closure) {
            return s.step([&] {
              auto [loss, grads] = closure();
              return nn::LossAndGradients{loss, grads};
            });
          },
          "closure"_a, Call(),
          "Performs one step; the closure returns the loss, a float, and the list of gradients. Returns the first "
          "loss.");
}

}  // namespace ferrite::python
