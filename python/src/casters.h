#pragma once
/// How Python objects become the library's arguments, and its results Python objects. Every source of the extension
/// module includes this file before it defines anything.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>
#include <utility>

#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/operand.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace nb = nanobind;

namespace ferrite::python {

/// The number of ferrite.FlushDenormals in effect on this thread.
inline constinit thread_local int flushing = 0;

/// How denormals count in a call of the library: as ordinary numbers, whatever other packages of the process have set,
/// unless ferrite.FlushDenormals is in effect.
class DenormalMode {
 public:
  DenormalMode() {
    if (flushing > 0)
      flush_.emplace();
    else
      keep_.emplace();
  }

 private:
  std::optional<FlushDenormals> flush_{};
  std::optional<KeepDenormals> keep_{};
};

/// How every call of the library runs: without the interpreter's lock, and in the mode of DenormalMode.
struct Calls {
  nb::gil_scoped_release unlocked;
  DenormalMode mode;
};
using Call = nb::call_guard<Calls>;

/// Runs f as `Calls` does and returns its result. f must not touch Python objects.
template <class F>
auto run(F&& f) {
  const Calls guard;
  return std::forward<F>(f)();
}

/// A dtype as Python sees it: one object for each.
struct DtypeObject {
  Dtype dtype;
};

/// Returns whether an object is a number or a NumPy scalar, which count as literals.
bool is_number(nb::handle object);
/// Returns the literal of such an object. Throws DtypeError for a complex number.
Scalar scalar_of(nb::handle object);
/// Returns the tensor in an object: a Tensor or a variable, or a copy of an array, a number or a nested list. With
/// `share`, elements of an array are used without a copy where kernels can read them in place (Tensor::frozen). Throws
/// DtypeError for a dtype that tensors do not have, ValueError for other objects.
Tensor tensor_of(nb::handle object, bool share = false);
/// Returns whether an object is a variable, such as a parameter.
bool is_variable(nb::handle object);
/// Returns whether an object is a Tensor or a variable.
bool is_tensor(nb::handle object);
/// Returns whether `tensor_of` may take an object: not None, a text or a function.
bool is_array_like(nb::handle object);
/// Returns the dtype that an object names: one of the module's, a text such as "f32" or "float32", or NumPy's. Throws
/// DtypeError.
Dtype dtype_of_object(nb::handle object);
/// Returns the Python object of a dtype.
nb::object object_of(Dtype dtype);
/// Throws TypeError: an object is not a constructed one of a class.
[[noreturn]] void refuse_object(nb::handle object, nb::handle wanted);
/// Returns a tuple with named fields, the Python form of a struct of results.
nb::object named_tuple(const char* type, std::initializer_list<const char*> names,
                       std::initializer_list<nb::object> values);

/// Returns the line of the reference pages for an operation, which is the docstring of a function without a comment;
/// without one, the comment of the functions before it.
const char* summary_of(const char* operation, const char* comment);

/// Returns the C++ object in a Python object. Throws TypeError for an object of another class, and for one whose class
/// did not call the __init__ of its base.
template <class T>
T* made(nb::handle object) {
  if (!nb::isinstance<T>(object) || !nb::inst_ready(object)) refuse_object(object, nb::type<T>());
  return nb::inst_ptr<T>(object);
}

/// One level of nested lists: a list that contains itself raises RecursionError.
struct Nesting {
  Nesting() {
    if (Py_EnterRecursiveCall(" in nested lists")) throw nb::python_error();
  }
  ~Nesting() { Py_LeaveRecursiveCall(); }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
};

/// A tensor or a literal, as an argument.
class OperandArgument {
 public:
  OperandArgument() = default;
  explicit OperandArgument(Tensor t) : tensor_(std::move(t)), literal_(false) {}
  explicit OperandArgument(Scalar s) : scalar_(s) {}
  Operand operand() const { return literal_ ? Operand(scalar_) : Operand(tensor_); }

 private:
  Tensor tensor_{};
  Scalar scalar_{};
  bool literal_ = true;
};

}  // namespace ferrite::python

