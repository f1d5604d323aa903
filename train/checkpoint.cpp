/// Training checkpoints: writing them, and loading with every check made before anything is replaced.
#include "ferrite/train/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "ferrite/io/checksum.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/suggest.h"
#include "ferrite/train/detail/fingerprints.h"

namespace ferrite::train {
namespace {

constexpr std::string_view kOwn = "training.";

constexpr std::string_view kFingerprint = "training.fingerprint.";
/// Names of the entries that `fit` compared before there were fingerprints.
constexpr std::array<std::string_view, 9> kComparedBefore = {
    "accumulate", "batch_size", "bucket_lengths", "drop_last", "examples", "samples", "seed", "shuffle", "weights"};
using detail::exact;

[[noreturn]] void refuse(const io::TensorFile& file, std::string_view key, const std::string& what) {
  throw IoError(file.where() + ": '" + std::string(key) + "' " + what);
}

/// Returns the number "training.<key>" of a file. Throws IoError when it is missing, negative or not finite.
template <class T>
T number(const io::TensorFile& file, const io::Metadata& metadata, const std::string& key) {
  const auto at = metadata.find(std::string(kOwn) + key);
  if (at == metadata.end())
    throw IoError(file.where() + ": is not a checkpoint: '" + std::string(kOwn) + key + "' is missing; load weights " +
                  "alone with io::load");
  const std::string& text = at->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(file, at->first, "is no number: '" + text + "'");
  if (!(value >= 0) || !std::isfinite(static_cast<double>(value)))
    refuse(file, at->first, "must be at least 0 and finite, is " + text);
  return value;
}

/// Returns numbers as text, separated by blanks.
std::string list_of(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) text += (text.empty() ? "" : " ") + exact(v);
  return text;
}

std::vector<double> numbers_in(const io::TensorFile& file, std::string_view key, const std::string& text) {
  std::vector<double> values;
  const char *at = text.data(), *const end = text.data() + text.size();
  while (at != end) {
    double v = 0;
    const auto [next, error] = std::from_chars(at, end, v);
    if (error != std::errc() || (next != end && *next != ' '))
      refuse(file, key, "is not a list of numbers: '" + text + "'");
    values.push_back(v);
    at = next == end ? end : next + 1;
  }
  return values;
}

/// Returns the fingerprint of a file, or the numbers that `fit` of an earlier version compared; nullopt for older ones.
std::optional<Fingerprint> fingerprint_in(const Checkpoint& saved, const io::Metadata& metadata) {
  Fingerprint all;
  for (const auto& [key, text] : metadata)
    if (key.starts_with(kFingerprint)) all[key.substr(kFingerprint.size())] = text;
  if (!all.empty()) return all;
  for (const auto& [name, values] : saved.numbers)
    if (name.starts_with("data.")) all[name.substr(5)] = detail::text_of(values);
  if (all.empty()) return std::nullopt;
  all["seed"] = std::to_string(saved.position.seed);
  return all;
}

/// Returns the prefix for names of the i-th part of a kind: nothing for the first, "2." for the second.
std::string nth(std::size_t i) { return i == 0 ? std::string() : std::to_string(i + 1) + "."; }

/// Returns the state of a schedule in a checkpoint.
nn::ScheduleState schedule_state(const io::TensorFile& file, const io::Metadata& metadata, const std::string& which) {
  nn::ScheduleState state{.steps = number<std::int64_t>(file, metadata, which + "schedule_steps"),
                          .bases = {number<double>(file, metadata, which + "schedule_base")}};
  const auto list = [&](const char* key, std::vector<double>& values) {
    const auto found = metadata.find(std::string(kOwn) + which + key);
    if (found != metadata.end()) values = numbers_in(file, found->first, found->second);
  };
  list("schedule_bases", state.bases);
  list("schedule_memory", state.memory);
  return state;
}

std::string schedule_name(std::size_t i) { return i == 0 ? "schedule" : "schedule" + std::to_string(i + 1); }

void put_schedule(io::Metadata& all, const nn::Schedule& schedule, const std::string& which) {
  const nn::ScheduleState& state = schedule.state();
  const auto put = [&](const char* key, std::string value) { all[std::string(kOwn) + which + key] = std::move(value); };
  put("schedule_steps", std::to_string(state.steps));
  put("schedule_base", exact(schedule.base()));
  if (state.bases.size() > 1) put("schedule_bases", list_of(state.bases));
  if (!state.memory.empty()) put("schedule_memory", list_of(state.memory));
}

/// Returns the states of all parts with their names in files.
std::vector<nn::Named<State>> states_of(const TrainingParts& parts) {
  std::vector<nn::Named<State>> all;
  const auto put = [&](const std::vector<nn::Named<State>>& states, std::size_t i) {
    for (const nn::Named<State>& s : states) all.push_back({nth(i) + s.name, s.variable});
  };
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i) put(parts.optimizers[i]->states(), i);
  for (std::size_t i = 0; i < parts.averages.size(); ++i) put(parts.averages[i]->states(), i);
  put(parts.states, 0);
  return all;
}

