/// Callbacks that look at a value: early stopping, saving the best weights, lowering the rate.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ferrite/io/module_file.h"
#include "ferrite/train/detail/better.h"
#include "ferrite/train/detail/fingerprints.h"
#include "ferrite/train/detail/keeping.h"

namespace ferrite::train {
namespace detail {

double monitored(const char* who, const Monitor& monitor, const Training& training) {
  if (training.logs().contains(monitor.value)) return training.logs()[monitor.value];
  std::string list;
  for (const auto& [name, value] : training.logs()) list += (list.empty() ? "" : ", ") + name;
  throw ValueError(std::string(who) + ": there is no value '" + monitor.value + "' to look at; there are " + list);
}

bool larger_is_better(const Monitor& monitor) {
  if (monitor.larger_is_better) return *monitor.larger_is_better;
  std::string_view name = monitor.value;
  if (name.starts_with("val_")) name.remove_prefix(4);
  if (name == "loss") return false;
  try {
    return metric(name)->larger_is_better();
  } catch (const ValueError&) {
    throw ValueError("monitor: whether '" + monitor.value + "' should grow or fall is not known; say larger_is_better");
  }
}

bool better(const Monitor& monitor, double value, double best) {
  if (std::isnan(value)) return false;
  if (std::isnan(best)) return true;
  return larger_is_better(monitor) ? value > best + monitor.least_change : value < best - monitor.least_change;
}

}  // namespace detail

namespace {

void check_count(const char* what, std::int64_t n) {
  if (n < 0) throw ValueError(std::string(what) + " must be at least 0, got " + std::to_string(n));
}

void check_size(const std::string& who, const std::vector<double>& state, std::size_t n) {
  if (state.size() != n)
    throw ValueError("callback " + who + ": a state of " + std::to_string(state.size()) + " numbers, it has " +
                     std::to_string(n));
}

/// A variable of the same type for every parameter and buffer of a model.
std::vector<nn::Named<State>> copies_of(const nn::Module& model) {
  std::vector<nn::Named<State>> copies;
  for (const auto& p : model.named_parameters())
    copies.push_back({"best." + p.name, State("best." + p.name, p.variable.peek())});
  for (const auto& b : model.named_buffers())
    copies.push_back({"best.buffer." + b.name, State("best.buffer." + b.name, b.variable.peek())});
  return copies;
}

/// The values of variables that the monitored value is one of.
std::vector<Tensor> judged(const Monitor& monitor, const Training& t) {
  return monitor.value.starts_with("val_") ? t.validated() : detail::values_of(t.model());
}

/// Saves a model with other values of its variables than those that it has.
void save_with(const nn::Module& model, const std::vector<Tensor>& values, const std::filesystem::path& path) {
  struct Back {
    const nn::Module& model;
    std::vector<Tensor> before;
    ~Back() { detail::assign_values(model, before); }
  } const back{model, detail::values_of(model)};
  detail::assign_values(model, values);
  io::save(model, path);
}

/// "monitor=val_loss", and what is not as usual.
std::string text_of(const Monitor& m) {
  std::string text = "monitor=" + m.value;
  if (m.larger_is_better) text += *m.larger_is_better ? ", larger is better" : ", smaller is better";
  return text + (m.least_change == 0 ? "" : ", least_change=" + detail::exact(m.least_change));
}

}  // namespace

std::string EarlyStopping::settings() const {
  return text_of(options_.monitor) + ", patience=" + std::to_string(options_.patience) +
         (options_.restore_best_weights ? "" : ", without the best weights") +
         (options_.start_from_epoch == 0 ? "" : ", start_from_epoch=" + std::to_string(options_.start_from_epoch));
}

std::string ReduceLROnPlateau::settings() const {
  return text_of(options_.monitor) + ", factor=" + detail::exact(options_.factor) +
         ", patience=" + std::to_string(options_.patience) + ", cooldown=" + std::to_string(options_.cooldown) +
         ", least_rate=" + detail::exact(options_.least_rate);
}

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {
  check_count("EarlyStopping: patience", options_.patience);
  check_count("EarlyStopping: start_from_epoch", options_.start_from_epoch);
  (void)detail::larger_is_better(options_.monitor);
}

void EarlyStopping::on_train_begin(Training& t) {
  best_ = std::numeric_limits<double>::quiet_NaN();
  best_epoch_ = -1;
  waited_ = 0;
  weights_ = options_.restore_best_weights ? copies_of(t.model()) : std::vector<nn::Named<State>>{};
}

void EarlyStopping::on_epoch_end(Training& t) {
  if (t.epoch() < options_.start_from_epoch) return;
  const double value = detail::monitored("EarlyStopping", options_.monitor, t);
  if (detail::better(options_.monitor, value, best_)) {
    best_ = value;
    best_epoch_ = t.epoch();
    waited_ = 0;
    if (weights_.empty()) return;
    const std::vector<Tensor> best = judged(options_.monitor, t);
    for (std::size_t i = 0; i < best.size(); ++i) weights_[i].variable.assign(best[i]);
    return;
  }
  if (++waited_ > options_.patience)
    t.stop(options_.monitor.value + " has not become better since epoch " + std::to_string(best_epoch_ + 1));
}

void EarlyStopping::on_train_end(Training& t) {
  if (weights_.empty() || best_epoch_ < 0) return;
  std::vector<Tensor> best;
  for (const auto& w : weights_) best.push_back(w.variable.peek());
  detail::assign_values(t.model(), best);
}

std::vector<double> EarlyStopping::state() const {
  return {best_, static_cast<double>(best_epoch_), static_cast<double>(waited_)};
}

void EarlyStopping::restore(const std::vector<double>& state) {
  check_size(name(), state, 3);
  best_ = state[0];
  best_epoch_ = static_cast<std::int64_t>(state[1]);
  waited_ = static_cast<std::int64_t>(state[2]);
}

ModelCheckpoint::ModelCheckpoint(std::filesystem::path folder, ModelCheckpointOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  check_count("ModelCheckpoint: last", options_.last);
  if (options_.best) (void)detail::larger_is_better(options_.monitor);
}

void ModelCheckpoint::on_train_begin(Training& t) {
  best_ = std::numeric_limits<double>::quiet_NaN();
  if (t.is_main()) std::filesystem::create_directories(folder_);
}

void ModelCheckpoint::on_epoch_end(Training& t) {
  if (options_.best) {
    const double value = detail::monitored("ModelCheckpoint", options_.monitor, t);
    if (detail::better(options_.monitor, value, best_)) {
      best_ = value;
      if (t.is_main()) save_with(t.model(), judged(options_.monitor, t), best_path());
    }
  }
  if (options_.last == 0 || !t.is_main()) return;
  const auto path = [&](std::int64_t epoch) {
    char name[48];
    std::snprintf(name, sizeof name, "epoch-%04lld.safetensors", static_cast<long long>(epoch + 1));
    return folder_ / name;
  };
  io::save(t.model(), path(t.epoch()));
  if (t.epoch() >= options_.last) std::filesystem::remove(path(t.epoch() - options_.last));
}

void ModelCheckpoint::restore(const std::vector<double>& state) {
  check_size(name(), state, 1);
  best_ = state[0];
}

void ReduceLROnPlateau::on_train_begin(Training& t) {
  const ReduceLROnPlateauOptions& o = options_;
  schedule_.emplace(t.optimizer(), nn::PlateauOptions{.maximize = detail::larger_is_better(o.monitor),
                                                      .factor = o.factor,
                                                      .patience = o.patience,
                                                      .threshold = o.monitor.least_change,
                                                      .relative = false,
                                                      .cooldown = o.cooldown,
                                                      .low = o.least_rate});
}

void ReduceLROnPlateau::on_epoch_end(Training& t) {
  schedule_->advance(detail::monitored("ReduceLROnPlateau", options_.monitor, t));
  t.log("learning_rate", t.optimizer().learning_rate());
}

std::vector<double> ReduceLROnPlateau::state() const {
  const nn::ScheduleState s = schedule_->state();
  std::vector<double> numbers = {static_cast<double>(s.steps), static_cast<double>(s.bases.size())};
  numbers.insert(numbers.end(), s.bases.begin(), s.bases.end());
  numbers.insert(numbers.end(), s.memory.begin(), s.memory.end());
  return numbers;
}

void ReduceLROnPlateau::restore(const std::vector<double>& state) {
  if (state.size() < 2 || !(state[1] >= 0) || !(state[1] <= static_cast<double>(state.size() - 2)))
    check_size(name(), state, schedule_->state().bases.size() + schedule_->state().memory.size() + 2);
  const auto bases = state.begin() + 2, memory = bases + static_cast<std::ptrdiff_t>(state[1]);
  const nn::ScheduleState s{
      .steps = static_cast<std::int64_t>(state[0]), .bases = {bases, memory}, .memory = {memory, state.end()}};
  const std::string fault = schedule_->fault_of(s);
  if (!fault.empty()) throw ValueError("callback " + name() + ": " + fault);
  schedule_->restore(s);
}

}  // namespace ferrite::train
