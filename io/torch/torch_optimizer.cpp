/// Reads and writes states of optimisers as PyTorch's load_state_dict takes them. Everything is checked before anything
/// is assigned.
#include "ferrite/io/torch_optimizer.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch.h"
#include "ferrite/io/torch/torch_writer.h"
#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io {
namespace detail {
namespace {

/// The form that the state of one parameter in one slot has in a file.
struct TorchSlot {
  std::string name;         ///< name in PyTorch, "exp_avg"
  bool transposed = false;  ///< whether it is the transpose of the variable
};

/// Returns PyTorch's name of a slot for a parameter.
inline TorchSlot torch_slot(const nn::Optimizer& optimizer, const nn::StateSlot& slot, const Parameter& parameter) {
  TorchSlot found{slot.name, slot.share == nn::StateShare::own && parameter.layout() == FileLayout::transposed};
  if (optimizer.torch_name() == "SGD" && slot.name == "momentum") found.name = "momentum_buffer";
  // Ferrite's rows are PyTorch's columns where the weight is transposed.
  if (found.transposed && slot.name == "row_var") found.name = "col_var";
  if (found.transposed && slot.name == "col_var") found.name = "row_var";
  return found;
}

/// Returns whether PyTorch lacks a state: in SGD, the presence of a momentum shows that there was an update.
inline bool only_ours(const nn::Optimizer& optimizer, const nn::StateSlot& slot) {
  return optimizer.torch_name() == "SGD" && slot.name == "step";
}

/// Throws ValueError for an optimiser that PyTorch does not have.
void check_torch_has(const nn::Optimizer& optimizer, std::string_view who);

// ---- reading -------------------------------------------------------------------------------------------

/// Returns the number that a text holds in Python's notation; nothing for None and any other text.
std::optional<double> number_in(std::string_view text) {
  if (text == "True") return 1;
  if (text == "False") return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the items of a list in Python's notation, "[0, 1]" or "(None, 0.001)".
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  if (text.size() < 2) return items;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    items.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 2, text.size()));  // ", "
  }
  return items;
}

std::string spelled(const nn::OptionValue& value) {
  const auto number = [](const std::optional<double>& v) { return v ? Scalar(*v).str() : std::string("None"); };
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const double* v = std::get_if<double>(&value)) return number(*v);
  const auto* several = std::get_if<std::vector<std::optional<double>>>(&value);
  if (!several) return "None";
  std::string text;
  for (const auto& v : *several) text += (text.empty() ? "(" : ", ") + number(v);
  return text + ")";
}

/// Returns whether a file has the same value for an option.
bool agrees(const nn::OptionValue& value, std::string_view text) {
  if (const bool* flag = std::get_if<bool>(&value)) return number_in(text) == (*flag ? 1.0 : 0.0);
  if (const double* v = std::get_if<double>(&value)) return number_in(text) == *v;
  const auto* several = std::get_if<std::vector<std::optional<double>>>(&value);
  if (!several) return text == "None";
  const std::vector<std::string_view> items = items_of(text);
  if (items.size() != several->size()) return false;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (number_in(items[i]) != (*several)[i]) return false;
  return true;
}

/// Returns whether an option, which a file does not have, is off.
bool off(const nn::OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return !*flag;
  const double* v = std::get_if<double>(&value);
  return v && *v == 0;
}

class OptimizerReader {
 public:
  OptimizerReader(nn::Optimizer& optimizer, const TensorFile& file)
      : optimizer_(optimizer), file_(file), metadata_(file.metadata()) {
    for (const std::string_view name : file.names())
      if (name.starts_with("state.")) owners_.insert(std::string(name.substr(0, name.rfind('.'))));
  }

