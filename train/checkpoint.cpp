/// Training checkpoints: writing, and checking everything before anything is replaced.
#include "ferrite/train/checkpoint.h"

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

/// Where the schedule of a checkpoint stands.
nn::ScheduleState schedule_state(const io::TensorFile& file, const io::Metadata& metadata) {
  nn::ScheduleState state{.steps = number<std::int64_t>(file, metadata, "schedule_steps"),
                          .bases = {number<double>(file, metadata, "schedule_base")}};
  const auto list = [&](const char* key, std::vector<double>& values) {
    const auto found = metadata.find(std::string(kOwn) + key);
    if (found != metadata.end()) values = numbers_in(file, found->first, found->second);
  };
  list("schedule_bases", state.bases);
  list("schedule_memory", state.memory);
  return state;
}

std::vector<nn::Named<State>> states_of(const nn::Optimizer& optimizer, const nn::WeightAverage* average) {
  std::vector<nn::Named<State>> all = optimizer.states();
  if (average) all.insert(all.end(), average->states().begin(), average->states().end());
  return all;
}

void check_sum(const io::TensorFile& file, const io::Metadata& metadata) {
  const auto at = metadata.find("checksum");
  if (at == metadata.end()) throw IoError(file.where() + ": is not a checkpoint: it has no checksum");
  const std::string found = io::checksum(file);
  if (at->second != found)
    throw IoError(file.where() + ": is damaged: its checksum is " + found + ", it was saved with " + at->second);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                     const Position& position, const nn::Schedule* schedule, const io::Metadata& metadata,
                     const nn::WeightAverage* average) {
  if (average && average->swapped())
    throw ValueError("save_checkpoint: the averages are exchanged with the parameters; swap them back first");
  io::Metadata all = metadata;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kOwn) || key == "checksum")
      throw IoError("save_checkpoint: the metadata key '" + key + "' is taken");
  const auto put = [&](const char* key, std::string value) { all[std::string(kOwn) + key] = std::move(value); };
  put("epoch", std::to_string(position.epoch));
  put("batch", std::to_string(position.batch));
  put("step", std::to_string(position.step));
  put("seed", std::to_string(position.seed));
  if (schedule) put("schedule_steps", std::to_string(schedule->steps()));
  if (schedule) put("schedule_base", exact(schedule->base()));
  if (schedule && schedule->state().bases.size() > 1) put("schedule_bases", list_of(schedule->state().bases));
  if (schedule && !schedule->state().memory.empty()) put("schedule_memory", list_of(schedule->state().memory));
  io::ModuleContents what =
      io::contents(model, {.states = states_of(optimizer, average), .module_states = true, .metadata = std::move(all)});
  what.metadata["checksum"] = io::checksum(what.tensors, what.metadata);
  io::write_safetensors(path, what.tensors, what.metadata);
}

Position load_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                         nn::Schedule* schedule, const nn::WeightAverage* average) {
  if (average && average->swapped())
    throw ValueError("load_checkpoint: the averages are exchanged with the parameters; swap them back first");
  const io::TensorFile file = io::read_safetensors(path);
  const io::Metadata metadata = file.metadata();
  check_sum(file, metadata);
  const Position position{.epoch = number<std::int64_t>(file, metadata, "epoch"),
                          .batch = number<std::int64_t>(file, metadata, "batch"),
                          .step = number<std::int64_t>(file, metadata, "step"),
                          .seed = number<std::uint64_t>(file, metadata, "seed")};
  const nn::ScheduleState standing = schedule ? schedule_state(file, metadata) : nn::ScheduleState{};
  const std::string fault = schedule ? schedule->fault_of(standing) : std::string();
  if (!fault.empty()) refuse(file, std::string(kOwn) + "schedule_base", "does not fit the schedule: " + fault);
  const auto check = [&](std::string_view name, const Tensor& value) {
    constexpr std::string_view prefix = "optimizer.";
    if (!name.starts_with(prefix)) return;
    const std::string wrong = optimizer.fault_of(name.substr(prefix.size()), value);
    if (!wrong.empty()) refuse(file, name, wrong);
  };
  io::load(model, file, {.states = states_of(optimizer, average), .module_states = true, .check = check});
  if (schedule) schedule->restore(standing);
  return position;
}

}  // namespace ferrite::train
