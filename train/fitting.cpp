/// The loop of `fit`: epochs, batches, validation, checkpoints.
#include "ferrite/train/detail/fitting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/train/detail/fingerprints.h"
#include "ferrite/train/detail/keeping.h"

namespace ferrite::train::detail {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ValueError("fit: " + what); }

/// Two numbers have the same text where they are the same number.
std::string bits_of(double x) { return std::to_string(std::bit_cast<std::uint64_t>(x)); }

std::uint64_t digest_of(const Batch& batch) {
  std::uint64_t h = kHash;
  for (const Tensors* list : {&batch.fields, &batch.lengths})
    for (const Tensor& x : *list)
      if (x.defined()) h = typed_hash_of(x, h);
  return h;
}

}  // namespace

Fitting::Fitting(const Model& model, const DataLoader& data, const FitOptions& options)
    : model_(model), data_(data), options_(options), steps_(model_, options_) {
  check_options();
  at_.seed = data.options().seed;
}

void Fitting::check_options() const {
  const FitOptions& o = options_;
  if (o.epochs < 0) refuse("epochs must be at least 0, got " + std::to_string(o.epochs));
  if (o.accumulate < 1) refuse("accumulate must be at least 1, got " + std::to_string(o.accumulate));
  if (o.checkpoint_every < 0) refuse("checkpoint_every must be at least 0, got " + std::to_string(o.checkpoint_every));
  ferrite::detail::check_not_negative("fit: clip_norm and clip_value", {o.clip_norm, o.clip_value});
  if (o.epochs > 0 && data_.batches() == 0) refuse("the data has no batches");
  if (model_.own_step && (o.accumulate > 1 || o.clip_norm > 0 || o.clip_value > 0 || o.optimizer || o.loss.defined()))
    refuse("a step of your own makes its own losses and updates; leave loss, optimizer, accumulate and clipping to it");
  if (model_.own_step && o.parallel)
    refuse(
        "a step of your own updates by itself, which `parallel` cannot join; give a Forward, or write the loop with "
        "mpi::DataParallel");
  if (o.validation && !model_.evaluate) refuse("there is validation data, but the step has no `evaluate`");
  if (o.validation && o.validation->batches() == 0) refuse("the validation data has no batches");
  check_names();
}

/// Values of one name would hide each other.
void Fitting::check_names() const {
  std::vector<std::string> names = {"loss"};
  for (const AnyMetric& m : options_.metrics) {
    names.push_back(m->name());
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      refuse("two values have the name '" + names.back() + "': a metric needs a name of its own");
  }
}

nn::Optimizer& Fitting::optimizer() const {
  if (model_.optimizers.empty()) refuse("this training has not said what its optimizers are");
  return *model_.optimizers[0];
}

void Fitting::stop(std::string reason) {
  if (stopped_.empty()) stopped_ = reason.empty() ? "a callback stopped it" : std::move(reason);
}

std::vector<Tensor> Fitting::validated() const { return validated_.empty() ? values_of(model_.module) : validated_; }

void Fitting::log(std::string_view name, double value) {
  logs_.set(name, value);
  if (ending_epoch_) history_.set(name, value);
}

template <class F>
void Fitting::tell(F f) {
  for (const AnyCallback& c : options_.callbacks) f(*c);
}

std::string Fitting::where() const {
  return "epoch " + std::to_string(at_.epoch + 1) + " of " + std::to_string(options_.epochs) + ", batch " +
         std::to_string(at_.batch + 1) + " of " + std::to_string(data_.batches()) + " (update " +
         std::to_string(at_.step + 1) + ")";
}

History Fitting::run() {
  const NoTapes frame;  // of the caller: steps have their own
  const KeptModes modes(model_.module);
  if (!model_.module.training()) model_.module.train();
  if (!options_.checkpoint.empty()) fingerprint_ = fingerprint();
  if (!options_.parallel) {
    train_to_the_end();
  } else {
    join();
    try {
      train_to_the_end();
      parallel_->end();
    } catch (...) {
      if (!thrown_by_all_) parallel_->abandon();
      throw;
    }
  }
  history_.set_stopped(stopped_);
  return std::move(history_);
}

void Fitting::train_to_the_end() {
  for (const AnyMetric& m : options_.metrics) m->reset();
  tell([&](Callback& c) { c.on_train_begin(*this); });
  resume();
  agree_on_stop();
  while (at_.epoch < options_.epochs && stopped_.empty()) run_epoch();
  tell([&](Callback& c) { c.on_train_end(*this); });
}

/// Processes that were given different options would wait for each other in different places.
void Fitting::join() {
  parallel_ = options_.parallel->begin(model_.module, model_.optimizers[0]);
  steps_.join(parallel_.get());
  const FitOptions& o = options_;
  const auto loader = [](const DataLoader& d) {
    return std::to_string(d.batches()) + " " + std::to_string(d.samples()) + " " + std::to_string(d.data().size()) +
           " " + std::to_string(d.options().batch_size) + " " + std::to_string(d.options().seed) + " ";
  };
  parallel_->check_equal(stream_of(loader(data_) + (o.validation ? loader(*o.validation) : "")),
                         "have data of different sizes, batches or seeds; give every rank the whole data set");
  std::string text = std::to_string(o.epochs) + " " + std::to_string(o.accumulate) + " " + bits_of(o.clip_norm) + " " +
                     bits_of(o.clip_value) + " " + std::to_string(o.schedule_by_epoch) + " " +
                     std::to_string(static_cast<int>(o.compile)) + " " + std::to_string(o.checkpoint_every) + " " +
                     std::to_string(o.checkpoint.empty());
  for (const AnyMetric& m : o.metrics) text += " " + m->name();
  for (std::size_t i = 0; i < o.callbacks.size(); ++i) text += " " + callback_name(i);
  if (o.schedule) {
    text += " schedule " + std::to_string(o.schedule->steps());
    for (const double rate : o.schedule->state().bases) text += " " + bits_of(rate);
  }
  parallel_->check_equal(stream_of(text), "have different options of fit, metrics, callbacks or schedules");
  std::string entries;
  for (const auto& [name, value] : fingerprint_) entries += name + "\n" + value + "\n";
  parallel_->check_equal(stream_of(entries),
                         "have different data, nets or options, as the fingerprints of their checkpoints tell");
}

