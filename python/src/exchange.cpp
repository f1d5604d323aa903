// ONNX and StableHLO in Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/exchange/onnx_stream.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/tensor/ops.h"
#include "kept.h"
#include "module.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;
using Path = std::filesystem::path;

namespace {

using TensorFunction = std::function<Tensors(const Tensors&)>;

/// Returns a layer, or a function of tensors in Python, as a function of a list of tensors.
TensorFunction function_of(nb::handle f) {
  if (nb::isinstance<onnx::Model>(f))
    return [model = made<onnx::Model>(f)](const Tensors& in) { return model->run(in); };
  return [kept = Kept(f)](const Tensors& in) {
    const nb::gil_scoped_acquire lock;
    nb::list arguments;
    for (const Tensor& t : in) arguments.append(t);
    const nb::object out = kept.get()(*arguments);
    if (nb::isinstance<nb::dict>(out)) return nb::cast<Tensors>(nb::list(out.attr("values")()));
    return PyTuple_Check(out.ptr()) || PyList_Check(out.ptr()) ? nb::cast<Tensors>(out) : Tensors{tensor_of(out)};
  };
}

/// Returns the types of a function's inputs: those of tensors and arrays; a tuple of integers is a shape of f32.
std::vector<Spec> specs_of(nb::handle inputs) {
  std::vector<Spec> all;
  if (is_tensor(inputs) || nb::ndarray_check(inputs)) return {tensor_of(inputs).spec()};
  for (nb::handle each : inputs) {
    if (PyTuple_Check(each.ptr()))
      all.push_back({nb::cast<Shape>(each), Dtype::f32});
    else
      all.push_back(tensor_of(each).spec());
  }
  return all;
}

using Axes = std::vector<std::tuple<std::size_t, int, std::string>>;

std::vector<exchange::DynamicAxis> axes_of(const Axes& dynamic) {
  std::vector<exchange::DynamicAxis> all;
  for (const auto& [input, axis, name] : dynamic) all.push_back({.input = input, .axis = axis, .name = name});
  return all;
}

nb::list ports_of(const std::vector<onnx::Port>& ports) {
  nb::list all;
  for (const onnx::Port& p : ports)
    all.append(named_tuple("Port", {"name", "type", "dtype", "shape"},
                           {nb::cast(p.name), nb::cast(p.type), object_of(p.dtype),
                            p.ranked ? nb::object(nb::tuple(nb::cast(p.shape))) : nb::none()}));
  return all;
}

void define_onnx_models(nb::module_& m) {
  nb::class_<onnx::Model, nn::Layer> c(m, "OnnxModel",
                                       "An ONNX model as a module, which may be compiled, differentiated, trained and\n"
                                       "saved like any other. Its parameters are the initialisers of floats.");
  c.def_prop_ro(
      "inputs", [](const onnx::Model& o) { return ports_of(o.inputs()); },
      "The inputs in the file's order, as (name, type, dtype, shape).");
  c.def_prop_ro(
      "outputs", [](const onnx::Model& o) { return ports_of(o.outputs()); },
      "The outputs in the file's order, as (name, type, dtype, shape).");
  c.def(
      "run", [](const onnx::Model& o, const Tensors& inputs) { return o.run(inputs); }, "inputs"_a, Call(),
      "Runs the model on a list of inputs and returns the list of its outputs. Raises ShapeError and DtypeError for\n"
      "inputs that do not fit, OnnxError for a node that cannot be run.");
  c.def("report", &onnx::Model::report, "Returns a text about the nodes and what became of each initialiser, and why.");
  m.def(
      "read_onnx",
      [](const Path& path, bool external_data, bool frozen, std::map<std::string, bool> trains,
         nb::dict constants) -> onnx::Model* {
        require_file(path);
        onnx::ReadOptions options{.external_data = external_data, .frozen = frozen, .trains = std::move(trains)};
        for (const auto& [name, value] : constants)
          options.constants.emplace(nb::cast<std::string>(name), tensor_of(value));
        return run([&] { return new onnx::Model(onnx::read(path, options)); });
      },
      "path"_a, nb::kw_only(), "external_data"_a = false, "frozen"_a = false,
      "trains"_a = std::map<std::string, bool>{}, "constants"_a = nb::dict(), nb::rv_policy::take_ownership,
      "Reads an ONNX file as a module.\n\n"
      "``external_data``: allows tensors in other files below the model's folder. ``frozen``: makes all initialisers\n"
      "constants. ``trains``: exceptions to the rule for which initialisers train, by name. ``constants``: values of "
      "inputs\n"
      "that are the same in every call. Raises MissingFileError and OnnxError.");
}

/// A stream of an ONNX model, with names in Python.
class OnnxStreamObject {
 public:
  OnnxStreamObject(nb::handle model, const onnx::StreamOptions& options)
      : model_(nb::borrow(model)), stream_(run([&] { return onnx::Stream(*made<onnx::Model>(model_), options); })) {
    for (const onnx::Port& p : made<onnx::Model>(model_)->outputs())
      if (!is_next_state(options, p.name)) outputs_.push_back(p.name);
  }
  OnnxStreamObject(const OnnxStreamObject& of, onnx::Stream stream)
      : model_(of.model_), stream_(std::move(stream)), outputs_(of.outputs_) {}

