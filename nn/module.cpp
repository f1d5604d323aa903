#include "ferrite/nn/module.h"

#include <algorithm>
#include <unordered_set>

namespace ferrite::nn {
namespace {

template <class C>
void check_names(const std::vector<Named<C>>& own, const std::string& prefix, const std::vector<Named<C>>& more) {
  std::unordered_set<std::string> taken;
  for (const Named<C>& c : own) taken.insert(c.name);
  for (const Named<C>& c : more)
    if (!taken.insert(prefix + c.name).second) throw ValueError("adopt: the name '" + prefix + c.name + "' is taken");
}

}  // namespace

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> list;
  std::unordered_set<const void*> seen;
  for (const Named<Parameter>& p : parameters_)
    if (seen.insert(p.cell.identity()).second) list.push_back(p.cell);
  return list;
}

std::int64_t Module::parameter_count() const {
  std::int64_t n = 0;
  for (const Parameter& p : parameters()) n += p.numel();
  return n;
}

void Module::train(bool on) const {
  for (const Mode& m : modes_) m->store(on, std::memory_order_relaxed);
}

Parameter Module::parameter(std::string_view name, const Shape& shape, const Fill& fill, const Init& init,
                            FileLayout layout) {
  Parameter p(init.full_name(name), fill(shape, init.key(name), init.dtype), layout);
  parameters_.push_back({std::string(name), p});
  return p;
}

Buffer Module::buffer(std::string_view name, Tensor value) {
  Buffer b(std::string(name), std::move(value));
  buffers_.push_back({std::string(name), b});
  return b;
}

State Module::state(std::string_view name, Tensor value) {
  State s(std::string(name), std::move(value));
  states_.push_back({std::string(name), s});
  return s;
}

void Module::carries(std::string_view name, std::int64_t layers, std::int64_t width, Dtype dtype) {
  carried_.push_back({std::string(name), mode_, layers, width, dtype});
}

void Module::adopt(std::string_view name, const Module& child) {
  const std::string prefix = name.empty() ? std::string() : std::string(name) + ".";
  check_names(parameters_, prefix, child.parameters_);
  check_names(buffers_, prefix, child.buffers_);
  check_names(states_, prefix, child.states_);
  for (const auto& p : child.parameters_) parameters_.push_back({prefix + p.name, p.cell});
  for (const auto& b : child.buffers_) buffers_.push_back({prefix + b.name, b.cell});
  for (const auto& s : child.states_) states_.push_back({prefix + s.name, s.cell});
  for (const CarriedState& s : child.carried_) {
    carried_.push_back(s);
    carried_.back().name = prefix + s.name;
  }
  modes_.insert(modes_.end(), child.modes_.begin(), child.modes_.end());
}

void Module::copy_modes(const Module& from) const {
  const std::size_t n = std::min(modes_.size(), from.modes_.size());
  for (std::size_t i = 0; i < n; ++i) modes_[i]->store(from.modes_[i]->load(std::memory_order_relaxed));
}

namespace {

/// Where a program is traced, the copying is part of it.
template <class C>
void copy_cells(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  if (from.size() != to.size())
    throw Error("copy_values: the modules hold " + std::to_string(from.size()) + " and " + std::to_string(to.size()) +
                " cells of a kind");
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].name != to[i].name)
      throw Error("copy_values: names differ: '" + from[i].name + "' and '" + to[i].name + "'");
    to[i].cell.assign(from[i].cell.value());
  }
}

}  // namespace

StepInput Layer::step_input() const {
  return {0, named_parameters().empty() ? Dtype::f32 : named_parameters()[0].cell.dtype()};
}

void copy_values(const Module& from, const Module& to) {
  const NoTapes frame;
  copy_cells(from.named_parameters(), to.named_parameters());
  copy_cells(from.named_buffers(), to.named_buffers());
  copy_cells(from.named_states(), to.named_states());
}

}  // namespace ferrite::nn
