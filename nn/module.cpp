/// Modules: registration, adoption, names, modes, and clones.
#include "ferrite/nn/module.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ferrite/nn/detail/layer_calls.h"

namespace ferrite::nn {
namespace {

/// Returns the hash of a name among the variables of one kind.
template <class C>
std::size_t hash_of(const std::string& name) {
  return std::hash<std::string>()(name) * 3 + (std::is_same_v<C, Parameter> ? 0 : std::is_same_v<C, Buffer> ? 1 : 2);
}

/// Ties the variables of `to` whose counterparts in `from` are tied.
template <class C>
void copy_ties(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  std::unordered_map<const void*, std::size_t> first;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    const auto [at, fresh] = first.try_emplace(from[i].variable.identity(), i);
    if (!fresh) to[i].variable.tie(to[at->second].variable);
  }
}

/// Renames a variable, and draws it if `by` has a seed.
void settle(const Variable& variable, const std::string& name, const Init& by) {
  if (by.seed) {
    variable.draw(by.full_name(name), *by.seed);
  } else {
    variable.rename(by.full_name(name));
  }
}

}  // namespace

template <class C>
void Module::check_free(const std::vector<Named<C>>& own, const char* where, const std::string& name) const {
  if (!names_.contains(hash_of<C>(name))) return;
  for (const Named<C>& c : own)
    if (c.name == name) throw ValueError(std::string(where) + ": the name '" + name + "' is taken");
}

/// Adds a variable to a list and returns the handle that the module keeps.
template <class C>
C Module::registered(std::vector<Named<C>>& list, std::string_view name, C variable) {
  check_open(name);
  list.push_back({std::string(name), variable});
  names_.insert(hash_of<C>(list.back().name));
  variable.mark_registered();
  return variable;
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> list;
  std::unordered_set<const void*> seen;
  for (const Named<Parameter>& p : named_parameters())
    if (seen.insert(p.variable.identity()).second) list.push_back(p.variable);
  return list;
}

std::vector<Parameter> Module::parameters(std::string_view part) const {
  std::vector<Parameter> list;
  std::unordered_set<const void*> seen;
  for (const Named<Parameter>& p : named_parameters()) {
    const std::string_view name = p.name;
    if (name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.') && !part.empty() &&
        seen.insert(p.variable.identity()).second)
      list.push_back(p.variable);
  }
  if (list.empty())
    throw ValueError("parameters: none belongs to '" + std::string(part) + "'" +
                     (named_parameters().empty() ? "; the module has no parameters"
                                                 : "; the first one is '" + named_parameters().front().name + "'"));
  return list;
}

std::int64_t Module::parameter_count() const {
  std::int64_t n = 0;
  for (const Parameter& p : parameters()) n += p.numel();
  return n;
}

void Module::train(bool on) const {
  for (const Mode& m : whole().modes_) m->store(on, std::memory_order_relaxed);
}

std::vector<bool> Module::modes() const {
  std::vector<bool> modes;
  for (const Mode& m : whole().modes_) modes.push_back(m->load(std::memory_order_relaxed));
  return modes;
}

void Module::set_modes(const std::vector<bool>& modes) const {
  const std::vector<Mode>& all = whole().modes_;
  if (modes.size() != all.size())
    throw ValueError("set_modes: " + std::to_string(modes.size()) + " modes for " + std::to_string(all.size()) +
                     " modules");
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->store(modes[i], std::memory_order_relaxed);
}

void Module::draw(const Init& init) const {
  if (!init.seed) throw ValueError("draw: the init has no seed");
  for (const auto& p : named_parameters()) settle(p.variable, p.name, init);
  for (const auto& b : named_buffers()) settle(b.variable, b.name, init);
  for (const auto& s : named_states()) settle(s.variable, s.name, init);
}

Parameter Module::parameter(std::string_view name, const Shape& shape, const Fill& fill, const Init& init,
                            FileLayout layout) {
  check_free(parameters_, "module", std::string(name));
  if (init.seed)
    return registered(parameters_, name,
                      Parameter(init.full_name(name), fill(shape, init.key(name), init.dtype), layout));
  const auto draw = [=, dtype = init.dtype](std::string_view full_name, std::uint64_t seed) {
    return fill(shape, {seed, stream_of(full_name), 0}, dtype);
  };
  const Parameter p(init.full_name(name), {shape, init.dtype}, draw, layout);
  if (!fill.random()) p.assign(fill(shape, {}, init.dtype));
  if (init_.seed) p.draw(init_.full_name(name), *init_.seed);
  return registered(parameters_, name, p);
}