  nb::dict step(const nb::kwargs& inputs) {
    std::vector<std::pair<std::string, Tensor>> values;
    for (const auto& [name, value] : inputs) values.emplace_back(nb::cast<std::string>(name), tensor_of(value));
    const Tensors results = run([&] {
      for (const auto& [name, value] : values) put(name, value);
      stream_.step();
      Tensors out;
      for (const std::string& name : outputs_) out.push_back(output(name));
      return out;
    });
    nb::dict all;
    for (std::size_t i = 0; i < outputs_.size(); ++i) all[outputs_[i].c_str()] = results[i];
    return all;
  }
  onnx::Stream& stream() { return stream_; }

 private:
  static bool is_next_state(const onnx::StreamOptions& options, const std::string& name) {
    return std::ranges::any_of(options.states, [&](const auto& s) { return s.second == name; });
  }
  void put(const std::string& name, const Tensor& value) {
    const Spec& spec = stream_.input_spec(name);
    if (value.numel() != spec.shape.numel("stream"))
      throw ShapeError("stream: " + name + " of a step is " + spec.str() + ", got " + value.spec().str());
    const Tensor rows = contiguous(value);
    visit_computed(rows.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const std::span<T> to = stream_.input<T>(name);
      std::copy_n(rows.data<T>(), to.size(), to.begin());
    });
  }
  Tensor output(const std::string& name) const {
    const Spec& spec = stream_.output_spec(name);
    return visit_computed(spec.dtype, [&](auto zero) {
      using T = decltype(zero);
      return Tensor::from(stream_.output<T>(name), spec.shape);
    });
  }

  nb::object model_;
  onnx::Stream stream_;
  std::vector<std::string> outputs_;
};

void define_onnx_stream(nb::module_& m) {
  using States = std::vector<std::pair<std::string, std::string>>;
  using Extents = std::map<std::string, std::int64_t>;
  nb::class_<OnnxStreamObject> c(
      m, "OnnxStream",
      "A causal ONNX model run step by step, with states that are found by analysis and those that the model has as "
      "inputs\n"
      "and outputs. A step gives bit for bit what the whole model gives.\n\n"
      "``time``: the name of the time dimension in the shapes of the file's inputs; if empty, a call of the model is a "
      "step.\n"
      "``extents``: extents of other dimensions that have names. ``steps``: shapes of inputs in one step, where the "
      "file\n"
      "does not give them. ``time_axes``: time axes of inputs, where the file does not name them. ``states``: pairs "
      "(input,\n"
      "output) of the model that are a state. ``verify``: compares two sequences with the whole model first. Raises\n"
      "ValueError that names the node that looks ahead, sums over time, strides or is not known to be causal.");
  c.def(
      "__init__",
      [](OnnxStreamObject* p, Typed<"OnnxModel"> model, const std::string& time, const Extents& extents,
         const std::map<std::string, Shape>& steps, const std::map<std::string, int>& time_axes, const States& states,
         bool verify) {
        if (!nb::isinstance<onnx::Model>(model)) throw nb::type_error("OnnxStream: not an OnnxModel");
        new (p) OnnxStreamObject(model, {time, extents, steps, time_axes, states, verify});
      },
      "model"_a, nb::kw_only(), "time"_a = "", "extents"_a = Extents{}, "steps"_a = std::map<std::string, Shape>{},
      "time_axes"_a = std::map<std::string, int>{}, "states"_a = States{}, "verify"_a = true);
  c.def(
      "step", &OnnxStreamObject::step, "inputs"_a,
      nb::sig("def step(self, **inputs: ferrite._ferrite.Tensor | ArrayLike) -> dict[str, Tensor]"),
      "Runs one step on inputs by name and returns the outputs by name. An input that is not given keeps its values.");
  c.def(
      "reset", [](OnnxStreamObject& s) { s.stream().reset(); }, "Starts a new sequence.");
  c.def(
      "clone", [](OnnxStreamObject& s) { return OnnxStreamObject(s, s.stream().clone()); },
      "Returns an independent stream with equal weights and states.");
  c.def(
      "save", [](OnnxStreamObject& s) { return s.stream().save(); }, "Returns the states, for ``restore``.");
  c.def(
      "restore", [](OnnxStreamObject& s, const std::vector<Tensor>& states) { s.stream().restore(states); }, "states"_a,
      "Restores saved states.");
  c.def(
      "refresh", [](OnnxStreamObject& s) { s.stream().refresh(); },
      "Copies the present values of the model's parameters into the stream; the states stay.");
  c.def(
      "report", [](OnnxStreamObject& s) { return s.stream().report(); }, "Returns a text with a line for each state.");
}

