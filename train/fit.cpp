/// `fit`, `evaluate` and `predict`: the loop over epochs and batches, validation, and checkpoints: what they hold and
/// how training resumes from one.
#include "ferrite/train/fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/train/checkpoint.h"
#include "ferrite/train/detail/fingerprints.h"
#include "ferrite/train/detail/keeping.h"
#include "ferrite/train/detail/train_step.h"

namespace ferrite::train::detail {
namespace {

/// The mean loss of several batches, each weighted by its number of losses.
struct MeanLoss {
  double sum = 0, weight = 0;
  /// Adds a batch. One in which nothing counts has no mean and adds nothing.
  void add(const Steps::Result& batch) {
    if (batch.weight == 0) return;
    sum += batch.loss * batch.weight;
    weight += batch.weight;
  }
  double value() const { return sum / weight; }
};

/// One call of `fit`.
class Fitting final : public Training {
 public:
  /// Checks the options. Throws ValueError when they do not fit.
  Fitting(const Model& model, const DataLoader& data, const FitOptions& options);
  History run();

  const nn::Module& model() const override { return model_.module; }
  nn::Optimizer& optimizer() const override;
  const DataLoader& data() const override { return data_; }
  std::int64_t epoch() const override { return at_.epoch; }
  std::int64_t epochs() const override { return options_.epochs; }
  std::int64_t batch() const override { return at_.batch; }
  std::int64_t step() const override { return at_.step; }
  const Logs& logs() const override { return logs_; }
  const History& history() const override { return history_; }
  std::vector<Tensor> validated() const override;
  bool is_main() const override { return !parallel_ || parallel_->is_main(); }
  void log(std::string_view name, double value) override;
  void stop(std::string reason) override;

 private:
  template <class F>
  void tell(F f);
  void join();
  void agree_on_stop();
  void check_agreed(const Batch& first) const;
  void train_to_the_end();
  void run_epoch();
  void train_on(const Batch& batch, bool last);
  void validate();
  void end_epoch();
  void set_logs();
  void check_options() const;
  void check_names() const;

  TrainingParts parts() const;
  std::string callback_name(std::size_t i) const;
  void save();
  std::optional<Checkpoint> load();
  void resume();
  void take(const Checkpoint& saved);
  void resume_history(const Numbers& numbers);
  Fingerprint fingerprint() const;
  std::string where() const;