/// One process that stops stops all, for the reason of the first that has one.
void Fitting::agree_on_stop() {
  if (parallel_ && !options_.callbacks.empty()) stopped_ = parallel_->first_text(stopped_);
}

/// That processes have the same batches and parameters is looked at once in an epoch.
void Fitting::check_agreed(const Batch& first) const {
  if (!parallel_) return;
  parallel_->check_equal(digest_of(first), "have different data; give every rank the whole data set, in one order");
  std::uint64_t h = kHash;
  for (const auto& p : model_.module.named_parameters()) h = hash_of(p.variable.peek(), h);
  parallel_->check_equal(h,
                         "have different parameters; a callback changed them on one rank alone, or the processors of "
                         "the ranks have different instruction sets (set FERRITE_ISA)");
}

void Fitting::run_epoch() {
  steps_.begin_epoch(at_.epoch);
  if (at_.batch == 0) {
    loss_ = {};
    logs_.clear();
    for (const AnyMetric& m : options_.metrics) m->reset();
    tell([&](Callback& c) { c.on_epoch_begin(*this); });
  }
  DataLoader::Epoch batches = data_.epoch(at_.epoch, at_.batch);
  bool checked = false;
  for (const Batch& batch : batches) {
    const bool last = at_.batch + 1 == data_.batches();
    if (!std::exchange(checked, true)) check_agreed(batch);
    try {
      train_on(batch, last);
    } catch (const NotFinite& e) {
      const std::string what = where() + ": " + e.what();
      bool handled = false;
      tell([&](Callback& c) { handled = c.on_not_finite(*this, what) || handled; });
      if (parallel_) handled = parallel_->any(handled);
      thrown_by_all_ = true;
      if (!handled) throw AnomalyError("fit: " + what);
      thrown_by_all_ = false;
      stop(what);
      return;
    }
    if (!stopped_.empty() && !last) return;
  }
  validate();
  end_epoch();
}

void Fitting::train_on(const Batch& batch, bool last) {
  const Steps::Result out = steps_.train(batch, last);
  if (!options_.metrics.empty()) {
    if (!out.prediction.defined()) refuse("there are metrics, but the step gives no prediction");
    for (const AnyMetric& m : options_.metrics) m->add(out.prediction, batch);
  }
  loss_.add(out);
  ++at_.batch;
  if (out.updated) {
    ++at_.step;
    if (options_.schedule && !options_.schedule_by_epoch) options_.schedule->advance();
  }
  set_logs();
  tell([&](Callback& c) { c.on_batch_end(*this); });
  agree_on_stop();
  const bool due = options_.checkpoint_every > 0 && at_.step % options_.checkpoint_every == 0;
  if (due && out.updated && !last) save();
}

void Fitting::set_logs() {
  logs_.set("loss", loss_.value());
  for (const AnyMetric& m : options_.metrics) logs_.set(m->name(), m->value());
}

void Fitting::validate() {
  if (!options_.validation) return;
  tell([&](Callback& c) { c.on_validation_begin(*this); });
  try {
    const KeptModes modes(model_.module);
    model_.module.eval();
    for (const auto& [name, value] : evaluated(steps_, *options_.validation, options_.metrics, parallel_.get()))
      logs_.set("val_" + name, value);
  } catch (...) {
    tell([&](Callback& c) { c.on_validation_end(*this); });  // averages go back out of the model
    throw;
  }
  validated_ = values_of(model_.module);
  tell([&](Callback& c) { c.on_validation_end(*this); });
}

void Fitting::end_epoch() {
  if (options_.schedule && options_.schedule_by_epoch) options_.schedule->advance();
  history_.add(logs_);
  ending_epoch_ = true;
  tell([&](Callback& c) { c.on_epoch_end(*this); });
  ending_epoch_ = false;
  agree_on_stop();
  validated_ = {};
  ++at_.epoch;
  at_.batch = 0;
  save();
}

Logs evaluated(Steps& steps, const DataLoader& data, const std::vector<AnyMetric>& metrics, ParallelRun* parallel) {
  if (data.batches() == 0) throw ValueError("evaluate: the data has no batches");
  MeanLoss loss;
  bool first = true;
  for (const AnyMetric& m : metrics) m->reset();
  DataLoader::Epoch batches = data.epoch(0);
  for (const Batch& batch : batches) {
    if (std::exchange(first, false) && parallel)
      parallel->check_equal(digest_of(batch), "have different validation data; give every rank the whole data set");
    const Steps::Result out = steps.evaluate(batch);
    if (!metrics.empty() && !out.prediction.defined())
      throw ValueError("evaluate: there are metrics, but the model gives no prediction");
    for (const AnyMetric& m : metrics) m->add(out.prediction, batch);
    loss.add(out);
  }
  Logs logs;
  logs.set("loss", loss.value());
  for (const AnyMetric& m : metrics) logs.set(m->name(), m->value());
  return logs;
}

}  // namespace ferrite::train::detail