Parameter Module::parameter(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init,
                            FileLayout layout) {
  check_free(parameters_, "module", std::string(name));
  const Parameter p(init.full_name(name), spec, std::move(draw), layout);
  if (const Init& by = init.seed ? init : init_; by.seed) p.draw(by.full_name(name), *by.seed);
  return registered(parameters_, name, p);
}

Parameter Module::parameter(std::string_view name, const Parameter& left_out) {
  check_free(parameters_, "module", std::string(name));
  settle(left_out, std::string(name), init_);
  return registered(parameters_, name, left_out);
}

Buffer Module::buffer(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init) {
  check_free(buffers_, "module", std::string(name));
  const Buffer b(init.full_name(name), spec, std::move(draw));
  if (const Init& by = init.seed ? init : init_; by.seed) b.draw(by.full_name(name), *by.seed);
  return registered(buffers_, name, b);
}

Buffer Module::buffer(std::string_view name, Tensor value) {
  check_free(buffers_, "module", std::string(name));
  return registered(buffers_, name, Buffer(std::string(name), std::move(value)));
}

State Module::state(std::string_view name, Tensor value) {
  check_free(states_, "module", std::string(name));
  return registered(states_, name, State(std::string(name), std::move(value)));
}

State Module::state(std::string_view name, const Spec& spec, Variable::Draw draw, const Init& init) {
  check_free(states_, "module", std::string(name));
  const State s(init.full_name(name), spec, std::move(draw));
  const Init& by = init.seed ? init : init_;
  if (by.seed) s.draw(by.full_name(name), *by.seed);
  return registered(states_, name, s);
}

void Module::carries(std::string_view name, std::int64_t layers, std::int64_t width, Dtype dtype) {
  check_open(name);
  carried_.push_back({std::string(name), mode_, layers, width, dtype});
}

void Module::setting(std::string_view name, double value) {
  check_open(name);
  settings_.push_back({std::string(name), value});
}

Module::Adoption& Module::Adoption::operator=(Adoption&& o) {
  if (done && !o.done)
    throw ValueError(
        "module: was adopted by another module, which would keep using the old variables; assign first and then "
        "adopt, or copy the values (copy_values)");
  done = o.done;
  return *this;
}

void Module::check_open(std::string_view name) const {
  if (adoption_.done)
    throw ValueError("module: '" + std::string(name) +
                     "' comes too late: another module has adopted this one, and would neither train nor save it; "
                     "register all there is first");
}

void Module::throw_moved_from() { throw Error("module: was moved from, it has no variables"); }

void Module::adopt(std::string_view name, const Module& child, std::string_view left_out) {
  const std::string prefix = name.empty() ? std::string() : std::string(name) + ".";
  (void)whole();
  (void)child.whole();
  check_open(name);
  if (&child == this) throw ValueError("adopt: a module cannot adopt itself, as '" + std::string(name) + "'");
  const auto is_left_out = [&](const auto& c) {
    return std::same_as<std::remove_cvref_t<decltype(c.variable)>, Parameter> && !left_out.empty() &&
           c.name == left_out;
  };
  const auto check = [&](const auto& own, const auto& more) {
    for (const auto& c : more)
      if (!is_left_out(c)) check_free(own, "adopt", prefix + c.name);
  };
  const auto add = [&](auto& own, const auto& more) {
    for (const auto& c : more) {
      if (is_left_out(c)) continue;
      own.push_back({prefix + c.name, c.variable});
      names_.insert(hash_of<std::remove_cvref_t<decltype(c.variable)>>(own.back().name));
    }
  };
  check(parameters_, child.parameters_), check(buffers_, child.buffers_), check(states_, child.states_);
  for (const auto& p : child.parameters_)
    if (!is_left_out(p)) settle(p.variable, prefix + p.name, init_);
  for (const auto& b : child.buffers_) settle(b.variable, prefix + b.name, init_);
  for (const auto& s : child.states_) settle(s.variable, prefix + s.name, init_);
  add(parameters_, child.parameters_), add(buffers_, child.buffers_), add(states_, child.states_);
  for (const CarriedState& s : child.carried_) {
    carried_.push_back(s);
    carried_.back().name = prefix + s.name;
  }
  for (const Setting& s : child.settings_) settings_.push_back({prefix + s.name, s.value});
  modes_.insert(modes_.end(), child.modes_.begin(), child.modes_.end());
  child.adoption_.done = true;
  if (child.place_->in) return;
  child.place_->name = name;
  child.place_->in = place_;
}

std::string Module::path() const {
  std::string path;
  for (const Place* p = whole().place_.get(); p->in; p = p->in.get())
    if (!p->name.empty()) path = path.empty() ? p->name : p->name + "." + path;
  return path;
}