namespace nanobind::detail {

/// A caster that keeps an error until the argument is used, since a caster itself must not throw: the caller then sees
/// which dtype was refused, not merely that no overload fits.
template <class T>
struct late_caster {
  T value{};
  std::exception_ptr fault{};
  template <class U>
  using Cast = movable_cast_t<U>;
  template <class U>
  static constexpr bool can_cast() {
    return true;
  }
  template <class F>
  bool keep(F&& f) noexcept {
    try {
      value = f();
    } catch (python_error&) {
      return false;
    } catch (...) {
      fault = std::current_exception();
    }
    return true;
  }
  T& checked() {
    if (fault) std::rethrow_exception(fault);
    return value;
  }
  explicit operator T*() { return &checked(); }
  explicit operator T&() { return checked(); }
  explicit operator T&&() { return std::move(checked()); }
};

/// The caster of tensors: takes also variables, arrays, numbers and lists of them, and None for an undefined one.
template <>
struct type_caster<ferrite::Tensor> : type_caster_base_tag {
  using Type = ferrite::Tensor;
  static constexpr auto Name = const_name<ferrite::Tensor>() + io_name(" | ArrayLike", "");
  template <class T>
  using Cast = precise_cast_t<T>;
  bool from_python(handle src, uint32_t flags, cleanup_list*) noexcept {
    value = &made;
    if (src.is_none()) return true;
    if (isinstance<ferrite::Tensor>(src)) {
      value = inst_ptr<ferrite::Tensor>(src);
      return true;
    }
    if (!ferrite::python::is_variable(src) &&
        ((flags & uint32_t(cast_flags::convert)) == 0 || !ferrite::python::is_array_like(src)))
      return false;
    try {
      made = ferrite::python::tensor_of(src);
    } catch (python_error&) {
      return false;
    } catch (...) {
      fault = std::current_exception();
    }
    return true;
  }
  template <class T>
  static handle from_cpp(T&& t, rv_policy policy, cleanup_list* cleanup) noexcept {
    if constexpr (is_pointer_v<T>) {
      return type_caster_base<Type>::from_cpp(t, policy, cleanup);
    } else {
      if (!t.defined()) return none().release();
      return type_caster_base<Type>::from_cpp(Type(std::forward<T>(t)), rv_policy::move, cleanup);
    }
  }
  template <class T>
  bool can_cast() const noexcept {
    return true;
  }
  operator Type*() { return &checked(); }
  operator Type&() { return checked(); }
  operator Type&&() { return std::move(value == &made ? checked() : made = *value); }

 private:
  Type& checked() {
    if (fault) std::rethrow_exception(fault);
    return *value;
  }
  Type* value = nullptr;
  Type made{};
  std::exception_ptr fault{};
};

template <>
struct type_caster<ferrite::python::OperandArgument> : late_caster<ferrite::python::OperandArgument> {
  static constexpr auto Name = const_name<ferrite::Tensor>() + const_name(" | ArrayLike | float");
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    using namespace ferrite::python;
    if (is_number(src)) return keep([&] { return OperandArgument(scalar_of(src)); });
    if (!is_tensor(src) && !is_array_like(src)) return false;
    return keep([&] { return OperandArgument(tensor_of(src)); });
  }
};

template <>
struct type_caster<ferrite::Scalar> : late_caster<ferrite::Scalar> {
  static constexpr auto Name = const_name("float");
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!ferrite::python::is_number(src)) return false;
    return keep([&] { return ferrite::python::scalar_of(src); });
  }
  static handle from_cpp(ferrite::Scalar s, rv_policy, cleanup_list*) noexcept {
    return s.is_floating() ? PyFloat_FromDouble(s.real()) : PyLong_FromLongLong(s.integer());
  }
};

