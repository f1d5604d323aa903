// The library's errors as Python exceptions: each is also the exception of Python that says the same.
#include <cerrno>

#include "module.h"

#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/nn/step.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/profiler.h"
#include "ferrite/train/fingerprint.h"

namespace ferrite::python {
namespace {

nb::object make(nb::module_& m, const char* name, std::initializer_list<PyObject*> bases, const char* doc) {
  nb::list all;
  for (PyObject* b : bases) all.append(nb::handle(b));
  const std::string full = std::string("ferrite._ferrite.") + name;
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, nb::tuple(all).ptr(), nullptr));
  if (!type.is_valid()) throw nb::python_error();
  m.attr(name) = type;
  return type;
}

template <class E>
void translate(nb::handle type) {
  nb::register_exception_translator(
      [](const std::exception_ptr& p, void* to) {
        try {
          std::rethrow_exception(p);
        } catch (const E& e) {
          nb::object error = nb::handle(static_cast<PyObject*>(to))(e.what());
          const std::string_view layer = e.layer();
          error.attr("layer") = nb::str(layer.data(), layer.size());
          PyErr_SetObject(static_cast<PyObject*>(to), error.ptr());
        }
      },
      type.ptr());
}

}  // namespace

void define_errors(nb::module_& m) {
  // Translators are asked in the reverse order, so the base comes first.
  const nb::object error = make(m, "Error", {PyExc_Exception},
                                "The base of the library's errors. ``layer`` is the path of the layer that raised it.");
  translate<Error>(error);
  const auto add = [&]<class E>(std::type_identity<E>, const char* name, PyObject* python, const char* doc) {
    translate<E>(make(m, name, {error.ptr(), python}, doc));
  };
  add(std::type_identity<ShapeError>(), "ShapeError", PyExc_ValueError,
      "Raised for shapes, extents, axes or indices that do not fit.");
  add(std::type_identity<DtypeError>(), "DtypeError", PyExc_TypeError,
      "Raised for dtypes that do not fit: tensors are not promoted.");
  add(std::type_identity<ValueError>(), "ValueError", PyExc_ValueError,
      "Raised for a value outside the range that an option or argument allows.");
  add(std::type_identity<TapeError>(), "TapeError", PyExc_RuntimeError,
      "Raised for misuse of automatic differentiation.");
  add(std::type_identity<TraceError>(), "TraceError", PyExc_RuntimeError,
      "Raised when values of a traced tensor are read, or when it leaves its trace.");
  add(std::type_identity<IoError>(), "IoError", PyExc_OSError,
      "Raised for a file that is missing, damaged or does not fit the model.");
  const auto kind_of = [&]<class E>(std::type_identity<E>, const char* name, const char* base, PyObject* python,
                                    const char* doc) {
    const nb::object type = m.attr(base);
    translate<E>(python ? make(m, name, {type.ptr(), python}, doc) : make(m, name, {type.ptr()}, doc));
  };
  kind_of(std::type_identity<train::OtherTrainingError>(), "OtherTrainingError", "IoError", nullptr,
          "Raised for a checkpoint of another training than the one that would resume from it.");
  kind_of(std::type_identity<onnx::OnnxError>(), "OnnxError", "IoError", nullptr,
          "Raised for an ONNX file that is damaged, or with a node that cannot be run.");
  kind_of(std::type_identity<exchange::ExportError>(), "ExportError", "Error", nullptr,
          "Raised for a program that a format cannot express.");
  kind_of(std::type_identity<nn::PaceError>(), "PaceError", "Error", PyExc_RuntimeError,
          "Raised for a step of a model that does not give one output for each input; use ``feed``.");
  kind_of(std::type_identity<nn::CapacityError>(), "CapacityError", "Error", PyExc_RuntimeError,
          "Raised for a step beyond the capacity of a state that grows.");
  kind_of(std::type_identity<AnomalyError>(), "AnomalyError", "Error", PyExc_ArithmeticError,
          "Raised for a NaN or an infinity, by ``detect_anomaly`` and by training.");
  kind_of(std::type_identity<ProfileError>(), "ProfileError", "Error", PyExc_RuntimeError,
          "Raised when a profile begins while another one runs.");
  make(m, "MissingFileError", {m.attr("IoError").ptr(), PyExc_FileNotFoundError},
       "Raised for a file that does not exist.");
  add(std::type_identity<MemoryError>(), "MemoryError", PyExc_MemoryError,
      "Raised when there is no memory for a tensor or a workspace.");
}

void require_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return;
  const nb::object type = nb::module_::import_("ferrite._ferrite").attr("MissingFileError");
  const std::string name = path.string();
  const nb::object error = type(ENOENT, "No such file or directory", nb::str(name.c_str(), name.size()));
  error.attr("layer") = "";
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace ferrite::python