  Model model_;
  const DataLoader& data_;
  const FitOptions& options_;
  std::unique_ptr<ParallelRun> parallel_;
  bool thrown_by_all_ = false;  ///< whether an exception thrown now is thrown by all processes
  Steps steps_;
  Fingerprint fingerprint_;  ///< fingerprint when training began; empty without a checkpoint
  Position at_;
  MeanLoss loss_;  ///< mean loss of the epoch so far
  Logs logs_;
  History history_;
  std::string stopped_;
  std::vector<Tensor> validated_;  ///< parameters and buffers that this epoch's validation used
  bool ending_epoch_ = false;      ///< whether the history includes the running epoch
};

/// Returns loss and metrics of a model over a loader, without changing its modes.
Logs evaluated(Steps& steps, const DataLoader& data, const std::vector<AnyMetric>& metrics, ParallelRun* parallel);

// ---- checkpoints ---------------------------------------------------------------------------------------

/// Returns the numbers of the modules that are in evaluation mode during training (frozen statistics); empty if none.
std::string evaluating(const nn::Module& model) {
  const std::vector<bool> modes = model.modes();
  std::string text;
  for (std::size_t i = 0; i < modes.size(); ++i)
    if (!modes[i]) text += (text.empty() ? "module " : ", ") + std::to_string(i);
  return text;
}

/// Returns the learning rates of all groups; for groups with a schedule its base rates.
std::string rates_of(const std::vector<nn::Optimizer*>& optimizers, const nn::Schedule* schedule) {
  std::string text;
  for (const nn::Optimizer* o : optimizers)
    for (std::size_t g = 0; g < o->groups(); ++g) {
      const bool scheduled = schedule && optimizers.size() == 1 && g < schedule->state().bases.size();
      text += (text.empty() ? "" : " ") + exact(scheduled ? schedule->base(g) : o->learning_rate(g));
    }
  return text.empty() ? "none" : text;
}

std::string frozen_in(const std::vector<nn::Optimizer*>& optimizers) {
  std::string text;
  for (const nn::Optimizer* o : optimizers)
    for (const Parameter& p : o->parameters())
      if (o->frozen(p)) text += (text.empty() ? "" : ", ") + p.name();
  return text.empty() ? "none" : text;
}

std::string Fitting::callback_name(std::size_t i) const {
  std::string name = options_.callbacks[i]->name();
  std::size_t same = 1;
  for (std::size_t k = 0; k < i; ++k) same += options_.callbacks[k]->name() == name;
  return same == 1 ? name : name + "#" + std::to_string(same);
}

/// Returns everything that decides the numbers of the training, except the number of epochs, as training begins: what
/// callbacks set later does not count.
Fingerprint Fitting::fingerprint() const {
  const FitOptions& o = options_;
  const LoaderOptions& l = data_.options();
  const auto whole = [](std::int64_t n) { return std::to_string(n); };
  std::vector<double> bounds;
  for (const std::int64_t b : data_.bucket_lengths()) bounds.push_back(static_cast<double>(b));
  Fingerprint all = {{"accumulate", whole(o.accumulate)},
                     {"batch_size", whole(l.batch_size)},
                     {"clip_norm", exact(o.clip_norm)},
                     {"clip_value", exact(o.clip_value)},
                     {"data", data_.data().fingerprint()},
                     {"drop_last", whole(l.drop_last)},
                     {"examples", whole(data_.data().size())},
                     {"frozen", frozen_in(model_.optimizers)},
                     {"learning_rate", rates_of(model_.optimizers, o.schedule)},
                     {"loss", o.loss.defined()  ? o.loss.name()
                              : model_.own_step ? "a step"
                                                : "a forward pass"},
                     {"samples", whole(data_.samples())},
                     {"schedule_by_epoch", whole(o.schedule && o.schedule_by_epoch)},
                     {"seed", std::to_string(l.seed)},
                     {"shuffle", whole(l.shuffle)},
                     {"validation", o.validation ? o.validation->data().fingerprint() : "none"}};
  if (!bounds.empty()) all["bucket_lengths"] = text_of(bounds);
  if (l.weights.defined()) all["weights"] = text_of(cast(l.weights, Dtype::f64).to_vector<double>());
  if (!o.schedule) all["schedule"] = "none";
  if (const std::string modules = evaluating(model_.module); !modules.empty()) all["evaluating"] = modules;
  for (std::size_t i = 0; i < o.callbacks.size(); ++i)
    if (const std::string settings = o.callbacks[i]->settings(); !settings.empty())
      all["callback." + callback_name(i)] = settings;
  for (const auto& [name, text] : o.identity) {
    std::string& entry = all[name];
    entry += (entry.empty() ? "" : ": ") + text;
  }
  return all;
}

TrainingParts Fitting::parts() const {
  TrainingParts parts{.model = model_.module, .also = fingerprint_, .changed = options_.changed};
  for (nn::Optimizer* o : model_.optimizers) parts.optimizers.push_back(o);
  if (options_.schedule) parts.schedules.push_back(options_.schedule);
  for (std::size_t i = 0; i < options_.callbacks.size(); ++i)
    for (const nn::Named<State>& s : options_.callbacks[i]->variables())
      parts.states.push_back({callback_name(i) + "." + s.name, s.variable});
  return parts;
}

void Fitting::save() {
  if (options_.checkpoint.empty()) return;
  Checkpoint checkpoint{.position = at_};
  Numbers& numbers = checkpoint.numbers;
  numbers["sums"] = {loss_.sum, loss_.weight};
  for (const AnyMetric& m : options_.metrics) numbers["metric." + m->name()] = m->state();
  for (std::size_t i = 0; i < options_.callbacks.size(); ++i)
    numbers["callback." + callback_name(i)] = options_.callbacks[i]->state();
  for (std::size_t i = 0; i < history_.names().size(); ++i)
    numbers["history." + std::to_string(i) + "." + history_.names()[i]] = history_[history_.names()[i]];
  if (!stopped_.empty()) checkpoint.metadata["stopped"] = stopped_;
  if (!parallel_) return save_checkpoint(options_.checkpoint, parts(), checkpoint);
  thrown_by_all_ = true;
  parallel_->save(options_.checkpoint, parts(), checkpoint);
  thrown_by_all_ = false;
}

/// Returns the contents of the checkpoint; nullopt if there is no file.
std::optional<Checkpoint> Fitting::load() {
  if (options_.checkpoint.empty()) return std::nullopt;
  if (parallel_) return parallel_->load(options_.checkpoint, parts());
  if (!std::filesystem::exists(options_.checkpoint)) return std::nullopt;
  return load_checkpoint(options_.checkpoint, parts());
}

void Fitting::resume() {
  thrown_by_all_ = true;  // all processes read the same bytes
  const std::optional<Checkpoint> found = load();
  if (found) take(*found);
  thrown_by_all_ = false;
}

void Fitting::take(const Checkpoint& saved) {
  const auto refuse_file = [&](const std::string& what) { throw IoError(options_.checkpoint.string() + ": " + what); };
  const auto numbers = [&](const std::string& name) -> const std::vector<double>& {
    const auto found = saved.numbers.find(name);
    if (found == saved.numbers.end()) refuse_file("has no numbers of '" + name + "': other callbacks or metrics");
    return found->second;
  };
  const auto changed = [&](std::string_view root) {
    return std::any_of(saved.changes.begin(), saved.changes.end(),
                       [&](const Change& c) { return c.name.starts_with(root); });
  };
  if (saved.position.batch > data_.batches())
    refuse_file("was made after batch " + std::to_string(saved.position.batch) + " of an epoch, there are " +
                std::to_string(data_.batches()));
  if (numbers("sums").size() != 2) refuse_file("the numbers of 'sums' must be two");
  at_ = saved.position;
  loss_ = {numbers("sums")[0], numbers("sums")[1]};
  for (const AnyMetric& m : options_.metrics) m->restore(numbers("metric." + m->name()));
  // A callback that lowers the rate sets its own rate when it is restored. The rate of the file takes precedence: a
  // schedule may have set it later.
  std::vector<std::pair<State, Tensor>> rates;
  for (const nn::Optimizer* o : model_.optimizers)
    for (std::size_t g = 0; g < o->groups(); ++g)
      rates.emplace_back(o->learning_rate_variable(g), o->learning_rate_variable(g).peek());
  for (std::size_t i = 0; i < options_.callbacks.size(); ++i)
    if (!(changed("learning_rate") && options_.callbacks[i]->sets_rate()))
      options_.callbacks[i]->restore(numbers("callback." + callback_name(i)));
  for (const auto& [variable, rate] : rates) variable.assign(rate);
  resume_history(saved.numbers);
  history_.set_resumed(at_.epoch);
  if (at_.batch > 0) set_logs();
  const auto stopped = saved.metadata.find("stopped");
  // Training may continue if the rules for stopping were changed.
  if (stopped != saved.metadata.end() && !changed("callback")) stopped_ = stopped->second;
}

void Fitting::resume_history(const Numbers& numbers) {
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  for (std::size_t i = 0;; ++i) {
    const std::string prefix = "history." + std::to_string(i) + ".";
    const auto found = numbers.lower_bound(prefix);
    if (found == numbers.end() || !found->first.starts_with(prefix)) break;
    if (static_cast<std::int64_t>(found->second.size()) != at_.epoch)
      throw IoError(options_.checkpoint.string() + ": '" + found->first + "' has " +
                    std::to_string(found->second.size()) + " epochs of " + std::to_string(at_.epoch));
    columns.emplace_back(found->first.substr(prefix.size()), found->second);
  }
  for (std::size_t e = 0; e < static_cast<std::size_t>(at_.epoch); ++e) {
    Logs logs;
    for (const auto& [name, values] : columns) logs.set(name, values[e]);
    history_.add(logs);
  }
}

// ---- the loop ------------------------------------------------------------------------------------------

[[noreturn]] void refuse(const std::string& what) { throw ValueError("fit: " + what); }

/// Returns the bits of x as text, so that two texts are equal exactly if the numbers have the same bits.
std::string bits_of(double x) { return std::to_string(std::bit_cast<std::uint64_t>(x)); }

std::uint64_t digest_of(const Batch& batch) {
  std::uint64_t h = kHash;
  for (const Tensors* list : {&batch.fields, &batch.lengths})
    for (const Tensor& x : *list)
      if (x.defined()) h = typed_hash_of(x, h);
  return h;
}

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

/// Throws ValueError for two metrics with the same name: their values would hide each other.
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
  const NoTapes frame;  // hides the caller's tapes: steps have their own
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

/// Begins the training of several processes. Throws ValueError when they have different options or data: they would
/// wait for each other in different places.
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
                         "have different data, nets or options, as the fingerprints of their checkpoints show");
}

