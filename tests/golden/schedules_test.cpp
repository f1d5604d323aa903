// Fifty steps of every schedule compared with PyTorch: tests/data/make_optimizer_fixtures.py writes them.
#include <functional>
#include <set>

#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/cyclic_schedule.h"
#include "ferrite/nn/optim/plateau_schedule.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

constexpr std::int64_t kSteps = 50;

using Make = std::function<std::unique_ptr<nn::Schedule>(nn::Optimizer&)>;

Make by(nn::RateFunction f) {
  return [f](nn::Optimizer& o) { return std::make_unique<nn::FunctionSchedule>(o, f); };
}
Make one_cycle(const nn::OneCycleOptions& options) {
  return [options](nn::Optimizer& o) { return std::make_unique<nn::OneCycleSchedule>(o, options); };
}
Make cyclic(const nn::CyclicOptions& options) {
  return [options](nn::Optimizer& o) { return std::make_unique<nn::CyclicSchedule>(o, options); };
}
Make plateau(const nn::PlateauOptions& options) {
  return [options](nn::Optimizer& o) { return std::make_unique<nn::PlateauSchedule>(o, options); };
}

/// Returns the schedules of the fixture, by their names there.
const std::map<std::string, Make>& schedules() {
  static const std::map<std::string, Make> all = {
      {"StepLR step_size=7 gamma=0.5", by(nn::step_rate(7, 0.5))},
      {"MultiStepLR milestones=5,12,12,30 gamma=0.3", by(nn::multistep_rate({30, 12, 5, 12}, 0.3))},
      {"ConstantLR", by(nn::constant_rate())},
      {"ConstantLR factor=0.25 total_iters=9", by(nn::constant_rate(0.25, 9))},
      {"LinearLR", by(nn::linear_rate())},
      {"LinearLR start_factor=0.1 end_factor=0.7 total_iters=20", by(nn::linear_rate(0.1, 0.7, 20))},
      {"ExponentialLR gamma=0.93", by(nn::exponential_rate(0.93))},
      {"PolynomialLR", by(nn::polynomial_rate())},
      {"PolynomialLR total_iters=30 power=2.0", by(nn::polynomial_rate(30, 2))},
      {"CosineAnnealingLR T_max=17 eta_min=0.01", by(nn::cosine_rate(17, 0.01))},
      {"CosineAnnealingWarmRestarts T_0=8", by(nn::warm_restarts_rate(8))},
      {"CosineAnnealingWarmRestarts T_0=4 T_mult=2 eta_min=0.01", by(nn::warm_restarts_rate(4, 2, 0.01))},
      {"CosineAnnealingWarmRestarts T_0=3 T_mult=3", by(nn::warm_restarts_rate(3, 3))},
      {"OneCycleLR max_lr=0.5,0.2 total_steps=50", one_cycle({.max_learning_rate = {0.5, 0.2}, .total_steps = 50})},
      {"OneCycleLR max_lr=0.5 total_steps=61 pct_start=0.4 anneal_strategy=linear",
       one_cycle({.max_learning_rate = {0.5}, .total_steps = 61, .warm_up = 0.4, .anneal = nn::Anneal::linear})},
      {"OneCycleLR max_lr=0.5 total_steps=50 three_phase=1 div_factor=10.0",
       one_cycle({.max_learning_rate = {0.5}, .total_steps = 50, .division = 10, .three_phases = true})},
      {"OneCycleLR max_lr=0.5 total_steps=50 cycle_momentum=0 final_div_factor=100.0",
       one_cycle({.max_learning_rate = {0.5}, .total_steps = 50, .cycle_momentum = false, .final_division = 100})},
      {"OneCycleLR max_lr=0.5 total_steps=55 base_momentum=0.5 max_momentum=0.9",
       one_cycle({.max_learning_rate = {0.5}, .total_steps = 55, .base_momentum = 0.5, .max_momentum = 0.9})},
      {"CyclicLR base_lr=0.1,0.02 max_lr=0.4,0.3 step_size_up=6",
       cyclic({.base_learning_rate = {0.1, 0.02}, .max_learning_rate = {0.4, 0.3}, .steps_up = 6})},
      {"CyclicLR base_lr=0.1 max_lr=0.4 step_size_up=5 step_size_down=8 mode=triangular2",
       cyclic({.base_learning_rate = {0.1},
               .max_learning_rate = {0.4},
               .steps_up = 5,
               .steps_down = 8,
               .height = nn::CycleHeight::halved})},
      {"CyclicLR base_lr=0.1 max_lr=0.4 step_size_up=7 mode=exp_range gamma=0.97",
       cyclic({.base_learning_rate = {0.1},
               .max_learning_rate = {0.4},
               .steps_up = 7,
               .height = nn::CycleHeight::exponential,
               .factor = 0.97})},
      {"CyclicLR base_lr=0.1 max_lr=0.4 step_size_up=7 cycle_momentum=0",
       cyclic({.base_learning_rate = {0.1}, .max_learning_rate = {0.4}, .steps_up = 7, .cycle_momentum = false})},
      {"CyclicLR base_lr=0.1 max_lr=0.4 step_size_up=7 base_momentum=0.6 max_momentum=0.95",
       cyclic({.base_learning_rate = {0.1},
               .max_learning_rate = {0.4},
               .steps_up = 7,
               .base_momentum = 0.6,
               .max_momentum = 0.95})},
      {"ReduceLROnPlateau patience=3", plateau({.patience = 3})},
      {"ReduceLROnPlateau patience=2 factor=0.5 cooldown=2 min_lr=0.02",
       plateau({.factor = 0.5, .patience = 2, .cooldown = 2, .low = 0.02})},
      {"ReduceLROnPlateau patience=1 mode=max threshold=0.05 threshold_mode=abs",
       plateau({.maximize = true, .patience = 1, .threshold = 0.05, .relative = false})},
      {"ReduceLROnPlateau patience=4 mode=max factor=0.7 eps=0.02",
       plateau({.maximize = true, .factor = 0.7, .patience = 4, .epsilon = 0.02})},
      {"LambdaLR", by([](std::int64_t steps, double base) { return base / (1 + static_cast<double>(steps)); })},
      {"MultiplicativeLR",
       by(nn::multiplicative_rate([](std::int64_t i) { return 0.9 + 0.1 / (1 + static_cast<double>(i)); }))},
      {"SequentialLR",
       by(nn::sequential_rate({nn::linear_rate(0.1, 1, 8), nn::exponential_rate(0.9), nn::constant_rate(0.2, 5)},
                              {8, 30}))},
      {"ChainedScheduler",
       by(nn::chained_rate({nn::linear_rate(0.2, 1, 10), nn::exponential_rate(0.95), nn::step_rate(20, 0.5)}))}};
  return all;
}

