/// Training checkpoints: writing, and checking everything before anything is replaced.
#include "ferrite/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ferrite/io/checksum.h"
#include "ferrite/io/safetensors.h"

namespace ferrite::train {
namespace {

constexpr std::string_view kOwn = "training.";

/// The shortest decimal that reads back as the same double.
std::string exact(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return {std::begin(digits), end};
}

[[noreturn]] void refuse(const io::TensorFile& file, std::string_view key, const std::string& what) {
  throw IoError(file.where() + ": '" + std::string(key) + "' " + what);
}

/// A number of at least 0.
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

/// Numbers of any kind, separated by blanks.
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
      refuse(file, key, "is no list of numbers: '" + text + "'");
    values.push_back(v);
    at = next == end ? end : next + 1;
  }
  return values;
}

/// What stands before the names of the i-th part of a kind: nothing for the first, "2." for the second.
std::string nth(std::size_t i) { return i == 0 ? std::string() : std::to_string(i + 1) + "."; }

/// Where a schedule of a checkpoint stands.
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

void put_schedule(io::Metadata& all, const nn::Schedule& schedule, const std::string& which) {
  const nn::ScheduleState& state = schedule.state();
  const auto put = [&](const char* key, std::string value) { all[std::string(kOwn) + which + key] = std::move(value); };
  put("schedule_steps", std::to_string(state.steps));
  put("schedule_base", exact(schedule.base()));
  if (state.bases.size() > 1) put("schedule_bases", list_of(state.bases));
  if (!state.memory.empty()) put("schedule_memory", list_of(state.memory));
}

/// The states of all parts under the names that files have for them.
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
  for (std::size_t i = 0; i < schedules.size(); ++i) put_schedule(all, *schedules[i], nth(i));
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
  std::vector<nn::ScheduleState> standing;
  for (std::size_t i = 0; i < parts.schedules.size(); ++i) {
    standing.push_back(schedule_state(file, metadata, nth(i)));
    const std::string fault = parts.schedules[i]->fault_of(standing.back());
    if (!fault.empty())
      refuse(file, std::string(kOwn) + nth(i) + "schedule_base", "does not fit the schedule: " + fault);
  }
  const std::string prefix = std::string(kOwn) + "numbers.";
  for (const auto& [key, text] : metadata) {
    if (key.starts_with(prefix)) checkpoint.numbers[key.substr(prefix.size())] = numbers_in(file, key, text);
    if (!key.starts_with(kOwn) && !key.starts_with("alias:") && key != "checksum") checkpoint.metadata[key] = text;
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
  io::load(parts.model, file, {.states = states_of(parts), .module_states = true, .check = check});
  // A schedule that is restored sets its rate; that of the file counts, which something else may have set later.
  std::vector<std::pair<State, Tensor>> rates;
  for (const nn::Optimizer* o : parts.optimizers)
    for (std::size_t g = 0; g < o->groups(); ++g)
      rates.emplace_back(o->learning_rate_variable(g), o->learning_rate_variable(g).peek());
  for (std::size_t i = 0; i < standing.size(); ++i) parts.schedules[i]->restore(standing[i]);
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