void Module::take_path(const Module& from) const {
  whole().place_->name = from.whole().place_->name;
  place_->in = from.place_->in;
}

Scope Module::scope() const { return Scope::of(path()).or_else(ferrite::detail::frame().scope); }

void Module::name_in(Error& e) const noexcept {
  try {
    if (place_) e.set_layer(path());
  } catch (const std::bad_alloc&) {  // the error does not name its layer
  }
}

void Module::take_after(const Module& from) const {
  copy_ties(from.parameters_, parameters_);
  copy_ties(from.buffers_, buffers_);
  copy_ties(from.states_, states_);
  const std::size_t n = std::min(modes_.size(), from.modes_.size());
  for (std::size_t i = 0; i < n; ++i) modes_[i]->store(from.modes_[i]->load(std::memory_order_relaxed));
}

namespace {

/// Throws unless the variables of two modules have the same names and types.
template <class C>
void check_alike(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  if (from.size() != to.size())
    throw Error("copy_values: the modules hold " + std::to_string(from.size()) + " and " + std::to_string(to.size()) +
                " variables of a kind");
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].name != to[i].name)
      throw Error("copy_values: names differ: '" + from[i].name + "' and '" + to[i].name + "'");
    const Spec a{from[i].variable.shape(), from[i].variable.dtype()}, b{to[i].variable.shape(), to[i].variable.dtype()};
    if (!from[i].variable.drawn() && to[i].variable.drawn())
      throw Error("copy_values: '" + from[i].name + "' has no value to copy yet");
    if (a != b) throw Error("copy_values: '" + from[i].name + "' is " + a.str() + " and " + b.str());
  }
}

/// Copies the values of variables; a program that is being traced copies them, too.
template <class C>
void copy_variables(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].variable.drawn()) to[i].variable.assign(from[i].variable.value());
}

}  // namespace

void Layer::check_takes_state() const {
  if (takes_state()) return;
  throw ValueError(kind() +
                   ": the context has an initial state, which only a recurrent layer takes; call that layer's run, or "
                   "let a carry bring the states of a chain");
}

Tensor Layer::forward_checked(const Tensor& x, const Context& context) const {
  Context own = context;
  const detail::LengthsCall call(*this, x, own);
  return forward(x, own);
}

Tensor Layer::forward_seen(const Tensor& x, const Context& context) const {
  detail::CallObserver& observer = *detail::call_observer();
  observer.begins(*this, x, context);
  Tensor y;
  try {
    y = context.lengths.defined() && !reads_lengths() ? forward_checked(x, context) : forward(x, context);
  } catch (...) {
    observer.fails();
    throw;
  }
  return observer.gives(y);
}

FERRITE_PER_THREAD constinit ferrite::detail::PerThread<bool> detail::in_single_step(false);
FERRITE_PER_THREAD constinit ferrite::detail::PerThread<detail::CallObserver*> detail::call_observer(nullptr);

bool Layer::looks_back(const Tensor& x) const {
  return !carried_states().empty() || !states({x.shape()[0], x.rank() > 2 ? x.shape()[-1] : 1, x.dtype()}).empty();
}

void Layer::check_carries(const Tensor& x, const Context& context) const {
  const bool carried = !carried_states().empty();
  if (only_chains() || (carried && context.carry) || context.state.defined() || x.rank() < 1) return;
  const bool one_step = x.rank() == 1 || x.shape()[1] == 1;
  if (!context.carry && !one_step) return;  // a sequence along another axis than time
  if (!looks_back(x)) return;
  throw ValueError(
      context.carry
          ? kind() +
                ": has states that are not in the carry, so every call would begin from zeros; register them "
                "with Module::carries, and let forward begin from those of the carry"
          : kind() +
                ": has states, but the layer that contains it has none, so every step of the stream would begin "
                "from zeros; " +
                (carried ? "pass the context on to it" : "override states and step there, and call advance"));
}

StepInput Layer::step_input() const {
  return {0, named_parameters().empty() ? Dtype::f32 : named_parameters()[0].variable.dtype()};
}

void copy_values(const Module& from, const Module& to) {
  const NoTapes frame;
  check_alike(from.named_parameters(), to.named_parameters());
  check_alike(from.named_buffers(), to.named_buffers());
  check_alike(from.named_states(), to.named_states());
  copy_variables(from.named_parameters(), to.named_parameters());
  copy_variables(from.named_buffers(), to.named_buffers());
  copy_variables(from.named_states(), to.named_states());
}

}  // namespace ferrite::nn
