/// Writes states of optimisers as PyTorch's load_state_dict takes them.
#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch/optimizer_names.h"
#include "ferrite/io/torch/pickle_writer.h"
#include "ferrite/io/torch_optimizer.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace detail {

void check_torch_has(const nn::Optimizer& optimizer, std::string_view who) {
  if (optimizer.torch_name().empty())
    throw ValueError(std::string(who) + ": PyTorch has no such optimiser; train::save_checkpoint saves any");
}

namespace {

/// A state of a parameter, by number.
struct Held {
  std::size_t parameter;
  std::string name;
  std::size_t tensor;  ///< its place among the tensors
};

struct Collected {
  std::vector<Held> held;  ///< ascending by parameter
  std::vector<NamedTensor> tensors;
};

double element(const State& state, std::size_t place) {
  return cast(select(state.peek(), 0, static_cast<std::int64_t>(place)), Dtype::f64).item<double>();
}

/// PyTorch has no states before the first update of a parameter, except Adagrad; what tells is the count, if there is
/// one.
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
      // PyTorch writes over states: each parameter has its own.
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

/// {"state": {0: {"step": ..., "exp_avg": ...}, ...}, "param_groups": [{"lr": ..., "params": [0, ...]}, ...]}
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
