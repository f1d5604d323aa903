// Python objects as tensors, literals and dtypes, and tensors as NumPy arrays.
#include <nanobind/ndarray.h>

#include <cstring>
#include <deque>
#include <unordered_map>

#include "ferrite/nn/operations.h"
#include "ferrite/tensor/ops.h"
#include "memory.h"
#include "module.h"

namespace ferrite::python {
namespace {

/// Returns the dtype of an array's elements; nothing for types that tensors do not have.
std::optional<Dtype> dtype_of_dlpack(nb::dlpack::dtype t) {
  if (t.lanes != 1) return {};
  using Code = nb::dlpack::dtype_code;
  switch (static_cast<Code>(t.code)) {
    case Code::Float:
      return t.bits == 32   ? std::optional(Dtype::f32)
             : t.bits == 64 ? std::optional(Dtype::f64)
             : t.bits == 16 ? std::optional(Dtype::f16)
                            : std::nullopt;
    case Code::Bfloat: return t.bits == 16 ? std::optional(Dtype::bf16) : std::nullopt;
    case Code::Int:
      return t.bits == 32   ? std::optional(Dtype::i32)
             : t.bits == 64 ? std::optional(Dtype::i64)
             : t.bits == 8  ? std::optional(Dtype::i8)
                            : std::nullopt;
    case Code::Bool: return t.bits == 8 ? std::optional(Dtype::boolean) : std::nullopt;
    default: return {};
  }
}

/// Copies elements of any strides, in elements, to row-major order.
void copy_rows(const std::byte* from, std::byte* to, std::span<const std::int64_t> shape,
               std::span<const std::int64_t> strides, std::size_t size) {
  if (shape.empty()) {
    std::memcpy(to, from, size);
    return;
  }
  std::size_t row = size;
  for (const std::int64_t e : shape.subspan(1)) row *= static_cast<std::size_t>(e);
  if (shape.size() == 1 && strides[0] == 1) {
    if (shape[0] > 0) std::memcpy(to, from, size * static_cast<std::size_t>(shape[0]));
    return;
  }
  for (std::int64_t i = 0; i < shape[0]; ++i, to += row)
    copy_rows(from + i * strides[0] * static_cast<std::int64_t>(size), to, shape.subspan(1), strides.subspan(1), size);
}

bool rows_lie_in_order(const nb::ndarray<nb::ro>& a) {
  std::int64_t expected = 1;
  for (std::size_t i = a.ndim(); i-- > 0;) {
    if (a.shape(i) != 1 && a.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(a.shape(i));
  }
  return true;
}

/// The name of the dtype of an object that has one, for errors.
std::string dtype_text(nb::handle object) {
  if (nb::hasattr(object, "dtype")) {
    const nb::object dtype = object.attr("dtype");
    return nb::cast<std::string>(nb::str(nb::handle(dtype)));
  }
  return nb::cast<std::string>(object.type().attr("__name__"));
}

[[noreturn]] void refuse(nb::handle object) {
  throw DtypeError("tensor: no tensor holds elements of dtype " + dtype_text(object) +
                   "; convert them to float32, float64, float16, bfloat16, int64, int32, int8 or bool");
}

Tensor of_array(nb::handle object, bool share) {
  nb::ndarray<nb::ro> a;
  if (!nb::try_cast(object, a)) refuse(object);
  if (a.device_type() != nb::device::cpu::value)
    throw ValueError("tensor: the array lies on another device; copy it to the CPU first");
  const std::optional<Dtype> dtype = dtype_of_dlpack(a.dtype());
  if (!dtype) refuse(object);
  Shape shape, strides;
  for (std::size_t i = 0; i < a.ndim(); ++i) {
    shape.push_back(static_cast<std::int64_t>(a.shape(i)));
    strides.push_back(a.stride(i));
  }
  const auto size = static_cast<std::size_t>(size_of(*dtype));
  const auto* first = static_cast<const std::byte*>(a.data());
  const std::size_t bytes = size * static_cast<std::size_t>(shape.numel("tensor"));
  if (share && *dtype != Dtype::boolean && rows_lie_in_order(a) && stays_on_page(first, bytes)) {
    // The array lives until the last tensor on it goes; that may be on a thread that does not hold the lock.
    auto* keeper = new nb::object(nb::borrow(object));
    const std::shared_ptr<const void> kept(keeper, [](const void* p) {
      const nb::gil_scoped_acquire lock;
      delete static_cast<const nb::object*>(p);
    });
    Tensor t = Tensor::frozen({first, detail::readable_for(bytes)}, {shape, *dtype}, kept);
    // Its owner may write to it, so nothing may keep a copy in another order.
    if (t.raw() == first) t.impl()->storage->rewritten = true;
    return t;
  }
  Tensor t = Tensor::empty({shape, *dtype});
  if (bytes > 0) {
    std::byte* to = detail::Writer::raw(t);
    copy_rows(first, to, {shape.begin(), shape.end()}, {strides.begin(), strides.end()}, size);
    if (*dtype == Dtype::boolean)
      for (std::size_t i = 0; i < bytes; ++i) to[i] = std::byte{to[i] != std::byte{0}};
  }
  return t;
}

/// The kinds of numbers in a nested list.
enum class Kind : std::uint8_t { none, boolean, integer, floating };

/// A nested list of numbers on its way to a tensor.
struct Nested {
  Shape shape{};
  Kind kind = Kind::none;
  std::vector<double> reals{};
  std::vector<std::int64_t> integers{};

  void take(nb::handle o, int depth) {
    const Nesting level;
    if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
      const auto n = static_cast<std::int64_t>(nb::len(o));
      if (reals.empty() && shape.rank() == depth) shape.push_back(n);
      if (depth >= shape.rank() || shape[depth] != n) throw ShapeError("tensor: the lists are not of equal lengths");
      for (nb::handle each : o) take(each, depth + 1);
      return;
    }
    if (!is_number(o)) throw ValueError("tensor: a list of numbers holds " + dtype_text(o));
    if (depth != shape.rank()) throw ShapeError("tensor: the lists are not of equal lengths");
    const Scalar s = scalar_of(o);
    const bool is_bool = PyBool_Check(o.ptr()) || (nb::hasattr(o, "item") && PyBool_Check(o.attr("item")().ptr()));
    const Kind k = is_bool ? Kind::boolean : s.is_floating() ? Kind::floating : Kind::integer;
    kind = std::max(kind, k);
    reals.push_back(s.real());
    integers.push_back(s.integer());
  }

  Tensor tensor() const {
    if (kind == Kind::integer) return Tensor::from(integers, shape);
    if (kind == Kind::boolean)
      return Tensor::build<bool>(shape, [&](std::span<bool> out) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = integers[i] != 0;
      });
    return Tensor::build<float>(shape, [&](std::span<float> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(reals[i]);
    });
  }
};

/// Returns whether a list holds arrays or tensors, which are then stacked.
bool holds_arrays(nb::handle list) {
  const Nesting level;
  for (nb::handle each : list)
    if (is_tensor(each) || nb::ndarray_check(each)) return !is_number(each);
  return false;
}

}  // namespace

