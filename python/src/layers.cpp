// Modules and layers in Python, and layers that are written in Python.
#include "layers.h"

#include <nanobind/stl/unique_ptr.h>
#include <nanobind/trampoline.h>

#include <atomic>

#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/layers/transformer.h"
#include "ferrite/nn/recurrent/recurrent.h"
#include "ferrite/nn/recurrent/sequence_layer.h"
#include "module.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

std::atomic<std::uint64_t> first_seed{0}, layers_made{0};

/// A layer that is written in Python: its class derives from `ferrite.nn.Module` and has a `forward`.
class PythonLayer final : public nn::Layer {
 public:
  NB_TRAMPOLINE(nn::Layer, 2);

  PythonLayer() = default;
  std::string kind() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(nb_trampoline.base().type().attr("__name__"));
  }
  Tensor forward(const Tensor& x, const nn::Context& context) const override {
    const nb::gil_scoped_acquire lock;
    nb::dict given;
    if (context.lengths.defined()) given["lengths"] = context.lengths;
    if (context.reset_mask.defined()) given["reset_mask"] = context.reset_mask;
    if (context.state.defined()) given["state"] = context.state;
    if (context.cell.defined()) given["cell"] = context.cell;
    const nb::object y = nb_trampoline.base().attr("forward")(x, **given);
    Tensor out;
    if (!nb::try_cast(y, out) || !out.defined())
      throw ValueError(kind() + ": forward returned a " + nb::cast<std::string>(y.type().attr("__name__")) +
                       " where one tensor is needed");
    return out;
  }
  bool takes_state() const override { return true; }
  bool reads_lengths() const override { return true; }
  std::unique_ptr<nn::Layer> clone() const override {
    const nb::gil_scoped_acquire lock;
    return owned(nb_trampoline.base().attr("_another")());
  }
  using Module::adopt, Module::buffer, Module::parameter;
};

/// A layer that Python owns, in the hands of C++: it runs that layer, whose variables it has under the same names.
class Shared final : public nn::Layer {
 public:
  explicit Shared(nb::object object) : object_(std::move(object)), layer_(made<nn::Layer>(object_)) {
    adopt("", *layer_);
  }
  ~Shared() override {
    const nb::gil_scoped_acquire lock;
    object_.reset();
  }
  std::string kind() const override { return layer_->kind(); }
  std::string summary() const override { return layer_->summary(); }
  Tensor forward(const Tensor& x, const nn::Context& context) const override { return layer_->forward(x, context); }
  bool takes_state() const override { return layer_->takes_state(); }
  bool reads_lengths() const override { return layer_->reads_lengths(); }
  std::unique_ptr<nn::Layer> clone() const override { return layer_->clone(); }

 private:
  nb::object object_;
  nn::Layer* layer_;
};

/// Makes the variables of `from` those of `to`, which has the same names.
void tie_all(const nn::Module& from, const nn::Module& to) {
  const auto tie = [](const auto& a, const auto& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a[i].variable == b[i].variable)) a[i].variable.tie(b[i].variable);
  };
  tie(from.named_parameters(), to.named_parameters());
  tie(from.named_buffers(), to.named_buffers());
  tie(from.named_states(), to.named_states());
}

template <class List>
nb::dict dict_of(const List& named) {
  nb::dict all;
  for (const auto& n : named) all[n.name.c_str()] = n.variable;
  return all;
}

nn::Context context_of(const Tensor& lengths, const Tensor& reset_mask, const Tensor& state, const Tensor& cell,
                       const nn::Carry* carry) {
  return {.lengths = lengths, .reset_mask = reset_mask, .state = state, .cell = cell, .carry = carry};
}

nb::object result_of(const nn::RecurrentResult& r) {
  if (r.cell.defined())
    return named_tuple("RecurrentResult", {"output", "state", "cell"},
                       {nb::cast(r.output), nb::cast(r.state), nb::cast(r.cell)});
  return named_tuple("RecurrentResult", {"output", "state", "cell"},
                     {nb::cast(r.output), nb::cast(r.state), nb::none()});
}

