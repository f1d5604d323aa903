/// What `fit` writes to its checkpoint, and how it goes on from one.
#include <algorithm>
#include <utility>

#include "ferrite/train/detail/fingerprints.h"
#include "ferrite/train/detail/fitting.h"

namespace ferrite::train::detail {
namespace {

/// Where modules are in evaluation mode though the training trains: frozen statistics. Empty: nowhere.
std::string evaluating(const nn::Module& model) {
  const std::vector<bool> modes = model.modes();
  std::string text;
  for (std::size_t i = 0; i < modes.size(); ++i)
    if (!modes[i]) text += (text.empty() ? "module " : ", ") + std::to_string(i);
  return text;
}

/// The rates of all groups, or those that schedules begin with.
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

}  // namespace

std::string Fitting::callback_name(std::size_t i) const {
  std::string name = options_.callbacks[i]->name();
  std::size_t same = 1;
  for (std::size_t k = 0; k < i; ++k) same += options_.callbacks[k]->name() == name;
  return same == 1 ? name : name + "#" + std::to_string(same);
}

/// Everything that decides the numbers but the number of epochs, as training begins: what callbacks set later does not
/// count.
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

/// What the file holds; none where there is no file.
std::optional<Checkpoint> Fitting::load() {
  if (options_.checkpoint.empty()) return std::nullopt;
  if (parallel_) return parallel_->load(options_.checkpoint, parts());
  if (!std::filesystem::exists(options_.checkpoint)) return std::nullopt;
  return load_checkpoint(options_.checkpoint, parts());
}

void Fitting::resume() {
  thrown_by_all_ = true;  // all have the same bytes
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
    refuse_file("stands behind batch " + std::to_string(saved.position.batch) + " of an epoch, there are " +
                std::to_string(data_.batches()));
  if (numbers("sums").size() != 2) refuse_file("the numbers of 'sums' must be two");
  at_ = saved.position;
  loss_ = {numbers("sums")[0], numbers("sums")[1]};
  for (const AnyMetric& m : options_.metrics) m->restore(numbers("metric." + m->name()));
  // A callback that lowers the rate sets it to its own when it is restored; that of the file counts, which a schedule
  // may have set later.
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
  // What stops by other rules than before may go on.
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

}  // namespace ferrite::train::detail