void refuse_object(nb::handle object, nb::handle wanted) {
  const auto name = [](nb::handle type) { return nb::cast<std::string>(type.attr("__name__")); };
  if (nb::cast<bool>(nb::module_::import_("builtins").attr("isinstance")(object, wanted)))
    throw nb::type_error(("this " + name(object.type()) +
                          " was not constructed: its __init__ must call "
                          "super().__init__() first")
                             .c_str());
  throw nb::type_error(("a " + name(wanted) + " is needed, not a " + name(object.type())).c_str());
}

bool is_variable(nb::handle object) { return nb::isinstance<Variable>(object) && nb::inst_ready(object); }
bool is_tensor(nb::handle object) { return nb::isinstance<Tensor>(object) || is_variable(object); }

bool is_number(nb::handle o) {
  if (PyFloat_Check(o.ptr()) || PyLong_Check(o.ptr())) return true;
  if (PyComplex_Check(o.ptr())) return true;
  // NumPy's scalars
  return !is_tensor(o) && nb::hasattr(o, "dtype") && nb::hasattr(o, "ndim") && nb::hasattr(o, "item") &&
         !nb::hasattr(o, "__setitem__") && nb::cast<int>(o.attr("ndim")) == 0;
}

Scalar scalar_of(nb::handle o) {
  nb::object item = nb::borrow(o);
  if (!PyFloat_Check(o.ptr()) && !PyLong_Check(o.ptr()) && !PyComplex_Check(o.ptr())) item = o.attr("item")();
  if (PyFloat_Check(item.ptr())) return PyFloat_AsDouble(item.ptr());
  if (PyLong_Check(item.ptr())) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
    if (overflow == 0) return static_cast<std::int64_t>(v);
    const double real = PyLong_AsDouble(item.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    return real;
  }
  refuse(o);
}

bool is_array_like(nb::handle o) {
  return !o.is_none() && !PyUnicode_Check(o.ptr()) && !PyBytes_Check(o.ptr()) && !PyDict_Check(o.ptr()) &&
         (is_number(o) || PyList_Check(o.ptr()) || PyTuple_Check(o.ptr()) || nb::ndarray_check(o) ||
          nb::hasattr(o, "__array__"));
}