  void run() {
    check_torch_has(optimizer_, "load_torch_optimizer");
    for (std::size_t group = 0; group < optimizer_.groups(); ++group) read_group(group);
    if (plain("param_groups." + std::to_string(optimizer_.groups()) + ".params"))
      fail("it has more groups of parameters than the optimiser, which has " + std::to_string(optimizer_.groups()));
    for (const std::string_view name : file_.names())
      if (name.starts_with("state.") && !used_.contains(name))
        fail(quote(name) + " is not a state of the optimiser, " + optimizer_.torch_name());
    for (const auto& [variable, value] : values_) variable.assign(value);
    for (const auto& [group, momentum] : momenta_) optimizer_.set_momentum(momentum, group);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { refuse(file_.where(), what); }

  const std::string* plain(const std::string& name) const {
    const auto found = metadata_.find(name);
    return found == metadata_.end() ? nullptr : &found->second;
  }

  void read_group(std::size_t group) {
    const std::string at = "param_groups." + std::to_string(group) + ".";
    const std::string* params = plain(at + "params");
    if (!params)
      fail("it has no " + quote(at + "params") + ": it is no state of an optimiser of " +
           std::to_string(optimizer_.groups()) + " groups; a part of a checkpoint is named by its key");
    const std::vector<std::string_view> ids = items_of(*params);
    const auto [first, count] = optimizer_.group_range(group);
    if (ids.size() != count)
      fail("group " + std::to_string(group) + " has " + std::to_string(ids.size()) + " parameters, the optimiser's " +
           std::to_string(count));
    for (const std::string_view id : ids)
      if (!ids_.insert(std::string(id)).second) fail("parameter " + quote(id) + " is in its groups twice");
    read_rate(group, at);
    for (const nn::NamedOption& option : optimizer_.options(group)) check_option(group, at, option);
    for (const nn::StateSlot& slot : optimizer_.slots())
      if (slot.group == group) read_slot(slot, ids, first);
    for (const std::string_view id : ids) used_.insert("state." + std::string(id) + ".step");  // where no slot reads it
  }

  void read_rate(std::size_t group, const std::string& at) {
    const std::optional<double> rate = number_at(at + "lr");
    if (!rate) fail("it has no number " + quote(at + "lr"));
    if (!(*rate >= 0) || !std::isfinite(*rate))
      fail(quote(at + "lr") + " must be at least 0 and finite, is " + Scalar(*rate).str());
    values_.emplace_back(optimizer_.learning_rate_variable(group), full({}, *rate, Dtype::f64));
  }

  void check_option(std::size_t group, const std::string& at, const nn::NamedOption& option) {
    const std::string* text = plain(at + option.name);
    if (!text && off(option.value)) return;
    if (text && agrees(option.value, *text)) return;
    if (text && take_momentum(group, option, *text)) return;
    fail(quote(at + option.name) + " is " + (text ? *text : std::string("missing")) + ", the optimiser's is " +
         spelled(option.value) + "; make it with the options of the file");
  }

  /// Takes a momentum that a schedule changes from the file instead of comparing it, as its value depends on the step.
  bool take_momentum(std::size_t group, const nn::NamedOption& option, std::string_view text) {
    if (!optimizer_.cycles(group)) return false;
    const auto* betas = std::get_if<std::vector<std::optional<double>>>(&option.value);
    if (option.name != "momentum" && !(option.name == "betas" && betas)) return false;
    const std::vector<std::string_view> items = betas ? items_of(text) : std::vector{text};
    if (items.empty() || (betas && (items.size() != 2 || number_in(items[1]) != (*betas)[1]))) return false;
    const std::optional<double> momentum = number_in(items[0]);
    if (!momentum || !(*momentum >= 0 && *momentum < 1)) return false;
    momenta_.emplace_back(group, *momentum);
    return true;
  }

  void read_slot(const nn::StateSlot& slot, const std::vector<std::string_view>& ids, std::size_t first) {
    if (only_ours(optimizer_, slot)) return read_begun(slot, ids);
    if (slot.share == nn::StateShare::element) return read_elements(slot, ids);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!slot.states[k].defined()) continue;
      const Parameter& p = optimizer_.parameters()[first + k];
      const TorchSlot as = torch_slot(optimizer_, slot, p);
      read_state(slot, slot.states[k], "state." + std::string(ids[k]) + "." + as.name, as.transposed);
    }
  }

  /// Reads SGD's count with dampening, which says whether there was a first update.
  void read_begun(const nn::StateSlot& slot, const std::vector<std::string_view>& ids) {
    std::vector<double> begun;
    for (const std::string_view id : ids)
      begun.push_back(file_.contains("state." + std::string(id) + ".momentum_buffer") ? 1 : 0);
    put_elements(slot, begun);
  }

  /// Reads counts, of which every parameter has its own in the file; one that was never updated may have none.
  void read_elements(const nn::StateSlot& slot, const std::vector<std::string_view>& ids) {
    std::vector<double> values;
    for (const std::string_view id : ids) {
      const std::string name = "state." + std::string(id) + "." + slot.name;
      values.push_back(number_at(name).value_or(slot.initial));
      const std::string fault = optimizer_.fault_of(slot.name, full({}, values.back(), Dtype::f64));
      if (!fault.empty()) fail(quote(name) + " " + fault);
      if (!std::isfinite(values.back())) fail(quote(name) + " is not finite");
    }
    put_elements(slot, values);
  }

  void put_elements(const nn::StateSlot& slot, const std::vector<double>& values) {
    values_.emplace_back(
        slot.states[0], cast(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), slot.states[0].dtype()));
  }

  void read_state(const nn::StateSlot& slot, const State& state, const std::string& name, bool transposed) {
    const Spec wanted = state.spec();
    if (!file_.contains(name)) {
      // PyTorch makes states at the first update, so a parameter without update has none.
      if (owners_.contains(name.substr(0, name.rfind('.')))) fail(quote(name) + " is missing");
      values_.emplace_back(state, full(wanted.shape, slot.initial, wanted.dtype));
      return;
    }
    used_.insert(name);
    const TensorInfo info = file_.info(name);
    if (!info.loads_as || !is_float(*info.loads_as)) fail(quote(name) + " is " + info.dtype + ", no floats");
    const Shape shape = transposed ? Shape{wanted.shape[1], wanted.shape[0]} : wanted.shape;
    if (Shape(info.shape) != shape)
      fail(quote(name) + " has shape " + Shape(info.shape).str() + ", the optimiser needs " + shape.str());
    const Tensor value = file_.tensor(name);
    values_.emplace_back(state, contiguous(cast(transposed ? transpose(value) : value, wanted.dtype)));
  }

  /// Returns a number, stored as such or as a tensor of one element.
  std::optional<double> number_at(const std::string& name) {
    if (const std::string* text = plain(name)) {
      const std::optional<double> value = number_in(*text);
      if (!value) fail(quote(name) + " is no number: " + quote(*text));
      return value;
    }
    if (!file_.contains(name)) return std::nullopt;
    used_.insert(name);
    const TensorInfo info = file_.info(name);
    std::uint64_t elements = 1;
    for (const std::int64_t extent : info.shape) elements *= extent == 1 ? 1 : 0;
    if (elements != 1 || !info.loads_as || *info.loads_as == Dtype::boolean)
      fail(quote(name) + " is not a tensor with one element");
    return cast(reshape(file_.tensor(name), {}), Dtype::f64).item<double>();
  }

  nn::Optimizer& optimizer_;
  const TensorFile& file_;
  Metadata metadata_;
  std::set<std::string, std::less<>> ids_, used_, owners_;  ///< owners: parameters that have a state, "state.0"
  std::vector<std::pair<State, Tensor>> values_;
  std::vector<std::pair<std::size_t, double>> momenta_;
};

}  // namespace

}  // namespace detail