/// Returns the variable of a module by its full name.
nb::object variable_of(const nn::Module& m, std::string_view name) {
  for (const auto& p : m.named_parameters())
    if (p.name == name) return nb::cast(p.variable);
  for (const auto& b : m.named_buffers())
    if (b.name == name) return nb::cast(b.variable);
  throw nb::attribute_error(("no attribute or variable " + std::string(name)).c_str());
}

void define_module(nb::module_& m) {
  nb::class_<nn::Module> c(m, "_Module", nb::is_weak_referenceable(), nb::dynamic_attr(),
                           "An object with named parameters, buffers, states and submodules.");
  c.def(
      "parameters", [](const nn::Module& s) { return s.parameters(); }, "Returns every parameter once.");
  c.def(
      "parameters", [](const nn::Module& s, std::string_view part) { return s.parameters(part); }, "part"_a,
      "Returns the parameters of one part, those whose names begin with it.");
  c.def(
      "named_parameters", [](const nn::Module& s) { return dict_of(s.named_parameters()); },
      "Returns the parameters by their dotted names.");
  c.def(
      "named_buffers", [](const nn::Module& s) { return dict_of(s.named_buffers()); },
      "Returns the buffers by their dotted names.");
  c.def(
      "named_states", [](const nn::Module& s) { return dict_of(s.named_states()); },
      "Returns the states, such as the counters of dropout, by their dotted names.");
  c.def_prop_ro(
      "parameter_count", [](const nn::Module& s) { return s.parameter_count(); },
      "The number of elements of all parameters.");
  c.def(
      "train",
      [](nb::object self, bool on) {
        made<nn::Module>(self)->train(on);
        return self;
      },
      "mode"_a = true, "Switches training mode on or off, here and in all parts, and returns the module.");
  c.def(
      "eval",
      [](nb::object self) {
        made<nn::Module>(self)->eval();
        return self;
      },
      "Switches training mode off and returns the module.");
  c.def_prop_ro(
      "training", [](const nn::Module& s) { return s.training(); }, "Whether the module is in training mode.");
  c.def("__getattr__", variable_of, "name"_a, "Returns a parameter or buffer by its name.");
  c.def("_copy_values", [](const nn::Module& to, const nn::Module& from) { nn::copy_values(from, to); });
  c.def("_modes", [](const nn::Module& s) {
    const std::vector<bool> modes = s.modes();
    return std::vector<int>(modes.begin(), modes.end());
  });
  c.def("_set_modes", [](const nn::Module& s, const std::vector<int>& modes) {
    s.set_modes(std::vector<bool>(modes.begin(), modes.end()));
  });
  c.def("__copy__", [](nb::handle self) { return self.attr("_another")(); });
  c.def(
      "__deepcopy__", [](nb::handle self, nb::handle) { return self.attr("_another")(); }, "memo"_a);
}