Tensor tensor_of(nb::handle object, bool share) {
  if (nb::isinstance<Tensor>(object)) return *made<Tensor>(object);
  if (is_variable(object)) return made<Variable>(object)->value();
  if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    const Nesting level;
    if (holds_arrays(object)) {
      std::vector<Tensor> parts;
      for (nb::handle each : object) parts.push_back(tensor_of(each));
      return stack(parts);
    }
    Nested list;
    list.take(object, 0);
    return list.tensor();
  }
  if (is_number(object)) {
    if (nb::hasattr(object, "dtype")) return full({}, scalar_of(object), dtype_of_object(object.attr("dtype")));
    Nested one;
    one.take(object, 0);
    return one.tensor();
  }
  if (nb::ndarray_check(object)) return of_array(object, share);
  if (nb::hasattr(object, "__array__")) return of_array(object.attr("__array__")(), share);
  throw ValueError("tensor: neither an array nor a number nor a list of them: " + dtype_text(object));
}

namespace {

/// The names of dtypes besides the library's own.
const std::unordered_map<std::string, Dtype>& dtype_names() {
  static const std::unordered_map<std::string, Dtype> names = [] {
    std::unordered_map<std::string, Dtype> all{
        {"float32", Dtype::f32},  {"float64", Dtype::f64},   {"int32", Dtype::i32},   {"int64", Dtype::i64},
        {"bool", Dtype::boolean}, {"bfloat16", Dtype::bf16}, {"float16", Dtype::f16}, {"int8", Dtype::i8}};
    for (const Dtype t : kDtypes) all.emplace(name_of(t), t);
    return all;
  }();
  return names;
}

std::array<PyObject*, 11>& dtype_objects() {
  static std::array<PyObject*, 11> objects{};
  return objects;
}

}  // namespace

nb::object object_of(Dtype dtype) { return nb::borrow(dtype_objects()[static_cast<std::size_t>(dtype)]); }

Dtype dtype_of_object(nb::handle o) {
  if (nb::isinstance<DtypeObject>(o)) return made<DtypeObject>(o)->dtype;
  if (o.is(reinterpret_cast<PyObject*>(&PyFloat_Type))) return Dtype::f32;
  if (o.is(reinterpret_cast<PyObject*>(&PyLong_Type))) return Dtype::i64;
  if (o.is(reinterpret_cast<PyObject*>(&PyBool_Type))) return Dtype::boolean;
  std::string name = nb::cast<std::string>(PyType_Check(o.ptr()) ? nb::str(o.attr("__name__")) : nb::str(o));
  if (name.starts_with("torch.")) name = name.substr(6);
  const auto found = dtype_names().find(name);
  if (found == dtype_names().end())
    throw DtypeError("no tensor holds elements of dtype " + name +
                     "; known are float32, float64, float16, bfloat16, int64, int32, int8 and bool");
  return found->second;
}

nb::object named_tuple(const char* type, std::initializer_list<const char*> names,
                       std::initializer_list<nb::object> values) {
  static nb::dict& types = *new nb::dict();  // lives as long as the process
  if (!types.contains(type)) {
    nb::list fields;
    for (const char* n : names) fields.append(n);
    types[type] = nb::module_::import_("collections").attr("namedtuple")(type, fields);
  }
  nb::list all;
  for (const nb::object& v : values) all.append(v);
  return types[type](*all);
}

const char* summary_of(const char* operation, const char* comment) {
  for (const auto& all : {primitives(), composites(), nn::operations(), nn::composites()})
    for (const Primitive* p : all)
      if (p->name == operation) {
        static std::deque<std::string> kept;  // a summary need not end with a 0
        return kept.emplace_back(p->summary).c_str();
      }
  return comment;
}

void define_dtypes(nb::module_& m) {
  nb::class_<DtypeObject>(m, "Dtype", "The type of a tensor's elements, such as ``ferrite.f32``.")
      .def("__repr__",
           [](const DtypeObject& d) {
             return "ferrite." + std::string(d.dtype == Dtype::boolean ? "bool_" : name_of(d.dtype));
           })
      .def("__eq__",
           [](const DtypeObject& d, nb::handle o) {
             try {
               return dtype_of_object(o) == d.dtype;
             } catch (const DtypeError&) {
               return false;
             }
           })
      .def("__hash__", [](const DtypeObject& d) { return static_cast<int>(d.dtype); })
      .def("__reduce__",
           [](const DtypeObject& d) {
             return d.dtype == Dtype::boolean ? std::string("bool_") : std::string(name_of(d.dtype));
           })
      .def_prop_ro("name", [](const DtypeObject& d) { return std::string(name_of(d.dtype)); })
      .def_prop_ro("itemsize", [](const DtypeObject& d) { return size_of(d.dtype); });
  for (const Dtype t : kDtypes) {
    nb::object o = nb::cast(DtypeObject{t});
    m.attr(t == Dtype::boolean ? "bool_" : std::string(name_of(t)).c_str()) = o;
    dtype_objects()[static_cast<std::size_t>(t)] = o.release().ptr();
  }
}

}  // namespace ferrite::python
