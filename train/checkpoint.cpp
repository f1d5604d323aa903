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

void check_sum(const io::TensorFile& file, const io::Metadata& metadata) {
  const auto at = metadata.find("checksum");
  if (at == metadata.end()) throw IoError(file.where() + ": is not a checkpoint: it has no checksum");
  const std::string found = io::checksum(file);
  if (at->second != found)
    throw IoError(file.where() + ": is damaged: its checksum is " + found + ", it was saved with " + at->second);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                     const Position& position, const nn::Schedule* schedule, const io::Metadata& metadata) {
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
  io::ModuleContents what =
      io::contents(model, {.states = optimizer.states(), .module_states = true, .metadata = std::move(all)});
  what.metadata["checksum"] = io::checksum(what.tensors, what.metadata);
  io::write_safetensors(path, what.tensors, what.metadata);
}

Position load_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                         nn::Schedule* schedule) {
  const io::TensorFile file = io::read_safetensors(path);
  const io::Metadata metadata = file.metadata();
  check_sum(file, metadata);
  const Position position{.epoch = number<std::int64_t>(file, metadata, "epoch"),
                          .batch = number<std::int64_t>(file, metadata, "batch"),
                          .step = number<std::int64_t>(file, metadata, "step"),
                          .seed = number<std::uint64_t>(file, metadata, "seed")};
  const auto steps = schedule ? number<std::int64_t>(file, metadata, "schedule_steps") : 0;
  const auto base = schedule ? number<double>(file, metadata, "schedule_base") : 0.0;
  const auto rate = schedule ? schedule->rate_at(steps, base) : 0.0;
  if (!(rate >= 0) || !std::isfinite(rate))
    refuse(file, std::string(kOwn) + "schedule_base", "gives the schedule a learning rate of " + std::to_string(rate));
  const auto check = [&](std::string_view name, const Tensor& value) {
    constexpr std::string_view prefix = "optimizer.";
    if (!name.starts_with(prefix)) return;
    const std::string wrong = optimizer.fault_of(name.substr(prefix.size()), value);
    if (!wrong.empty()) refuse(file, name, wrong);
  };
  io::load(model, file, {.states = optimizer.states(), .module_states = true, .check = check});
  if (schedule) schedule->restore(steps, base);
  return position;
}

}  // namespace ferrite::train
