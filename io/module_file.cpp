/// Loads files into modules and collects a module's contents for saving: matches the names of a file with the variables
/// of a module, and reports everything that does not fit.
#include "ferrite/io/module_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ferrite/io/any_file.h"
#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/suggest.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

constexpr std::string_view kStatePrefix = "optimizer.";
constexpr std::string_view kModuleStatePrefix = "state.";
constexpr std::string_view kAliasPrefix = "alias:";

/// A variable and the place of its value in a file.
struct Slot {
  std::string name;  ///< name in the file
  Variable variable;
  bool transposed = false;

  /// Returns whether it counts the steps of parameters; before 0.1.0 there was one number, f64, for a group.
  bool counts_steps() const;
  /// Returns the shape in the file.
  Shape file_shape() const;
};

/// Returns whether a file holds a tensor in exactly this dtype, so that nothing is converted.
bool held_as(const TensorInfo& info, Dtype dtype);

std::vector<Slot> slots_of(const nn::Module& module, const std::string& prefix,
                           const std::vector<nn::Named<State>>& states, bool module_states, std::string_view where);

/// Returns all variables of a module that the options (for saving or loading) ask for, then the states. Throws IoError
/// when two of them claim one name in the file.
template <class Options>
std::vector<Slot> slots_of(const nn::Module& module, const Options& options, std::string_view where) {
  return slots_of(module, options.prefix, options.states, options.module_states, where);
}

/// Returns a transposed matrix, row-major.
Tensor transposed(const Tensor& matrix);

/// The assignment of a file's tensors to variables, and everything that does not fit.
class Match {
 public:
  struct Pair {
    const Slot* slot;
    std::string_view source;  ///< name in the file
  };

  /// Matches a file with slots, which must outlive the match, and compares those settings of the module that it has.
  Match(const std::vector<Slot>& slots, const std::vector<nn::Setting>& settings, const TensorFile& file,
        const LoadOptions& options);

  /// Returns one pair for every variable that gets a value.
  const std::vector<Pair>& pairs() const { return pairs_; }
  const LoadReport& report() const { return report_; }
  /// Throws the IoError that lists all problems, if there are any.
  void check() const;

 private:
  std::optional<std::string_view> source_of(const std::string& name) const;
  void read_names();
  void match(const Slot& slot);
  void check_setting(const nn::Setting& setting);
  void find_missing(const std::vector<Slot>& slots);
  void find_unexpected();
  void check_fit(const Slot& slot, std::string_view source);
  void check_equal(const Slot& slot, std::string_view first, std::string_view second);
  bool concerns_us(std::string_view name) const;
  bool lacks_all_states() const;
  std::string prefix_advice() const;
  std::vector<std::string> name_problems(bool hints) const;

  const TensorFile& file_;
  const LoadOptions& options_;
  std::vector<std::string_view> names_;
  std::unordered_set<std::string_view> known_;
  Metadata metadata_;
  std::unordered_set<std::string_view> used_;
  std::unordered_map<const void*, std::string_view> first_source_;  // name in the file, by variable
  std::vector<Pair> pairs_;
  std::vector<std::string> problems_;
  std::vector<Shape> missing_shapes_;  // shapes of the names in report_.missing
  LoadReport report_;
};

// ---- matching names ------------------------------------------------------------------------------------

constexpr std::size_t kMostListed = 100;  // a hostile file may have a million names
constexpr double kSameSetting = 1e-6;     // relative; some programs write 1e-3 as f32

std::string shape_text(const Shape& shape) { return bracketed({shape.begin(), shape.end()}); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (!(a.spec() == b.spec())) return false;
  const auto bytes = static_cast<std::size_t>(a.numel() * size_of(a.dtype()));
  const Tensor left = contiguous(a);
  const Tensor right = contiguous(b);
  return bytes == 0 || std::memcmp(left.raw(), right.raw(), bytes) == 0;
}

/// Returns whether a tensor can be loaded as a dtype: U8 always becomes i32, floats are converted if `convert` says so.
bool dtype_fits(const TensorInfo& info, Dtype wanted, bool convert) {
  if (is_storage_only(wanted)) return info.stored_as == wanted;
  if (!info.loads_as) return false;
  if (*info.loads_as == wanted && !is_float(wanted)) return true;
  if (!is_float(*info.loads_as) || !is_float(wanted)) return false;
  return convert || held_as(info, wanted);
}