void load_torch_optimizer(nn::Optimizer& optimizer, const TensorFile& file) {
  detail::OptimizerReader(optimizer, file).run();
}

void load_torch_optimizer(nn::Optimizer& optimizer, const std::filesystem::path& path, std::string_view key) {
  load_torch_optimizer(optimizer, read_torch(path, key));
}

// ---- writing -------------------------------------------------------------------------------------------

namespace detail {
namespace {

void check_torch_has(const nn::Optimizer& optimizer, std::string_view who) {
  if (optimizer.torch_name().empty())
    throw ValueError(std::string(who) + ": PyTorch has no such optimiser; train::save_checkpoint saves any");
}

/// A state of a parameter, as the number of its tensor.
struct Held {
  std::size_t parameter;
  std::string name;
  std::size_t tensor;  ///< position among the tensors
};

struct Collected {
  std::vector<Held> held;  ///< states in ascending order of parameters
  std::vector<NamedTensor> tensors;
};

double element(const State& state, std::size_t place) {
  return cast(select(state.peek(), 0, static_cast<std::int64_t>(place)), Dtype::f64).item<double>();
}

/// Returns whether a parameter has states: PyTorch makes them at the first update, except Adagrad. The count, if there
/// is one, shows whether there was an update.
bool begun(const nn::Optimizer& optimizer, std::size_t group, std::size_t place) {
  if (optimizer.torch_name() == "Adagrad") return true;
  for (const nn::StateSlot& slot : optimizer.slots())
    if (slot.group == group && slot.share == nn::StateShare::element && slot.name == "step")
      return element(slot.states[0], place) > 0;
  return true;
}

class Collector {
 public:
  explicit Collector(const nn::Optimizer& optimizer) : optimizer_(optimizer) {}

  Collected run() {
    for (std::size_t group = 0; group < optimizer_.groups(); ++group) {
      const auto [first, count] = optimizer_.group_range(group);
      for (std::size_t k = 0; k < count; ++k)
        if (begun(optimizer_, group, k)) add_parameter(group, first + k, k);
    }
    return std::move(out_);
  }

