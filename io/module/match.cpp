/// Matches the names of a file with the variables of a module, and reports everything that does not fit.
#include "ferrite/io/module/match.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/suggest.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kMostListed = 100;  // of a hostile file's million names
constexpr double kSameSetting = 1e-6;     // programs write 1e-3 as an f32, too

std::string shape_text(const Shape& shape) { return bracketed({shape.begin(), shape.end()}); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (!(a.spec() == b.spec())) return false;
  const auto bytes = static_cast<std::size_t>(a.numel() * size_of(a.dtype()));
  const Tensor left = contiguous(a);
  const Tensor right = contiguous(b);
  return bytes == 0 || std::memcmp(left.raw(), right.raw(), bytes) == 0;
}

/// U8 always becomes i32; between floats it is the caller's choice.
bool dtype_fits(const TensorInfo& info, Dtype wanted, bool convert) {
  if (is_storage_only(wanted)) return info.stored_as == wanted;
  if (!info.loads_as) return false;
  if (*info.loads_as == wanted && !is_float(wanted)) return true;
  if (!is_float(*info.loads_as) || !is_float(wanted)) return false;
  return convert || held_as(info, wanted);
}

std::vector<std::string_view> views(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

}  // namespace

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

/// "step", "mu_product.1", "1.step": an optimiser's number, if it is not the only one, the name, the group's number.
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

/// The name itself, or the one for which the file says that it is an alias.
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

/// Two entries of the file for one variable of the module: harmless only if they say the same.
void Match::check_equal(const Slot& slot, std::string_view first, std::string_view second) {
  const TensorInfo a = file_.info(first);
  const TensorInfo b = file_.info(second);
  const bool comparable = a.shape == b.shape && a.dtype == b.dtype && a.loads_as.has_value();
  if (comparable && same_bytes(file_.tensor(first, Elements::as_stored), file_.tensor(second, Elements::as_stored)))
    return;
  problems_.push_back(quote(first) + " and " + quote(second) + " differ, in the model they are one " +
                      (slot.variable.kind() == VariableKind::parameter ? "parameter" : "cell"));
}

/// A number that the model was built with and the file may have, as a tensor of one float.
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
  if (no_states) problems_.push_back("there is no state of an optimiser: no name begins with 'optimizer.'");
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

/// Whether a name of the file is any business of this load.
bool Match::concerns_us(std::string_view name) const {
  if (name.starts_with(kStatePrefix)) return !options_.states.empty();
  if (name.starts_with(kModuleStatePrefix) && !options_.module_states) return false;
  return name.starts_with(options_.prefix);
}

void Match::find_unexpected() {
  for (const std::string_view name : names_)
    if (!used_.contains(name) && concerns_us(name)) report_.unexpected.emplace_back(name);
}

/// What to do when whole names differ by a prefix; else empty.
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

/// The lines about names that only one side has.
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

}  // namespace ferrite::io::detail