std::vector<std::string_view> views(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

/// Returns how elements are read for a variable: as they are stored, if its dtype is a storage type.
Elements elements_for(Dtype dtype) { return is_storage_only(dtype) ? Elements::as_stored : Elements::for_computing; }

bool held_as(const TensorInfo& info, Dtype dtype) {
  const auto elements = elements_of(info.shape);
  return info.stored_as == dtype && elements && info.bytes == *elements * static_cast<std::uint64_t>(size_of(dtype));
}

Shape Slot::file_shape() const {
  Shape shape = variable.shape();
  if (transposed) std::swap(shape[-1], shape[-2]);
  return shape;
}

/// Names are "step", "mu_product.1", "1.step": the number of the optimiser, unless it is the only one, the name, the
/// number of the group.
bool Slot::counts_steps() const {
  std::string_view rest = name;
  if (variable.kind() != VariableKind::state || !rest.starts_with(kStatePrefix)) return false;
  rest.remove_prefix(kStatePrefix.size());
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (const std::size_t dot = rest.find('.'); dot != std::string_view::npos && digits(rest.substr(0, dot)))
    rest.remove_prefix(dot + 1);
  if (const std::size_t dot = rest.find('.'); dot != std::string_view::npos && digits(rest.substr(dot + 1)))
    rest = rest.substr(0, dot);
  return (rest == "step" || rest == "mu_product") && variable.shape().rank() == 1;
}

/// Returns whether a file holds one number where the variable has one for each parameter, because it was written by a
/// version that counted steps for a group.
bool is_count_of_group(const Slot& slot, const TensorInfo& info) {
  return info.shape.empty() && info.loads_as == Dtype::f64 && slot.counts_steps();
}

Tensor transposed(const Tensor& matrix) { return contiguous(transpose(matrix.unmarked(), -2, -1)); }

std::vector<Slot> slots_of(const nn::Module& module, const std::string& prefix,
                           const std::vector<nn::Named<State>>& states, bool module_states, std::string_view where) {
  std::vector<Slot> slots;
  for (const auto& [name, variable] : module.named_parameters()) {
    const bool turns = variable.layout() == FileLayout::transposed && variable.shape().rank() >= 2;
    slots.push_back({prefix + name, variable, turns});
  }
  for (const auto& [name, variable] : module.named_buffers()) slots.push_back({prefix + name, variable, false});
  for (const auto& [name, variable] : states) slots.push_back({std::string(kStatePrefix) + name, variable, false});
  if (module_states)
    for (const auto& [name, variable] : module.named_states())
      slots.push_back({std::string(kModuleStatePrefix) + name, variable, false});
  std::unordered_set<std::string_view> seen;
  for (const Slot& slot : slots)
    if (!seen.insert(slot.name).second) refuse(where, "two variables claim one name: " + quote(slot.name));
  return slots;
}

Match::Match(const std::vector<Slot>& slots, const std::vector<nn::Setting>& settings, const TensorFile& file,
             const LoadOptions& options)
    : file_(file), options_(options) {
  read_names();
  for (const Slot& slot : slots) match(slot);
  for (const nn::Setting& setting : settings) check_setting(setting);
  find_missing(slots);
  find_unexpected();
}

void Match::read_names() {
  names_ = file_.names();
  known_.insert(names_.begin(), names_.end());
  metadata_ = file_.metadata();
}

/// Returns the name itself if the file has it, or the name of which the file says that it is an alias.
std::optional<std::string_view> Match::source_of(const std::string& name) const {
  const auto direct = known_.find(name);
  if (direct != known_.end()) return *direct;
  const auto alias = metadata_.find(std::string(kAliasPrefix) + name);
  if (alias == metadata_.end()) return std::nullopt;
  const auto target = known_.find(alias->second);
  if (target == known_.end()) return std::nullopt;
  return *target;
}

void Match::match(const Slot& slot) {
  const std::optional<std::string_view> source = source_of(slot.name);
  if (!source) return;
  used_.insert(*source);
  const auto [first, fresh] = first_source_.emplace(slot.variable.identity(), *source);
  if (!fresh && first->second != *source) check_equal(slot, first->second, *source);
  if (!fresh) return;
  check_fit(slot, *source);
  pairs_.push_back({&slot, *source});
}

void Match::check_fit(const Slot& slot, std::string_view source) {
  const TensorInfo info = file_.info(source);
  if (is_count_of_group(slot, info)) return;
  const Shape wanted = slot.file_shape();
  const Dtype dtype = slot.variable.dtype();
  if (!std::ranges::equal(info.shape, wanted))
    problems_.push_back(quote(source) + " has shape " + bracketed(info.shape) + ", the model needs " +
                        shape_text(wanted));
  if (!dtype_fits(info, dtype, options_.convert))
    problems_.push_back(quote(source) + " has dtype " + std::string(info.dtype) + ", the model needs " +
                        std::string(name_of(dtype)));
}

/// Reports a problem unless two entries of the file for one variable of the module are equal.
void Match::check_equal(const Slot& slot, std::string_view first, std::string_view second) {
  const TensorInfo a = file_.info(first);
  const TensorInfo b = file_.info(second);
  const bool comparable = a.shape == b.shape && a.dtype == b.dtype && a.loads_as.has_value();
  if (comparable && same_bytes(file_.tensor(first, Elements::as_stored), file_.tensor(second, Elements::as_stored)))
    return;
  problems_.push_back(quote(first) + " and " + quote(second) + " differ, in the model they are one " +
                      (slot.variable.kind() == VariableKind::parameter ? "parameter" : "cell"));
}

/// Compares a number that the model was built with and that the file may have as a tensor of one float.
void Match::check_setting(const nn::Setting& setting) {
  const auto at = known_.find(options_.prefix + setting.name);
  if (at == known_.end()) return;
  used_.insert(*at);
  const TensorInfo info = file_.info(*at);
  if (!info.shape.empty() || !info.loads_as || !is_float(*info.loads_as)) {
    problems_.push_back(quote(*at) + " is a number of the model, the file has " + std::string(info.dtype) + " " +
                        bracketed(info.shape));
    return;
  }
  const double in_file = cast(file_.tensor(*at), Dtype::f64).item<double>();
  if (std::abs(in_file - setting.value) <= kSameSetting * std::abs(setting.value)) return;
  std::string text = quote(*at) + " is ";
  append_number(text, in_file);
  append_number(text += " in the file, ", setting.value);
  problems_.push_back(text + " in the model: build the layer with the file's");
}

void Match::find_missing(const std::vector<Slot>& slots) {
  const bool no_states = lacks_all_states();
  if (no_states) problems_.push_back("there is no optimiser state: no name begins with 'optimizer.'");
  for (const Slot& slot : slots) {
    if (first_source_.contains(slot.variable.identity())) continue;
    if (no_states && slot.variable.kind() == VariableKind::state) continue;
    report_.missing.push_back(slot.name);
    missing_shapes_.push_back(slot.file_shape());
  }
}

bool Match::lacks_all_states() const {
  const auto is_state = [](std::string_view name) { return name.starts_with(kStatePrefix); };
  return !options_.states.empty() && std::ranges::none_of(names_, is_state);
}

/// Returns whether this load has to handle a name of the file.
bool Match::concerns_us(std::string_view name) const {
  if (name.starts_with(kStatePrefix)) return !options_.states.empty();
  if (name.starts_with(kModuleStatePrefix) && !options_.module_states) return false;
  return name.starts_with(options_.prefix);
}

void Match::find_unexpected() {
  for (const std::string_view name : names_)
    if (!used_.contains(name) && concerns_us(name)) report_.unexpected.emplace_back(name);
}

/// Returns advice where all names differ by a prefix; else it is empty.
std::string Match::prefix_advice() const {
  const std::vector<std::string_view> missing = views(report_.missing);
  const std::vector<std::string_view> all_unexpected = views(report_.unexpected);
  if (const auto prefix = common_prefix(missing, names_))
    return "; names in the file begin with " + quote(*prefix) + ": did you mean to load with the prefix " +
           quote(*prefix + options_.prefix) + "?";
  if (const auto prefix = common_prefix(all_unexpected, missing))
    return "; names in the model begin with " + quote(*prefix) + ", those in the file do not: load that part of it";
  return "";
}

/// Returns the lines about names that only one side has.
std::vector<std::string> Match::name_problems(bool hints) const {
  std::vector<std::string> lines;
  const std::vector<std::string_view> candidates = views(report_.unexpected);
  for (std::size_t i = 0; i < report_.missing.size() && i < kMostListed; ++i) {
    const std::string& name = report_.missing[i];
    const std::string_view near = hints ? nearest(name, candidates) : std::string_view();
    lines.push_back(quote(name) + " " + shape_text(missing_shapes_[i]) + " is missing from the file" +
                    (near.empty() ? "" : "; is it " + quote(near) + "?"));
  }
  for (std::size_t i = 0; i < report_.unexpected.size() && i < kMostListed; ++i) {
    const std::string& name = report_.unexpected[i];
    lines.push_back(quote(name) + " " + bracketed(file_.info(name).shape) + " is not in the model");
  }
  return lines;
}

void Match::check() const {
  const std::size_t of_names = options_.strict ? report_.missing.size() + report_.unexpected.size() : 0;
  const std::size_t total = problems_.size() + of_names;
  if (total == 0) return;
  const std::string advice = of_names > 0 ? prefix_advice() : "";
  std::vector<std::string> lines = problems_;
  if (lines.size() > kMostListed) lines.resize(kMostListed);
  if (of_names > 0) std::ranges::move(name_problems(advice.empty()), std::back_inserter(lines));
  if (total == 1) refuse(file_.where(), lines.front() + advice);
  std::string text = "does not fit the model: " + counted(total, "problem");
  for (const std::string& line : lines) text += "\n  " + line;
  if (lines.size() < total) text += "\n  and " + std::to_string(total - lines.size()) + " more";
  refuse(file_.where(), text + (advice.empty() ? "" : "\n" + advice.substr(2)));
}

}  // namespace

}  // namespace ferrite::io::detail

// ---- loading and saving --------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

using detail::Match;
using detail::Slot;
using ferrite::detail::log_debug;
using ferrite::detail::log_info;

/// Returns the step count of a group as that of each of its parameters.
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

/// Returns the value of a variable, made from its tensor in the file.
Tensor value_of(const Match::Pair& pair, const TensorFile& file) {
  if (detail::is_count_of_group(*pair.slot, file.info(pair.source))) return count_of(pair, file);
  Tensor value = file.tensor(pair.source, detail::elements_for(pair.slot->variable.dtype()));
  if (pair.slot->transposed) value = detail::transposed(value);
  return detail::converted(contiguous(value), pair.slot->variable.dtype(), pair.source, file.where());
}

/// Returns whether the file holds the value in another dtype than the variable.
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