void check_parts(const char* who, const TrainingParts& parts) {
  const auto null = [](const auto* part) { return part == nullptr; };
  if (std::any_of(parts.optimizers.begin(), parts.optimizers.end(), null) ||
      std::any_of(parts.schedules.begin(), parts.schedules.end(), null) ||
      std::any_of(parts.averages.begin(), parts.averages.end(), null))
    throw ValueError(std::string(who) + ": an optimiser, schedule or average is null");
  for (const nn::WeightAverage* average : parts.averages)
    if (average->swapped())
      throw ValueError(std::string(who) + ": the averages are exchanged with the parameters; swap them back first");
}

void check_sum(const io::TensorFile& file, const io::Metadata& metadata) {
  const auto at = metadata.find("checksum");
  if (at == metadata.end()) throw IoError(file.where() + ": is not a checkpoint: it has no checksum");
  const std::string found = io::checksum(file);
  if (at->second != found)
    throw IoError(file.where() + ": is damaged: its checksum is " + found + ", it was saved with " + at->second);
}

std::vector<std::pair<State, Tensor>> rates_of(const TrainingParts& parts) {
  std::vector<std::pair<State, Tensor>> rates;
  for (const nn::Optimizer* o : parts.optimizers)
    for (std::size_t g = 0; g < o->groups(); ++g)
      rates.emplace_back(o->learning_rate_variable(g), o->learning_rate_variable(g).peek());
  return rates;
}

/// Returns whether the optimisers have the rates with which a file was saved.
bool at_rates_of(const io::TensorFile& file, const TrainingParts& parts) {
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i)
    for (const auto& s : parts.optimizers[i]->states()) {
      if (!s.name.starts_with("learning_rate")) continue;
      const std::string name = "optimizer." + nth(i) + s.name;
      if (!file.contains(name)) return false;
      const Tensor saved = file.tensor(name);
      if (saved.dtype() != Dtype::f64 || saved.numel() != 1 || saved.item<double>() != s.variable.peek().item<double>())
        return false;
    }
  return true;
}

/// Throws ValueError for a name in `changed` that neither fingerprint has: it is misspelt and would allow nothing.
void check_changed(const TrainingParts& parts, const Fingerprint& before, const Fingerprint& now) {
  std::vector<std::string> names;
  for (const Fingerprint* all : {&before, &now})
    for (const auto& [name, text] : *all)
      for (std::size_t dot = 0; dot != std::string::npos;) {
        dot = name.find('.', dot + 1);
        names.push_back(name.substr(0, dot));
      }
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& name : parts.changed) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view near = io::detail::nearest(name, known);
    throw ValueError("load_checkpoint: nothing that is compared has the name '" + name + "', given as changed" +
                     (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
  }
}