onnx::ExportOptions onnx_options(const std::string& name, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs, const Axes& dynamic, bool variables_as_inputs,
                                 bool states_as_inputs) {
  return {.name = name,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .variables_as_inputs = variables_as_inputs,
          .states_as_inputs = states_as_inputs,
          .dynamic = axes_of(dynamic)};
}

constexpr const char* kOnnxDoc =
    "``f`` is a layer or a function of tensors; ``inputs`` gives its arguments' types: tensors or arrays, or tuples "
    "that\n"
    "are shapes of f32. ``dynamic`` lists axes whose extents stay open, as (number of the input, axis, name).\n"
    "``variables_as_inputs``: makes variables inputs instead of initialisers. ``states_as_inputs``: makes variables "
    "that\n"
    "the program writes inputs, so that a caller carries them from run to run. Raises ExportError.";

using AnySpecs = Typed<"collections.abc.Sequence[ferrite._ferrite.Tensor | ArrayLike | tuple[int, ...]]">;

void define_exports(nb::module_& m) {
  static const std::string to =
      std::string("Returns a layer or a function as the bytes of an ONNX model, opset 17.\n\n") + kOnnxDoc;
  static const std::string write =
      std::string("Exports a layer or a function to an ONNX file, opset 17.\n\n") + kOnnxDoc;
  m.def(
      "to_onnx",
      [](AnyFunction f, AnySpecs inputs, const std::string& name, std::vector<std::string> input_names,
         std::vector<std::string> output_names, const Axes& dynamic, bool variables, bool states) {
        const TensorFunction function = function_of(f);
        const std::vector<Spec> specs = specs_of(inputs);
        const auto options =
            onnx_options(name, std::move(input_names), std::move(output_names), dynamic, variables, states);
        const std::string bytes = run([&] { return onnx::to_onnx(function, specs, options); });
        return nb::bytes(bytes.data(), bytes.size());
      },
      "f"_a, "inputs"_a, nb::kw_only(), "name"_a = "ferrite", "input_names"_a = std::vector<std::string>{},
      "output_names"_a = std::vector<std::string>{}, "dynamic"_a = Axes{}, "variables_as_inputs"_a = false,
      "states_as_inputs"_a = true, to.c_str());
  m.def(
      "write_onnx",
      [](const Path& path, AnyFunction f, AnySpecs inputs, const std::string& name,
         std::vector<std::string> input_names, std::vector<std::string> output_names, const Axes& dynamic,
         bool variables, bool states) {
        const TensorFunction function = function_of(f);
        const std::vector<Spec> specs = specs_of(inputs);
        const auto options =
            onnx_options(name, std::move(input_names), std::move(output_names), dynamic, variables, states);
        run([&] { onnx::write_onnx(path, function, specs, options); });
      },
      "path"_a, "f"_a, "inputs"_a, nb::kw_only(), "name"_a = "ferrite", "input_names"_a = std::vector<std::string>{},
      "output_names"_a = std::vector<std::string>{}, "dynamic"_a = Axes{}, "variables_as_inputs"_a = false,
      "states_as_inputs"_a = true, write.c_str());
  m.def(
      "to_stablehlo",
      [](AnyFunction f, AnySpecs inputs, const std::string& name, const Axes& dynamic, bool inline_variables,
         bool constants_as_arguments, bool unrolled, bool locations) {
        const TensorFunction function = function_of(f);
        const std::vector<Spec> specs = specs_of(inputs);
        exchange::StablehloOptions options{.name = name,
                                           .inline_variables = inline_variables,
                                           .constants_as_arguments = constants_as_arguments,
                                           .locations = locations,
                                           .dynamic = axes_of(dynamic)};
        if (unrolled) options.scan = exchange::ScanExport::unrolled;
        return run([&] { return exchange::to_stablehlo(function, specs, options); });
      },
      "f"_a, "inputs"_a, nb::kw_only(), "name"_a = "ferrite", "dynamic"_a = Axes{}, "inline_variables"_a = false,
      "constants_as_arguments"_a = false, "unrolled"_a = false, "locations"_a = false,
      "Returns a layer or a function as the text of a StableHLO module with one function, ``@main``.\n\n"
      "``f``, ``inputs`` and ``dynamic`` are those of write_onnx. ``inline_variables``: writes the present values of\n"
      "variables into the text, instead of making them arguments. ``constants_as_arguments``: makes constants of "
      "several\n"
      "elements arguments. ``unrolled``: writes scans step by step. ``locations``: writes the paths of layers. Raises\n"
      "ExportError for an operation that StableHLO cannot express.");
}

}  // namespace

void define_exchange(nb::module_& m) {
  define_onnx_models(m);
  define_onnx_stream(m);
  define_exports(m);
}

}  // namespace ferrite::python
