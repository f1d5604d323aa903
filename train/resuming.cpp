/// What `fit` writes to its checkpoint, and how it goes on from one.
#include <set>
#include <utility>

#include "ferrite/train/detail/fitting.h"

namespace ferrite::train::detail {
namespace {

/// What the order of batches and updates depends on, besides the seed.
Numbers settings_of(const DataLoader& data, const FitOptions& options) {
  const LoaderOptions& o = data.options();
  const auto number = [](auto n) { return std::vector<double>{static_cast<double>(n)}; };
  Numbers all = {{"accumulate", number(options.accumulate)}, {"batch_size", number(o.batch_size)},
                 {"drop_last", number(o.drop_last)},         {"examples", number(data.data().size())},
                 {"samples", number(data.samples())},        {"shuffle", number(o.shuffle)}};
  for (const std::int64_t bound : data.bucket_lengths()) all["bucket_lengths"].push_back(static_cast<double>(bound));
  if (o.weights.defined()) all["weights"] = cast(o.weights, Dtype::f64).to_vector<double>();
  return all;
}

}  // namespace

std::string Fitting::callback_name(std::size_t i) const {
  std::string name = options_.callbacks[i]->name();
  std::size_t same = 1;
  for (std::size_t k = 0; k < i; ++k) same += options_.callbacks[k]->name() == name;
  return same == 1 ? name : name + "#" + std::to_string(same);
}

void Fitting::check_data(const Checkpoint& saved) const {
  const auto refuse_file = [&](const std::string& name, const std::string& before, const std::string& now) {
    throw IoError(options_.checkpoint.string() + ": is of a training on other data: it had " + name + " " + before +
                  ", this one has " + now + "; resume with the same, or begin with another file");
  };
  const auto shown = [](const Numbers& numbers, const std::string& name) {
    const auto found = numbers.find(name);
    if (found == numbers.end()) return std::string("none");
    if (found->second.size() != 1) return std::to_string(found->second.size()) + " values";
    return std::to_string(static_cast<std::int64_t>(found->second[0]));
  };
  if (saved.position.seed != at_.seed)
    refuse_file("seed", std::to_string(saved.position.seed), std::to_string(at_.seed));
  const Numbers now = settings_of(data_, options_);
  Numbers before;
  std::set<std::string> names;
  for (const auto& [name, values] : now) names.insert(name);
  for (const auto& [name, values] : saved.numbers)
    if (name.starts_with("data.")) before[name.substr(5)] = values, names.insert(name.substr(5));
  for (const std::string& name : names)
    if (!before.contains(name) || !now.contains(name) || before.at(name) != now.at(name))
      refuse_file(name, shown(before, name), shown(now, name));
  if (saved.position.batch > data_.batches())
    refuse_file("batches", std::to_string(saved.position.batch), std::to_string(data_.batches()));
}

TrainingParts Fitting::parts() const {
  TrainingParts parts{.model = model_.module};
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
  for (const auto& [name, value] : settings_of(data_, options_)) numbers["data." + name] = value;
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
  check_data(saved);
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
    options_.callbacks[i]->restore(numbers("callback." + callback_name(i)));
  for (const auto& [variable, rate] : rates) variable.assign(rate);
  resume_history(saved.numbers);
  if (at_.batch > 0) set_logs();
  const auto stopped = saved.metadata.find("stopped");
  if (stopped != saved.metadata.end()) stopped_ = stopped->second;
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