/// Returns the differences that are allowed. Throws OtherTrainingError for those that are not.
std::vector<Change> allowed_changes(const io::TensorFile& file, const TrainingParts& parts, const Fingerprint& before,
                                    const Fingerprint& now) {
  check_changed(parts, before, now);
  const bool of_older_version = !before.contains("optimizer") && !before.contains("net");
  std::vector<Change> allowed, refused;
  for (Change& c : detail::differences(before, now, !parts.also.empty())) {
    if (of_older_version && std::find(kComparedBefore.begin(), kComparedBefore.end(), c.name) == kComparedBefore.end())
      continue;
    // A program that continues with the same optimiser has the rate of the file, and so the same numbers.
    const bool same_rate = c.name == "learning_rate" && at_rates_of(file, parts);
    const bool may = detail::allows(parts.changed, c.name);
    if (same_rate && !may) continue;
    (may ? allowed : refused).push_back(std::move(c));
  }
  if (!refused.empty())
    throw OtherTrainingError(file.where(), std::move(refused),
                             "resume with the same, allow what is intended by `changed`, or begin with another file");
  return allowed;
}

void write(const std::filesystem::path& path, const TrainingParts& parts,
           const std::vector<const nn::Schedule*>& schedules, const Checkpoint& checkpoint) {
  check_parts("save_checkpoint", parts);
  const Position& position = checkpoint.position;
  io::Metadata all = checkpoint.metadata;
  for (const auto& [key, value] : checkpoint.metadata)
    if (key.starts_with(kOwn) || key == "checksum")
      throw IoError("save_checkpoint: the metadata key '" + key + "' is taken");
  const auto put = [&](const std::string& key, std::string value) { all[std::string(kOwn) + key] = std::move(value); };
  put("epoch", std::to_string(position.epoch));
  put("batch", std::to_string(position.batch));
  put("step", std::to_string(position.step));
  put("seed", std::to_string(position.seed));
  Fingerprint fingerprint = detail::fingerprint_of(parts);
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    put_schedule(all, *schedules[i], nth(i));
    fingerprint[schedule_name(i)] = detail::schedule_text(*schedules[i], schedules[i]->state());
  }
  for (const auto& [name, text] : fingerprint) all[std::string(kFingerprint) + name] = text;
  for (const auto& [name, values] : checkpoint.numbers) put("numbers." + name, list_of(values));
  io::ModuleContents what =
      io::contents(parts.model, {.states = states_of(parts), .module_states = true, .metadata = std::move(all)});
  what.metadata["checksum"] = io::checksum(what.tensors, what.metadata);
  io::write_safetensors(path, what.tensors, what.metadata);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const TrainingParts& parts, const Checkpoint& checkpoint) {
  write(path, parts, {parts.schedules.begin(), parts.schedules.end()}, checkpoint);
}

Checkpoint load_checkpoint(const std::filesystem::path& path, const TrainingParts& parts) {
  check_parts("load_checkpoint", parts);
  return load_checkpoint(io::read_safetensors(path), parts);
}