/// Stops all processes when one stops, for the reason of the first that has one.
void Fitting::agree_on_stop() {
  if (parallel_ && !options_.callbacks.empty()) stopped_ = parallel_->first_text(stopped_);
}

/// Throws ValueError unless all processes have the same batch and parameters; called once per epoch.
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
    tell([&](Callback& c) { c.on_validation_end(*this); });  // restores the weights where averages replaced them
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

}  // namespace

}  // namespace ferrite::train::detail

// ---- the functions -------------------------------------------------------------------------------------

namespace ferrite::train {
namespace {

/// Returns the forward pass of a net with a loss. It returns sums with counts if sums of other parts of the batch are
/// added to them, or if the counts are the weights of batches; else means.
Forward forward_of(const nn::Layer& net, const Loss& loss, bool parallel) {
  return [&net, &loss, sums = parallel || !loss.has_weight()](const Batch& batch) {
    const Tensor y = net(batch.x(), batch.context());
    if (!sums) return StepOutput{loss(y, batch), y};
    LossSum s = loss.sum(y, batch);
    return StepOutput{std::move(s.sum), y, std::move(s.count)};
  };
}

/// Returns the function that weights batches; empty for a loss that returns sums, whose counts are the weights.
std::function<double(const Batch&)> weight_of(const Loss& loss) {
  if (!loss.has_weight()) return {};
  return [&loss](const Batch& batch) { return loss.weight(batch); };
}

void check_loss(const std::string& who, const Loss& loss, bool parallel) {
  if (!loss.defined()) throw ValueError(who + ": a net needs a loss: {.loss = \"mse\"}, or a function");
  if (parallel && !loss.gives_sums())
    throw ValueError(who +
                     ": on several ranks a loss must be a name or give a train::LossSum, the sum and the count of its "
                     "losses: the mean that this function gives does not say how many losses of a part it covers");
}

void check_optimizer(const FitOptions& options) {
  if (!options.optimizer) throw ValueError("fit: there is no optimizer: {.optimizer = &adam}");
}

Logs evaluated(const detail::Model& model, const DataLoader& data, const EvaluateOptions& given) {
  const detail::KeptModes modes(model.module);
  model.module.eval();
  const FitOptions options{.metrics = given.metrics};
  detail::Steps steps(model, options);
  if (!given.parallel) return detail::evaluated(steps, data, given.metrics, nullptr);
  const std::unique_ptr<ParallelRun> run = given.parallel->begin(model.module, nullptr);
  steps.join(run.get());
  try {
    return detail::evaluated(steps, data, given.metrics, run.get());
  } catch (...) {
    run->abandon();
    throw;
  }
}

/// Joins parts along the first axis, padded with zeros along the second to the longest.
Tensor joined(std::vector<Tensor> parts) {
  std::int64_t longest = 0;
  for (const Tensor& p : parts)
    if (p.rank() > 1) longest = std::max(longest, p.shape()[1]);
  for (Tensor& p : parts) {
    if (p.rank() < 2 || p.shape()[1] == longest) continue;
    Shape after = Shape::filled(p.rank(), 0);
    after[1] = longest - p.shape()[1];
    p = pad(p, Shape::filled(p.rank(), 0), after);
  }
  return concat(parts, 0);
}

}  // namespace

History fit(const nn::Layer& net, const DataLoader& data, const FitOptions& options) {
  check_loss("fit", options.loss, options.parallel != nullptr);
  check_optimizer(options);
  const Forward forward = forward_of(net, options.loss, options.parallel != nullptr);
  const detail::Model model{.module = net,
                            .forward = forward,
                            .evaluate = forward,
                            .optimizers = {options.optimizer},
                            .weight = weight_of(options.loss),
                            .pure = options.loss.captures_nothing()};
  return detail::Fitting(model, data, options).run();
}

History fit(const nn::Module& module, const Forward& forward, const DataLoader& data, const FitOptions& options) {
  if (!forward) throw ValueError("fit: the forward pass is null");
  if (options.loss.defined()) throw ValueError("fit: the forward pass gives the loss; leave `loss` out");
  check_optimizer(options);
  const detail::Model model{
      .module = module, .forward = forward, .evaluate = forward, .optimizers = {options.optimizer}};
  return detail::Fitting(model, data, options).run();
}

History fit(const nn::Module& module, const OwnStep& step, const DataLoader& data, const FitOptions& options) {
  if (!step.run) throw ValueError("fit: the step is null");
  for (const nn::Optimizer* o : step.optimizers)
    if (!o) throw ValueError("fit: an optimizer of the step is null");
  const detail::Model model{
      .module = module, .evaluate = step.evaluate, .own_step = step.run, .optimizers = step.optimizers};
  return detail::Fitting(model, data, options).run();
}

Logs evaluate(const nn::Layer& net, const DataLoader& data, const EvaluateOptions& options) {
  check_loss("evaluate", options.loss, options.parallel != nullptr);
  return evaluated({.module = net,
                    .evaluate = forward_of(net, options.loss, options.parallel != nullptr),
                    .weight = weight_of(options.loss),
                    .pure = options.loss.captures_nothing()},
                   data, options);
}

Logs evaluate(const nn::Module& module, const Forward& forward, const DataLoader& data,
              const EvaluateOptions& options) {
  if (!forward) throw ValueError("evaluate: the forward pass is null");
  return evaluated({.module = module, .evaluate = forward}, data, options);
}

Tensor predict(const nn::Layer& net, const Dataset& data, std::int64_t batch_size) {
  const detail::KeptModes modes(net);
  net.eval();
  detail::BatchFunction run([&](const Batch& b) { return Tensors{net(b.x(), b.context())}; }, Compile::automatic);
  const DataLoader loader(data, {.batch_size = batch_size, .shuffle = false});
  if (loader.batches() == 0) throw ValueError("predict: the data set is empty");
  std::vector<Tensor> parts;
  DataLoader::Epoch batches = loader.epoch(0);
  for (const Batch& b : batches) parts.push_back(run(b)[0]);
  return joined(std::move(parts));
}

}  // namespace ferrite::train
