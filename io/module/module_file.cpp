/// Loads files into modules and collects a module's contents for saving.
#include "ferrite/io/module_file.h"

#include <cmath>
#include <utility>

#include "ferrite/io/any_file.h"
#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/module/match.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

using detail::Match;
using detail::Slot;
using ferrite::detail::log_debug;
using ferrite::detail::log_info;

/// The number of a group as that of each of its parameters.
Tensor count_of(const Match::Pair& pair, const TensorFile& file) {
  const Variable& variable = pair.slot->variable;
  const Tensor one = file.tensor(pair.source);
  const double value = one.item<double>();
  constexpr double kMost = 0x1p53;
  if (variable.dtype() == Dtype::i64 && !(value >= 0 && value <= kMost && value == std::floor(value)))
    detail::refuse(file.where(),
                   detail::quote(pair.source) + " must be a whole number of at least 0, is " + Scalar(value).str());
  return cast(contiguous(expand(reshape(one, {1}), variable.shape())), variable.dtype());
}

/// The value of a variable, made of its tensor in the file.
Tensor value_of(const Match::Pair& pair, const TensorFile& file) {
  if (detail::is_count_of_group(*pair.slot, file.info(pair.source))) return count_of(pair, file);
  Tensor value = file.tensor(pair.source, detail::elements_for(pair.slot->variable.dtype()));
  if (pair.slot->transposed) value = detail::transposed(value);
  return detail::converted(contiguous(value), pair.slot->variable.dtype(), pair.source, file.where());
}

/// Whether the file holds the value in another dtype than the variable.
bool converts(const Match::Pair& pair, const TensorFile& file) {
  const Dtype dtype = pair.slot->variable.dtype();
  return !detail::held_as(file.info(pair.source), dtype);
}

void log_pair(const Match::Pair& pair, const TensorFile& file) {
  std::string line = file.where() + ": loaded " + detail::quote(pair.slot->name);
  if (pair.source != pair.slot->name) line += " from its alias " + detail::quote(pair.source);
  if (pair.slot->transposed) line += ", transposed";
  if (converts(pair, file))
    line += ", converted from " + std::string(file.info(pair.source).dtype) + " to " +
            std::string(name_of(pair.slot->variable.dtype()));
  log_debug(line);
}

void log_loaded(const Match& match, const TensorFile& file) {
  if (!ferrite::detail::log_enabled(LogLevel::info)) return;
  std::size_t transposed = 0;
  std::size_t converted = 0;
  for (const Match::Pair& pair : match.pairs()) {
    transposed += pair.slot->transposed ? 1u : 0u;
    converted += converts(pair, file) ? 1u : 0u;
    log_pair(pair, file);
  }
  log_info(file.where() + ": loaded " + detail::counted(match.pairs().size(), "tensor") + ", " +
           std::to_string(transposed) + " transposed, " + std::to_string(converted) + " converted, " +
           std::to_string(match.report().missing.size()) + " missing, " +
           std::to_string(match.report().unexpected.size()) + " not used");
}

}  // namespace

LoadReport load(const nn::Module& module, const TensorFile& file, const LoadOptions& options) {
  const std::vector<Slot> slots = detail::slots_of(module, options, file.where());
  const Match match(slots, module.settings(), file, options);
  match.check();
  std::vector<Tensor> values;
  for (const Match::Pair& pair : match.pairs()) values.push_back(value_of(pair, file));
  for (std::size_t i = 0; i < values.size() && options.check; ++i) options.check(match.pairs()[i].source, values[i]);
  for (std::size_t i = 0; i < values.size(); ++i) match.pairs()[i].slot->variable.assign(values[i]);
  log_loaded(match, file);
  return match.report();
}

LoadReport load(const nn::Module& module, const std::filesystem::path& path, const LoadOptions& options) {
  return load(module, read_tensors(path, options.read), options);
}

ModuleContents contents(const nn::Module& module, const SaveOptions& options) {
  constexpr std::string_view where = "save";
  ModuleContents out{{}, options.metadata};
  for (const auto& [key, value] : options.metadata)
    if (key.starts_with(detail::kAliasPrefix))
      detail::refuse(where, "metadata keys that begin with 'alias:' are taken: " + detail::quote(key));
  std::unordered_map<const void*, std::string> written;
  for (const Slot& slot : detail::slots_of(module, options, where)) {
    const auto [first, fresh] = written.emplace(slot.variable.identity(), slot.name);
    if (!fresh && !options.every_name) {
      out.metadata[std::string(detail::kAliasPrefix) + slot.name] = first->second;
      continue;
    }
    const Tensor& value = slot.variable.peek();
    out.tensors.push_back({slot.name, slot.transposed ? detail::transposed(value) : value});
  }
  return out;
}

void save(const nn::Module& module, const std::filesystem::path& path, const SaveOptions& options) {
  const ModuleContents what = contents(module, options);
  write_safetensors(path, what.tensors, what.metadata);
  log_info(detail::shown(path) + ": saved " + detail::counted(what.tensors.size(), "tensor"));
}

}  // namespace ferrite::io