 private:
  void add_parameter(std::size_t group, std::size_t i, std::size_t place) {
    const Parameter& p = optimizer_.parameters()[i];
    bool has_step = false;
    for (const nn::StateSlot& slot : optimizer_.slots()) {
      if (slot.group != group || only_ours(optimizer_, slot)) continue;
      const bool own = slot.share == nn::StateShare::own;
      const State& state = slot.states[own ? place : 0];
      if (!state.defined()) continue;
      const TorchSlot as = torch_slot(optimizer_, slot, p);
      has_step |= as.name == "step";
      // PyTorch overwrites states, so each parameter has its own.
      add(i, as, own ? state.peek() : full({}, element(state, place), Dtype::f64));
    }
    if (!has_step && optimizer_.torch_name() == "RMSprop") add(i, {"step", false}, zeros({}));  // nothing reads it
  }

  void add(std::size_t i, const TorchSlot& as, const Tensor& value) {
    Tensor t = as.transposed ? contiguous(transpose(value)) : value;
    if (as.name == "step") t = cast(t, Dtype::f32);
    out_.held.push_back({i, as.name, out_.tensors.size()});
    out_.tensors.push_back({std::to_string(i) + "." + as.name, t});
  }

  const nn::Optimizer& optimizer_;
  Collected out_;
};

void write_value(PickleWriter& pickle, const nn::OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return pickle.boolean(*flag);
  if (const double* number = std::get_if<double>(&value)) return pickle.real(*number);
  const auto* several = std::get_if<std::vector<std::optional<double>>>(&value);
  if (!several) return pickle.none();
  pickle.mark();
  for (const std::optional<double>& v : *several) {
    if (v) {
      pickle.real(*v);
    } else {
      pickle.none();
    }
  }
  pickle.tuple();
}

void write_group(PickleWriter& pickle, const nn::Optimizer& optimizer, std::size_t group) {
  pickle.dictionary();
  pickle.mark();
  pickle.text("lr");
  pickle.real(optimizer.learning_rate(group));
  for (const nn::NamedOption& option : optimizer.options(group)) {
    pickle.text(option.name);
    write_value(pickle, option.value);
  }
  for (const char* const none : {"foreach", "fused"}) pickle.text(none), pickle.none();
  for (const char* const off : {"capturable", "differentiable"}) pickle.text(off), pickle.boolean(false);
  pickle.text("params");
  pickle.list();
  pickle.mark();
  const auto [first, count] = optimizer.group_range(group);
  for (std::size_t i = first; i < first + count; ++i) pickle.integer(static_cast<std::int64_t>(i));
  pickle.append_items();
  pickle.set_items();
}

/// Writes the pickle of {"state": {0: {"step": ..., "exp_avg": ...}, ...}, "param_groups": [{"lr": ..., "params":
/// [0, ...]}, ...]}.
std::string optimizer_pickle(const nn::Optimizer& optimizer, const Collected& collected, const Storages& storages) {
  PickleWriter pickle(storages);
  pickle.dictionary();
  pickle.mark();
  pickle.text("state");
  pickle.dictionary();
  pickle.mark();
  for (std::size_t k = 0; k < collected.held.size(); ++k) {
    const Held& h = collected.held[k];
    const bool first = k == 0 || collected.held[k - 1].parameter != h.parameter;
    const bool last = k + 1 == collected.held.size() || collected.held[k + 1].parameter != h.parameter;
    if (first) {
      pickle.integer(static_cast<std::int64_t>(h.parameter));
      pickle.dictionary();
      pickle.mark();
    }
    pickle.text(h.name);
    pickle.tensor(storages.windows()[h.tensor]);
    if (last) pickle.set_items();
  }
  pickle.set_items();
  pickle.text("param_groups");
  pickle.list();
  pickle.mark();
  for (std::size_t group = 0; group < optimizer.groups(); ++group) write_group(pickle, optimizer, group);
  pickle.append_items();
  pickle.set_items();
  return pickle.finish();
}

std::vector<std::byte> optimizer_archive(const nn::Optimizer& optimizer, std::string_view where) {
  check_torch_has(optimizer, where);
  const Collected collected = Collector(optimizer).run();
  const Storages storages(collected.tensors, where);
  return torch_archive(optimizer_pickle(optimizer, collected, storages), storages, where);
}

}  // namespace

}  // namespace detail

std::vector<std::byte> serialize_torch_optimizer(const nn::Optimizer& optimizer) {
  return detail::optimizer_archive(optimizer, "serialize_torch_optimizer");
}

void write_torch_optimizer(const std::filesystem::path& path, const nn::Optimizer& optimizer) {
  write_atomically(path, detail::optimizer_archive(optimizer, detail::shown(path)));
}

}  // namespace ferrite::io