void define_layer(nb::module_& m) {
  nb::class_<nn::Carry>(
      m, "Carry",
      "The states that layers read before and assign after each call, for training on pieces of long sequences.")
      .def(nb::init<const nn::Module&, std::int64_t>(), "module"_a, "batch"_a)
      .def(
          "reset", [](const nn::Carry& c) { c.reset(); }, "Sets all states to zeros.")
      .def(
          "reset", [](const nn::Carry& c, std::int64_t row) { c.reset(row); }, "row"_a,
          "Sets the states of one row to zeros.")
      .def("save", &nn::Carry::save, "Returns the states, layer by layer.")
      .def(
          "restore", [](const nn::Carry& c, const std::vector<Tensor>& s) { c.restore(s); }, "states"_a,
          "Restores states that `save` returned.");
  nb::class_<nn::Layer, nn::Module, PythonLayer> c(m, "_Layer", "A module that maps one tensor to one tensor.");
  c.def(nb::init<>());
  c.def(
      "__call__",
      [](const nn::Layer& l, const Tensor& x, const Tensor& lengths, const Tensor& reset_mask, const Tensor& state,
         const Tensor& cell,
         const nn::Carry* carry) { return l(x, context_of(lengths, reset_mask, state, cell, carry)); },
      "x"_a, nb::kw_only(), "lengths"_a.none() = nb::none(), "reset_mask"_a.none() = nb::none(),
      "state"_a.none() = nb::none(), "cell"_a.none() = nb::none(), "carry"_a.none() = nb::none(), Call(),
      "Returns the output for x. Layers over sequences take also the lengths i64 [B] of a padded batch, a bool mask "
      "[B, T]\n"
      "of steps before which states start over, first states, and a carry that holds states from call to call.");
  c.def("_adopt", [](nn::Layer& l, std::string_view name, const nn::Module& child) {
    auto* own = dynamic_cast<PythonLayer*>(&l);
    if (!own) throw nb::type_error("only layers that are written in Python take parts as attributes");
    own->adopt(name, child);
  });
  c.def("_register", [](nn::Layer& l, std::string_view name, const Variable& v) {
    auto* own = dynamic_cast<PythonLayer*>(&l);
    if (!own) throw nb::type_error("only layers that are written in Python take variables as attributes");
    if (v.kind() == VariableKind::parameter) {
      const auto& p = static_cast<const Parameter&>(v);
      const Parameter named(std::string(name), p.peek(), p.layout());
      const Parameter held = own->parameter(name, named);
      p.tie(held);  // every handle to it has the name now
      return nb::cast(held);
    }
    Buffer b = own->buffer(name, v.peek());
    v.tie(b);
    return nb::cast(b);
  });
  c.def_prop_ro(
      "kind", [](const nn::Layer& l) { return l.kind(); }, "The kind of the layer, such as \"gru\".");
  c.def_prop_ro(
      "causal", [](const nn::Layer& l) { return l.causal(); },
      "Whether a step's output depends on that step and those before it alone.");
  c.def(
      "lengths_after", [](const nn::Layer& l, const Tensor& n) { return l.lengths_after(n); }, "lengths"_a,
      "Returns the lengths i64 [B] of the output for lengths of the input.");
  c.def(
      "copy", [](nb::handle self) { return self.attr("_another")(); }, "Returns an independent copy.");
  c.def("_another", [](const nn::Layer& l) { return l.clone(); });
  c.def("__repr__", [](const nn::Layer& l) { return l.summary(); });
}

/// Adds layers that Python owns to a chain or to branches.
template <class Chain>
void add_to(Chain& chain, std::string name, nb::handle layer) {
  chain.add(std::move(name), owned(layer));
}

template <class C, class Class>
void define_container(Class& c) {
  c.def(
      "__init__",
      [](C* self, nb::args layers, std::optional<std::uint64_t> seed) {
        new (self) C(nn::Init{.seed = seed, .prefix = {}});
        std::int64_t i = 0;
        for (nb::handle l : layers) {
          if (PyDict_Check(l.ptr()))
            for (auto [name, layer] : nb::borrow<nb::dict>(l)) add_to(*self, nb::cast<std::string>(name), layer);
          else
            add_to(*self, std::to_string(i), l);
          ++i;
        }
      },
      "layers"_a, nb::kw_only(), "seed"_a.none() = nb::none(),
      "Makes the layers one; they are named \"0\", \"1\", ... or by the keys of a dict.");
  c.def(
      "add",
      [](nb::object self, std::string name, nb::handle layer) {
        add_to(*made<C>(self), std::move(name), layer);
        return self;
      },
      "name"_a, "layer"_a, "Adds a layer under a name and returns the container.");
  c.def("__len__", [](const C& s) { return s.size(); });
  c.def(
      "__getitem__",
      [](const C& s, std::int64_t i) -> const nn::Layer& {
        const auto n = static_cast<std::int64_t>(s.size());
        if (i < -n || i >= n) throw nb::index_error("no layer of that number");
        return s[static_cast<std::size_t>(i < 0 ? i + n : i)];
      },
      "index"_a, nb::rv_policy::reference_internal);
  if constexpr (std::derived_from<C, nn::Sequential>)
    c.def(
        "__getitem__", [](const C& s, std::string_view name) -> const nn::Layer& { return s.layer(name); }, "name"_a,
        nb::rv_policy::reference_internal);
}

}  // namespace

