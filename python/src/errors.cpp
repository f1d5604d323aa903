// The library's errors as Python exceptions: each is also the exception of Python that says the same.
#include "module.h"

#include "ferrite/tensor/error.h"

namespace ferrite::python {
namespace {

nb::object make(nb::module_& m, const char* name, std::initializer_list<PyObject*> bases, const char* doc) {
  nb::list all;
  for (PyObject* b : bases) all.append(nb::handle(b));
  const std::string full = std::string("ferrite.") + name;
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
  const nb::object error = make(m, "Error", {PyExc_Exception}, "The base of the library's errors. ``layer`` is the path of the layer that raised it.");
  translate<Error>(error);
  const auto add = [&]<class E>(std::type_identity<E>, const char* name, PyObject* python, const char* doc) {
    translate<E>(make(m, name, {error.ptr(), python}, doc));
  };
  add(std::type_identity<ShapeError>(), "ShapeError", PyExc_ValueError, "Raised for shapes, extents, axes or indices that do not fit.");
  add(std::type_identity<DtypeError>(), "DtypeError", PyExc_TypeError, "Raised for dtypes that do not fit: tensors are not promoted.");
  add(std::type_identity<ValueError>(), "ValueError", PyExc_ValueError, "Raised for a value outside the range that an option or argument allows.");
  add(std::type_identity<TapeError>(), "TapeError", PyExc_RuntimeError, "Raised for misuse of automatic differentiation.");
  add(std::type_identity<TraceError>(), "TraceError", PyExc_RuntimeError, "Raised when values of a traced tensor are read, or when it leaves its trace.");
  add(std::type_identity<IoError>(), "IoError", PyExc_OSError, "Raised for a file that is missing, damaged or does not fit the model.");
  add(std::type_identity<MemoryError>(), "MemoryError", PyExc_MemoryError, "Raised when there is no memory for a tensor or a workspace.");
}

}  // namespace ferrite::python
