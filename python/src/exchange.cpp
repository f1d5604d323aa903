// ONNX and StableHLO in Python.
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/exchange/stablehlo.h"
#include "kept.h"
#include "module.h"

namespace ferrite::python {

using nb::literals::operator""_a;
using Path = std::filesystem::path;

namespace {

using TensorFunction = std::function<Tensors(const Tensors&)>;

/// Returns a layer, or a function of tensors in Python, as a function of a list of tensors.
TensorFunction function_of(nb::handle f) {
  if (nb::isinstance<onnx::Model>(f)) return [model = nb::inst_ptr<onnx::Model>(f)](const Tensors& in) { return model->run(in); };
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
  c.def_prop_ro("inputs", [](const onnx::Model& o) { return ports_of(o.inputs()); },
                "The inputs in the file's order, as (name, type, dtype, shape).");
  c.def_prop_ro("outputs", [](const onnx::Model& o) { return ports_of(o.outputs()); },
                "The outputs in the file's order, as (name, type, dtype, shape).");
  c.def("run", [](const onnx::Model& o, const Tensors& inputs) { return o.run(inputs); }, "inputs"_a, Call(),
        "Runs the model on a list of inputs and returns the list of its outputs. Raises ShapeError and DtypeError for\n"
        "inputs that do not fit, OnnxError for a node that cannot be run.");
  c.def("report", &onnx::Model::report, "Returns a text about the nodes and what became of each initialiser, and why.");
  m.def("read_onnx", [](const Path& path, bool external_data, bool frozen, std::map<std::string, bool> trains,
                        nb::dict constants) -> onnx::Model* {
      require_file(path);
      onnx::ReadOptions options{.external_data = external_data, .frozen = frozen, .trains = std::move(trains)};
      for (const auto& [name, value] : constants) options.constants.emplace(nb::cast<std::string>(name), tensor_of(value));
      return run([&] { return new onnx::Model(onnx::read(path, options)); });
    }, "path"_a, nb::kw_only(), "external_data"_a = false, "frozen"_a = false,
    "trains"_a = std::map<std::string, bool>{}, "constants"_a = nb::dict(), nb::rv_policy::take_ownership,
    "Reads an ONNX file as a module.\n\n"
    "``external_data``: allows tensors in other files below the model's folder. ``frozen``: makes all initialisers\n"
    "constants. ``trains``: exceptions to the rule for which initialisers train, by name. ``constants``: values of inputs\n"
    "that are the same in every call. Raises MissingFileError and OnnxError.");
}

onnx::ExportOptions onnx_options(const std::string& name, std::vector<std::string> inputs,
                                 std::vector<std::string> outputs, const Axes& dynamic, bool variables_as_inputs,
                                 bool states_as_inputs) {
  return {.name = name, .inputs = std::move(inputs), .outputs = std::move(outputs),
          .variables_as_inputs = variables_as_inputs, .states_as_inputs = states_as_inputs, .dynamic = axes_of(dynamic)};
}

constexpr const char* kOnnxDoc =
    "``f`` is a layer or a function of tensors; ``inputs`` gives its arguments' types: tensors or arrays, or tuples that\n"
    "are shapes of f32. ``dynamic`` lists axes whose extents stay open, as (number of the input, axis, name).\n"
    "``variables_as_inputs``: makes variables inputs instead of initialisers. ``states_as_inputs``: makes variables that\n"
    "the program writes inputs, so that a caller carries them from run to run. Raises ExportError.";

void define_exports(nb::module_& m) {
  static const std::string to = std::string("Returns a layer or a function as the bytes of an ONNX model, opset 17.\n\n") + kOnnxDoc;
  static const std::string write = std::string("Exports a layer or a function to an ONNX file, opset 17.\n\n") + kOnnxDoc;
  m.def("to_onnx", [](nb::handle f, nb::handle inputs, const std::string& name, std::vector<std::string> input_names,
                      std::vector<std::string> output_names, const Axes& dynamic, bool variables, bool states) {
      const TensorFunction function = function_of(f);
      const std::vector<Spec> specs = specs_of(inputs);
      const auto options = onnx_options(name, std::move(input_names), std::move(output_names), dynamic, variables, states);
      const std::string bytes = run([&] { return onnx::to_onnx(function, specs, options); });
      return nb::bytes(bytes.data(), bytes.size());
    }, "f"_a, "inputs"_a, nb::kw_only(), "name"_a = "ferrite", "input_names"_a = std::vector<std::string>{},
    "output_names"_a = std::vector<std::string>{}, "dynamic"_a = Axes{}, "variables_as_inputs"_a = false,
    "states_as_inputs"_a = true, to.c_str());
  m.def("write_onnx", [](const Path& path, nb::handle f, nb::handle inputs, const std::string& name,
                         std::vector<std::string> input_names, std::vector<std::string> output_names,
                         const Axes& dynamic, bool variables, bool states) {
      const TensorFunction function = function_of(f);
      const std::vector<Spec> specs = specs_of(inputs);
      const auto options = onnx_options(name, std::move(input_names), std::move(output_names), dynamic, variables, states);
      run([&] { onnx::write_onnx(path, function, specs, options); });
    }, "path"_a, "f"_a, "inputs"_a, nb::kw_only(), "name"_a = "ferrite", "input_names"_a = std::vector<std::string>{},
    "output_names"_a = std::vector<std::string>{}, "dynamic"_a = Axes{}, "variables_as_inputs"_a = false,
    "states_as_inputs"_a = true, write.c_str());
  m.def("to_stablehlo", [](nb::handle f, nb::handle inputs, const std::string& name, const Axes& dynamic,
                           bool inline_variables, bool constants_as_arguments, bool unrolled, bool locations) {
      const TensorFunction function = function_of(f);
      const std::vector<Spec> specs = specs_of(inputs);
      exchange::StablehloOptions options{.name = name, .inline_variables = inline_variables,
                                         .constants_as_arguments = constants_as_arguments, .locations = locations,
                                         .dynamic = axes_of(dynamic)};
      if (unrolled) options.scan = exchange::ScanExport::unrolled;
      return run([&] { return exchange::to_stablehlo(function, specs, options); });
    }, "f"_a, "inputs"_a, nb::kw_only(), "name"_a = "ferrite", "dynamic"_a = Axes{}, "inline_variables"_a = false,
    "constants_as_arguments"_a = false, "unrolled"_a = false, "locations"_a = false,
    "Returns a layer or a function as the text of a StableHLO module with one function, ``@main``.\n\n"
    "``f``, ``inputs`` and ``dynamic`` are those of write_onnx. ``inline_variables``: writes the present values of\n"
    "variables into the text, instead of making them arguments. ``constants_as_arguments``: makes constants of several\n"
    "elements arguments. ``unrolled``: writes scans step by step. ``locations``: writes the paths of layers. Raises\n"
    "ExportError for an operation that StableHLO cannot express.");
}

}  // namespace

void define_exchange(nb::module_& m) {
  define_onnx_models(m);
  define_exports(m);
}

}  // namespace ferrite::python