nn::Init init_of(std::optional<std::uint64_t> seed, Dtype dtype) {
  const std::uint64_t next = first_seed + 0x9e3779b97f4a7c15U * ++layers_made;
  return {.seed = seed ? *seed : next, .prefix = {}, .dtype = dtype};
}
void set_seed(std::uint64_t seed) {
  first_seed = seed;
  layers_made = 0;
}

std::unique_ptr<nn::Layer> owned(nb::handle object) {
  if (!nb::isinstance<nn::Layer>(object))
    throw nb::type_error(("a layer is needed, not a " + nb::cast<std::string>(object.type().attr("__name__"))).c_str());
  auto* layer = made<nn::Layer>(object);
  if (dynamic_cast<PythonLayer*>(layer)) return std::make_unique<Shared>(nb::borrow(object));
  std::unique_ptr<nn::Layer> copy = layer->clone();
  tie_all(*layer, *copy);
  return copy;
}

void define_layers(nb::module_& m) {
  m.def("manual_seed", set_seed, "seed"_a, "Makes the first weights of layers made from now on follow from this seed.");
  define_module(m);
  define_layer(m);
  nb::class_<nn::Recurrent, nn::Layer> r(m, "Recurrent",
                                         "A recurrent layer: a cell run over sequences, in layers and directions.");
  r.def(
      "run",
      [](const nn::Recurrent& l, const Tensor& x, const Tensor& lengths, const Tensor& reset_mask, const Tensor& state,
         const Tensor& cell) {
        return result_of(run([&] { return l.run(x, context_of(lengths, reset_mask, state, cell, nullptr)); }));
      },
      "x"_a, nb::kw_only(), "lengths"_a.none() = nb::none(), "reset_mask"_a.none() = nb::none(),
      "state"_a.none() = nb::none(), "cell"_a.none() = nb::none(),
      "Returns the output and the last states: (output, state, cell), where cell is None unless the layer is an LSTM.");
  r.def_prop_ro("input_size", &nn::Recurrent::input_size);
  r.def_prop_ro("hidden_size", &nn::Recurrent::hidden_size);
  nb::class_<nn::Activation, nn::Layer>(m, "Activation", "The layer of an activation by its name, such as \"relu\".")
      .def(
          "__init__",
          [](nn::Activation* self, std::string name) {
            const auto f = nn::activation(name);
            std::string all;
            if (!f)
              for (const std::string& known : nn::activation_names()) all += (all.empty() ? "" : ", ") + known;
            if (!f) throw ValueError("activation: unknown name \"" + name + "\"; known are " + all);
            new (self) nn::Activation(std::move(name), f);
          },
          "name"_a);
  nb::class_<nn::SequenceLayer, nn::Layer> s(m, "SequenceLayer",
                                             "A layer over sequences that carries states from step to step.");
  s.def(
      "run",
      [](const nn::SequenceLayer& l, const Tensor& x, const Tensor& lengths, const Tensor& reset_mask,
         const Tensor& state) {
        return result_of(run([&] { return l.run(x, context_of(lengths, reset_mask, state, {}, nullptr)); }));
      },
      "x"_a, nb::kw_only(), "lengths"_a.none() = nb::none(), "reset_mask"_a.none() = nb::none(),
      "state"_a.none() = nb::none(),
      "Returns the output and the last state [B, W] of each row: (output, state, None).");
  nb::class_<nn::Sequential, nn::Layer> chain(m, "Sequential",
                                              "A chain of layers, each of which reads the output of the one before.");
  define_container<nn::Sequential>(chain);
  nb::class_<nn::Residual, nn::Sequential> residual(m, "Residual", "x + the chain of its layers applied to x.");
  define_container<nn::Residual>(residual);
  nb::class_<nn::Parallel, nn::Layer> parallel(m, "Parallel", "The sum of the outputs of its layers.");
  define_container<nn::Parallel>(parallel);
  nb::class_<nn::Concat, nn::Layer> concat(m, "Concat", "The outputs of its layers, joined along the features.");
  define_container<nn::Concat>(concat);
}

}  // namespace ferrite::python