template <>
struct type_caster<ferrite::Shape> : late_caster<ferrite::Shape> {
  static constexpr auto Name = io_name("int | collections.abc.Sequence[int]", "tuple[int, ...]");
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
    long long one = 0;
    if (PyLong_Check(src.ptr())) {
      one = PyLong_AsLongLong(src.ptr());
      if (one == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
      value = ferrite::Shape{one};
      return true;
    }
    make_caster<std::vector<std::int64_t>> list;
    if (PyUnicode_Check(src.ptr()) || !list.from_python(src, flags, cleanup)) return false;
    return keep([&] { return ferrite::Shape(std::span<const std::int64_t>(list.value)); });
  }
  static handle from_cpp(const ferrite::Shape& s, rv_policy, cleanup_list*) noexcept {
    PyObject* t = PyTuple_New(s.rank());
    for (int i = 0; t && i < s.rank(); ++i) PyTuple_SetItem(t, i, PyLong_FromLongLong(s[i]));
    return t;
  }
};

template <>
struct type_caster<ferrite::Dtype> : late_caster<ferrite::Dtype> {
  static constexpr auto Name = const_name<ferrite::python::DtypeObject>() + io_name(" | DTypeLike", "");
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (src.is_none() || PyLong_Check(src.ptr()) || PyFloat_Check(src.ptr())) return false;
    return keep([&] { return ferrite::python::dtype_of_object(src); });
  }
  static handle from_cpp(ferrite::Dtype t, rv_policy, cleanup_list*) noexcept {
    return ferrite::python::object_of(t).release();
  }
};

template <>
struct type_caster<ferrite::Label> : late_caster<ferrite::Label> {
  static constexpr auto Name = const_name("str");
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::string> text;
    if (!text.from_python(src, flags, cleanup)) return false;
    return keep([&] { return ferrite::Label::of(text.value); });
  }
  static handle from_cpp(const ferrite::Label& l, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromStringAndSize(l.text().data(), static_cast<Py_ssize_t>(l.text().size()));
  }
};

/// The caster of lists of tensors. Not nanobind's, which would let a refused dtype escape where nothing may throw.
template <class List>
struct tensors_caster : late_caster<List> {
  static constexpr auto Name =
      io_name("collections.abc.Sequence[", "list[") + const_name<ferrite::Tensor>() + io_name(" | ArrayLike]", "]");
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!PyList_Check(src.ptr()) && !PyTuple_Check(src.ptr())) return false;
    return this->keep([&] {
      List all;
      for (handle each : src) all.push_back(each.is_none() ? ferrite::Tensor() : ferrite::python::tensor_of(each));
      return all;
    });
  }
  template <class L>
  static handle from_cpp(L&& list, rv_policy policy, cleanup_list* cleanup) noexcept {
    PyObject* out = PyList_New(static_cast<Py_ssize_t>(list.size()));
    Py_ssize_t i = 0;
    for (auto&& each : list)
      if (out) PyList_SetItem(out, i++, type_caster<ferrite::Tensor>::from_cpp(each, policy, cleanup).ptr());
    return out;
  }
};
template <>
struct type_caster<ferrite::Tensors> : tensors_caster<ferrite::Tensors> {};
template <>
struct type_caster<std::vector<ferrite::Tensor>> : tensors_caster<std::vector<ferrite::Tensor>> {};

/// The caster of an enumeration whose values are texts in Python; `Names::of()` lists {value, text}.
template <class E, class Names>
struct text_caster : late_caster<E> {
  static constexpr auto Name = const_name("str");
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::string> text;
    if (!PyUnicode_Check(src.ptr()) || !text.from_python(src, flags, cleanup)) return false;
    return this->keep([&] {
      std::string all;
      for (const auto& [v, name] : Names::of()) {
        if (text.value == name) return v;
        all += (all.empty() ? "" : ", ") + std::string(name);
      }
      throw ferrite::ValueError(std::string(Names::what) + ": unknown value \"" + text.value + "\"; known are " + all);
    });
  }
  static handle from_cpp(E e, rv_policy, cleanup_list*) noexcept {
    for (const auto& [v, name] : Names::of())
      if (v == e) return PyUnicode_FromString(name);
    return none().release();
  }
};

}  // namespace nanobind::detail