struct Course {
  Tensor rates, momenta;  ///< [groups, steps + 1]
};

void advance(nn::Schedule& schedule, double metric) {
  if (auto* p = dynamic_cast<nn::PlateauSchedule*>(&schedule)) return p->advance(metric);
  schedule.advance();
}

Course follow(nn::Optimizer& optimizer, nn::Schedule& schedule, const Tensor& metrics) {
  std::vector<double> rates, momenta;
  const auto measured = metrics.to_vector<double>();
  std::vector<std::vector<double>> by_group(4);
  for (std::size_t step = 0; step <= kSteps; ++step) {
    for (std::size_t group = 0; group < 2; ++group) {
      by_group[group].push_back(optimizer.learning_rate(group));
      by_group[2 + group].push_back(optimizer.momentum(group));
    }
    if (step < kSteps) advance(schedule, measured[step]);
  }
  const auto rows = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> all = a;
    all.insert(all.end(), b.begin(), b.end());
    return Tensor::from(all, {2, kSteps + 1});
  };
  return {rows(by_group[0], by_group[1]), rows(by_group[2], by_group[3])};
}

std::vector<Parameter> parameter(const char* name) { return {Parameter(name, zeros({1}))}; }

nn::Sgd sgd_of_two() {
  nn::Sgd sgd(parameter("a"), {.learning_rate = 0.3, .momentum = 0.9});
  sgd.add_group(parameter("b"), {.learning_rate = 0.05, .momentum = 0.9});
  return sgd;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schedules_of_pytorch)

BOOST_AUTO_TEST_CASE(fifty_steps) {
  const io::TensorFile file = support::fixture("optimizers.safetensors");
  std::set<std::string> names;
  for (const std::string_view name : file.names())
    if (name.starts_with("rates/")) names.insert(std::string(name.substr(6)));
  BOOST_TEST(names.size() == schedules().size());
  for (const std::string& name : names) {
    BOOST_TEST_REQUIRE(schedules().contains(name), name);
    nn::Sgd sgd = sgd_of_two();
    const auto schedule = schedules().at(name)(sgd);
    const Course course = follow(sgd, *schedule, file.tensor("metrics"));
    BOOST_TEST(within(course.rates, file.tensor("rates/" + name), 1e-12), name);
    BOOST_TEST(within(course.momenta, file.tensor("momenta/" + name), 1e-12), name);
    if (!file.contains("momenta/Adam " + name)) continue;
    nn::Adam adam(parameter("a"), {.learning_rate = 0.3});
    adam.add_group(parameter("b"), {.learning_rate = 0.05});
    const auto cycles = schedules().at(name)(adam);
    BOOST_TEST(
        within(follow(adam, *cycles, file.tensor("metrics")).momenta, file.tensor("momenta/Adam " + name), 1e-12),
        name);
  }
}

/// A schedule that gets the state of another continues as that one does.
BOOST_AUTO_TEST_CASE(every_schedule_is_resumed) {
  const std::vector<double> metrics = support::fixture("optimizers.safetensors").tensor("metrics").to_vector<double>();
  for (const auto& [name, make] : schedules()) {
    nn::Sgd a = sgd_of_two(), b = sgd_of_two();
    const auto first = make(a), second = make(b);
    for (std::size_t step = 0; step < 20; ++step) advance(*first, metrics[step]);
    second->restore(first->state());
    for (std::size_t step = 20; step < kSteps; ++step) {
      for (std::size_t group = 0; group < 2; ++group) {
        BOOST_TEST_REQUIRE(a.learning_rate(group) == b.learning_rate(group), name);
        BOOST_TEST_REQUIRE(a.momentum(group) == b.momentum(group), name);
      }
      advance(*first, metrics[step]);
      advance(*second, metrics[step]);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_warm_up_is_linear_and_then_another) {
  nn::Sgd sgd(parameter("a"), {.learning_rate = 1});
  nn::FunctionSchedule schedule(sgd, nn::warm_up_rate(4, nn::exponential_rate(0.5)));
  for (const double wanted : {0.2, 0.4, 0.6, 0.8, 1.0, 0.5, 0.25}) {
    BOOST_TEST(std::fabs(sgd.learning_rate() - wanted) < 1e-15);
    schedule.advance();
  }
}

BOOST_AUTO_TEST_SUITE_END()
