#pragma once
/// Python objects that C++ holds beyond a call, and functions of Python that the library calls.
#include <memory>

#include "casters.h"

namespace ferrite::python {

/// A Python object that may be copied and dropped on any thread, with or without the interpreter's lock.
class Kept {
 public:
  Kept() = default;
  explicit Kept(nb::handle object)
      : of_(new nb::object(nb::borrow(object)), [](nb::object* o) {
          if (!Py_IsInitialized()) return;  // the object went with the interpreter
          const nb::gil_scoped_acquire lock;
          delete o;
        }) {}

  nb::handle get() const { return of_ ? nb::handle(*of_) : nb::handle(); }
  explicit operator bool() const { return of_ != nullptr; }

 private:
  std::shared_ptr<nb::object> of_;
};

/// Returns the name that a function or object of Python goes by in errors and logs.
inline std::string name_of_object(nb::handle f) {
  const nb::object name = nb::getattr(f, "__name__", nb::none());
  return nb::cast<std::string>(name.is_none() ? nb::handle(f.type()).attr("__name__") : nb::handle(name));
}

}  // namespace ferrite::python