Checkpoint load_checkpoint(const io::TensorFile& file, const TrainingParts& parts) {
  check_parts("load_checkpoint", parts);
  const io::Metadata metadata = file.metadata();
  check_sum(file, metadata);
  Checkpoint checkpoint{.position = {.epoch = number<std::int64_t>(file, metadata, "epoch"),
                                     .batch = number<std::int64_t>(file, metadata, "batch"),
                                     .step = number<std::int64_t>(file, metadata, "step"),
                                     .seed = number<std::uint64_t>(file, metadata, "seed")}};
  const std::string prefix = std::string(kOwn) + "numbers.";
  for (const auto& [key, text] : metadata) {
    if (key.starts_with(prefix)) checkpoint.numbers[key.substr(prefix.size())] = numbers_in(file, key, text);
    if (!key.starts_with(kOwn) && !key.starts_with("alias:") && key != "checksum") checkpoint.metadata[key] = text;
  }
  const std::optional<Fingerprint> before = fingerprint_in(checkpoint, metadata);
  Fingerprint now = detail::fingerprint_of(parts);
  std::vector<std::optional<nn::ScheduleState>> standing;
  for (std::size_t i = 0; i < parts.schedules.size(); ++i) {
    // A file whose fingerprint says that it has no schedule differs in that entry; any other without one is refused.
    const bool without = before && !metadata.contains(std::string(kOwn) + nth(i) + "schedule_steps") &&
                         metadata.contains(std::string(kFingerprint) + schedule_name(i));
    standing.push_back(without ? std::nullopt : std::optional(schedule_state(file, metadata, nth(i))));
    now[schedule_name(i)] =
        detail::schedule_text(*parts.schedules[i], without ? parts.schedules[i]->state() : *standing.back());
  }
  if (before) checkpoint.changes = allowed_changes(file, parts, *before, now);
  const auto changed = [&](std::string_view root) {
    return std::any_of(checkpoint.changes.begin(), checkpoint.changes.end(),
                       [&](const Change& c) { return c.name.starts_with(root); });
  };
  const bool other_rate = changed("learning_rate"), other_schedule = changed("schedule");
  for (std::size_t i = 0; i < parts.schedules.size(); ++i) {
    if (!standing[i]) continue;
    if (other_rate) standing[i]->bases = parts.schedules[i]->state().bases;
    const std::string fault = parts.schedules[i]->fault_of(*standing[i]);
    if (!fault.empty())
      refuse(file, std::string(kOwn) + nth(i) + "schedule_base", "does not fit the schedule: " + fault);
  }
  const auto check = [&](std::string_view name, const Tensor& value) {
    constexpr std::string_view of_optimizers = "optimizer.";
    if (!name.starts_with(of_optimizers)) return;
    name.remove_prefix(of_optimizers.size());
    for (std::size_t i = parts.optimizers.size(); i-- > 0;) {
      if (!name.starts_with(nth(i))) continue;
      const std::string wrong = parts.optimizers[i]->fault_of(name.substr(nth(i).size()), value);
      if (!wrong.empty()) refuse(file, std::string(of_optimizers) + std::string(name), wrong);
      return;
    }
  };
  const std::vector<std::pair<State, Tensor>> own_rates = rates_of(parts);
  io::load(parts.model, file, {.states = states_of(parts), .module_states = true, .check = check});
  // A schedule sets its rate when it is restored, but the rate of the file takes precedence: something else may have
  // set it later. A rate that was changed on purpose is the program's, or the schedule's if there is one.
  const std::vector<std::pair<State, Tensor>> rates = other_rate ? own_rates : rates_of(parts);
  for (std::size_t i = 0; i < standing.size(); ++i)
    parts.schedules[i]->restore(standing[i] ? *standing[i] : nn::ScheduleState(parts.schedules[i]->state()));
  if (!(other_schedule || other_rate) || standing.empty())
    for (const auto& [variable, rate] : rates) variable.assign(rate);
  return checkpoint;
}

void save_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                     const Position& position, const nn::Schedule* schedule, const io::Metadata& metadata,
                     const nn::WeightAverage* average) {
  TrainingParts parts{.model = model, .optimizers = {&optimizer}};
  if (average) parts.averages = {average};
  std::vector<const nn::Schedule*> schedules;
  if (schedule) schedules.push_back(schedule);
  write(path, parts, schedules, {.position = position, .metadata = metadata});
}

Position load_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                         nn::Schedule* schedule, const nn::WeightAverage* average) {
  TrainingParts parts{.model = model, .optimizers = {&optimizer}};
  if (schedule) parts.schedules = {schedule};
  if (average) parts.averages = {average};
  return load_checkpoint(path, parts).position;
}

}  // namespace ferrite::train
