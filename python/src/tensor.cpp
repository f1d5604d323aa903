// Tensors in Python: construction, NumPy and DLPack, operators and indexing.
#include <nanobind/ndarray.h>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scatter.h"
#include "module.h"

namespace ferrite::python {
namespace {

using nb::literals::operator""_a;

/// Returns a NumPy array on the elements of a tensor, which it keeps alive. It cannot be written to.
nb::object numpy_of(const Tensor& t) {
  if (t.is_abstract()) throw TraceError("numpy: a traced tensor has no elements yet");
  std::vector<std::size_t> shape(t.shape().begin(), t.shape().end());
  const std::vector<std::int64_t> strides(t.strides().begin(), t.strides().end());
  return visit_dtype(t.dtype(), [&](auto zero) -> nb::object {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bfloat16>) {
      throw DtypeError("numpy: NumPy has no bfloat16; cast to float32 first");
    } else {
      nb::object owner = nb::cast(t);
      const nb::dlpack::dtype type = [] {
        if constexpr (std::is_same_v<T, float16>)
          return nb::dlpack::dtype{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
        else
          return nb::dtype<T>();
      }();
      nb::ndarray<nb::numpy, nb::ro> a(t.raw(), shape.size(), shape.data(), owner, strides.data(), type);
      return nb::cast(a, nb::rv_policy::reference);
    }
  });
}

/// A tensor's elements for DLPack: a copy, as the taker may write to them, unless told otherwise.
nb::object dlpack_of(const Tensor& t, nb::handle copy) {
  if (t.is_abstract()) throw TraceError("dlpack: a traced tensor has no elements yet");
  const bool share = !copy.is_none() && !nb::cast<bool>(copy);
  Tensor out = t;
  if (!share) {
    out = Tensor::empty(t.spec());
    const Tensor rows = contiguous(t);
    std::memcpy(detail::Writer::raw(out), rows.raw(), static_cast<std::size_t>(t.numel() * size_of(t.dtype())));
  }
  std::vector<std::size_t> shape(out.shape().begin(), out.shape().end());
  const std::vector<std::int64_t> strides(out.strides().begin(), out.strides().end());
  return visit_dtype(out.dtype(), [&](auto zero) -> nb::object {
    using T = decltype(zero);
    using Code = nb::dlpack::dtype_code;
    nb::dlpack::dtype type;
    if constexpr (std::is_same_v<T, bfloat16>) {
      type = {static_cast<std::uint8_t>(Code::Bfloat), 16, 1};
    } else if constexpr (std::is_same_v<T, float16>) {
      type = {static_cast<std::uint8_t>(Code::Float), 16, 1};
    } else {
      type = nb::dtype<T>();
    }
    nb::ndarray<> a(const_cast<std::byte*>(out.raw()), shape.size(), shape.data(), nb::cast(out), strides.data(), type);
    return nb::cast(a, nb::rv_policy::reference);
  });
}

nb::object item_of(const Tensor& t) {
  if (t.numel() != 1)
    throw ShapeError("item: the tensor has " + std::to_string(t.numel()) + " elements, not one: " + t.spec().str());
  const Tensor c =
      contiguous(is_storage_only(t.dtype()) ? cast(t, t.dtype() == Dtype::i8 ? Dtype::i64 : Dtype::f32) : t);
  return visit_computed(c.dtype(), [&](auto zero) -> nb::object { return nb::cast(c.item<decltype(zero)>()); });
}

nb::object list_of(const Tensor& t) {
  if (t.rank() == 0) return item_of(t);
  nb::list all;
  for (std::int64_t i = 0; i < t.size(0); ++i) all.append(list_of(t[i]));
  return all;
}

// ---- indexing ------------------------------------------------------------------------------------------

std::optional<std::int64_t> bound(nb::handle o) {
  if (o.is_none()) return {};
  return nb::cast<std::int64_t>(o.attr("__index__")());
}

Tensor take_slice(const Tensor& x, std::int64_t axis, nb::handle s) {
  const std::optional<std::int64_t> begin = bound(s.attr("start")), end = bound(s.attr("stop")),
                                    step = bound(s.attr("step"));
  const std::int64_t by = step.value_or(1);
  if (by == 0) throw ValueError("index: a slice cannot have step 0");
  if (!begin && !end && by == 1) return x;
  return slice(x, axis, begin.value_or(by > 0 ? 0 : kEnd), end.value_or(kEnd), by);
}

bool is_index(nb::handle o) {
  return !PyBool_Check(o.ptr()) && !is_tensor(o) && !PyList_Check(o.ptr()) && PyIndex_Check(o.ptr()) &&
         !(nb::hasattr(o, "ndim") && nb::cast<int>(o.attr("ndim")) > 0);
}

/// Takes the elements of an axis that a rank-1 list, array or tensor of positions, or of truth values, names.
Tensor take_list(const Tensor& x, std::int64_t axis, nb::handle o) {
  Tensor index = tensor_of(o);
  if (index.dtype() == Dtype::boolean) {
    if (index.rank() > 1) throw ShapeError("index: a mask of several axes; use masked_select, or reshape first");
    if (index.numel() != x.size(static_cast<int>(axis)))
      throw ShapeError("index: a mask of " + std::to_string(index.numel()) + " for an axis of " +
                       std::to_string(x.size(static_cast<int>(axis))));
    const std::vector<bool> mask = index.to_vector<bool>();
    std::vector<std::int64_t> at;
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (mask[i]) at.push_back(static_cast<std::int64_t>(i));
    index = Tensor::from(at);
  }
  if (index.numel() == 0 && index.dtype() == Dtype::f32) index = cast(index, Dtype::i64);  // an empty list
  if (index.rank() == 1) return index_select(x, axis, index);
  // An index of several axes replaces the axis by its own.
  const Tensor flat = index_select(x, axis, reshape(index, {-1}));
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.shape()[i]);
  for (const std::int64_t e : index.shape()) shape.push_back(e);
  for (int i = static_cast<int>(axis) + 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  return reshape(flat, shape);
}

Tensor item_at(const Tensor& self, nb::handle key) {
  const nb::tuple keys = PyTuple_Check(key.ptr()) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  std::int64_t given = 0, dots = 0, lists = 0;
  for (nb::handle k : keys) {
    dots += k.ptr() == Py_Ellipsis;
    given += k.ptr() != Py_Ellipsis && !k.is_none();
  }
  if (dots > 1) throw ValueError("index: two ellipses");
  if (given > self.rank())
    throw nb::index_error((std::to_string(given) + " indices for a tensor of " + std::to_string(self.rank()) +
                           " axes: " + self.spec().str())
                              .c_str());
  Tensor x = self;
  // NumPy moves the axes of lists to the front where something separates them from an integer: not supported.
  int groups = 0;
  bool advanced = false, any_list = false;
  for (nb::handle k : keys) {
    const bool slice = k.ptr() == Py_Ellipsis || k.is_none() || PySlice_Check(k.ptr());
    groups += !slice && !advanced;
    advanced = !slice;
    any_list |= !slice && !is_index(k);
  }
  if (any_list && groups > 1)
    throw ValueError("index: a slice between a list of positions and another index; index in two steps");
  std::int64_t axis = 0;
  for (nb::handle k : keys) {
    if (k.ptr() == Py_Ellipsis) {
      axis += self.rank() - given;
    } else if (k.is_none()) {
      x = unsqueeze(x, axis++);
    } else if (PySlice_Check(k.ptr())) {
      x = take_slice(x, axis, k);
      ++axis;
    } else if (is_index(k)) {
      const std::int64_t i = *bound(k), n = x.size(static_cast<int>(axis));
      if (i < -n || i >= n)
        throw nb::index_error(("index " + std::to_string(i) + " lies outside an axis of " + std::to_string(n)).c_str());
      x = select(x, axis, i);
    } else if (PyList_Check(k.ptr()) || is_array_like(k) || is_tensor(k)) {
      if (++lists > 1) throw ValueError("index: one list or array of positions at a time; index in two steps");
      const int before = x.rank();
      x = take_list(x, axis, k);
      axis += 1 + x.rank() - before;
    } else {
      throw nb::type_error("an index is an integer, a slice, ..., None, or a list or array of integers or bools");
    }
  }
  return x;
}

bool truth_of(const Tensor& t) {
  if (t.numel() != 1)
    throw nb::value_error("a tensor of several elements is neither true nor false; use any() or all()");
  return nb::cast<bool>(item_of(t).attr("__bool__")());
}

std::string text_of(const Tensor& t) {
  if (t.is_abstract()) return "tensor(traced " + t.spec().str() + ")";
  std::string text = "tensor(" + t.str();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 8))
    text.replace(at, 1, "\n       ");
  return text + (t.dtype() == Dtype::f32 ? "" : ", dtype=" + std::string(name_of(t.dtype()))) + ")";
}

using Binary = Tensor (*)(const Operand&, const Operand&);

Tensor same_as(const Operand& a, const Operand& b) { return eq(a, b); }

/// Defines an operator of two operands, the tensor on its left.
template <Binary f, class C>
void binary(C& c, const char* name) {
  c.def(
      name,
      [](const Tensor& a, const OperandArgument& b) {
        // A comparison with a number counts true as 1; the number would become a bool.
        if constexpr (f == lt || f == le || f == gt || f == ge || f == same_as || f == ne)
          if (a.dtype() == Dtype::boolean && b.operand().is_literal()) return f(cast(a, Dtype::i64), b.operand());
        return f(a, b.operand());
      },
      nb::is_operator(), Call());
}
template <Binary f, class C>
void reflected(C& c, const char* name) {
  c.def(
      name, [](const Tensor& b, const OperandArgument& a) { return f(a.operand(), b); }, nb::is_operator(), Call());
}

/// Defines the operators of tensors, which variables have too.
template <class C>
void define_operators(C& c) {
  binary<add>(c, "__add__"), reflected<add>(c, "__radd__");
  binary<sub>(c, "__sub__"), reflected<sub>(c, "__rsub__");
  binary<mul>(c, "__mul__"), reflected<mul>(c, "__rmul__");
  binary<div>(c, "__truediv__"), reflected<div>(c, "__rtruediv__");
  binary<pow>(c, "__pow__"), reflected<pow>(c, "__rpow__");
  binary<lt>(c, "__lt__"), binary<le>(c, "__le__"), binary<gt>(c, "__gt__"), binary<ge>(c, "__ge__");
  c.def(
      "__matmul__", [](const Tensor& a, const Tensor& b) { return matmul(a, b); }, nb::is_operator(), Call());
  c.def(
      "__rmatmul__", [](const Tensor& b, const Tensor& a) { return matmul(a, b); }, nb::is_operator(), Call());
  c.def(
      "__and__", [](const Tensor& a, const Tensor& b) { return a && b; }, nb::is_operator(), Call());
  c.def(
      "__or__", [](const Tensor& a, const Tensor& b) { return a || b; }, nb::is_operator(), Call());
  c.def(
      "__rand__", [](const Tensor& a, const Tensor& b) { return b && a; }, nb::is_operator(), Call());
  c.def(
      "__ror__", [](const Tensor& a, const Tensor& b) { return b || a; }, nb::is_operator(), Call());
  c.def(
      "__xor__", [](const Tensor& a, const Tensor& b) { return (a || b) && !(a && b); }, nb::is_operator(), Call());
  c.def(
      "__invert__", [](const Tensor& a) { return !a; }, Call());
  c.def(
      "__neg__", [](const Tensor& a) { return neg(a); }, Call());
  c.def("__pos__", [](const Tensor& a) { return a; });
  c.def(
      "__abs__", [](const Tensor& a) { return abs(a); }, Call());
}

void define_variables(nb::module_& m) {
  nb::class_<Variable> v(m, "Variable",
                         "A named, mutable place for a tensor: the only thing in the library that changes.");
  v.def_prop_ro(
      "name", [](const Variable& x) { return x.name(); }, "The dotted name in the model.");
  v.def_prop_ro(
      "shape", [](const Variable& x) { return x.shape(); }, "The extents, outermost first.");
  v.def_prop_ro(
      "dtype", [](const Variable& x) { return x.dtype(); }, "The type of the elements.");
  v.def_prop_ro(
      "ndim", [](const Variable& x) { return x.shape().rank(); }, "The number of axes.");
  v.def_prop_ro(
      "size", [](const Variable& x) { return x.numel(); }, "The number of elements.");
  v.def_prop_ro(
      "value", [](const Variable& x) { return x.value(); }, "The present value, as tapes and tracers see it.");
  v.def(
      "assign", [](const Variable& x, const Tensor& t) { x.assign(t); }, "value"_a, Call(),
      "Sets a new value of the same shape and dtype.");
  v.def(
      "tie", [](const Variable& x, const Variable& o) { x.tie(o); }, "other"_a,
      "Makes this variable and another one, whose value and name are then those of the other.");
  v.def(
      "numpy", [](const Variable& x) { return numpy_of(x.peek()); },
      "Returns the present value as a NumPy array, which cannot be written to.");
  v.def(
      "item", [](const Variable& x) { return item_of(x.peek()); }, "Returns the only element as a Python number.");
  v.def(
      "__array__",
      [](const Variable& x, nb::handle dtype, nb::handle copy) {
        return nb::cast(x.peek()).attr("__array__")(dtype, copy);
      },
      "dtype"_a = nb::none(), "copy"_a = nb::none());
  v.attr("__array_ufunc__") = nb::none();
  v.def(
      "__getitem__", [](const Variable& x, nb::handle key) { return item_at(x.value(), key); }, "key"_a.none());
  v.def("__len__", [](const Variable& x) {
    return x.shape().rank() > 0 ? x.shape()[0] : throw nb::type_error("a variable without axes has no length");
  });
  v.def("__eq__",
        [](const Variable& x, nb::handle o) { return nb::isinstance<Variable>(o) && *made<Variable>(o) == x; });
  v.def("__hash__", [](const Variable& x) { return reinterpret_cast<std::intptr_t>(x.identity()) >> 4; });
  v.def("__repr__", [](nb::handle self) {
    const Variable& x = *made<Variable>(self);
    const std::string kind = nb::cast<std::string>(self.type().attr("__name__"));
    return kind + "(" + (x.name().empty() ? "" : x.name() + ", ") + x.spec().str() + ")";
  });
  define_operators(v);
  nb::class_<Parameter, Variable>(m, "Parameter", "A variable that is trained.")
      .def(
          "__init__",
          [](Parameter* self, const Tensor& value, std::string name) { new (self) Parameter(std::move(name), value); },
          "value"_a, "name"_a = "");
  nb::class_<Buffer, Variable>(m, "Buffer", "A variable that is saved with its model but not trained.")
      .def(
          "__init__",
          [](Buffer* self, const Tensor& value, std::string name) { new (self) Buffer(std::move(name), value); },
          "value"_a, "name"_a = "");
  nb::class_<State, Variable>(m, "State", "A variable of an optimiser or a generator.")
      .def(
          "__init__",
          [](State* self, const Tensor& value, std::string name) { new (self) State(std::move(name), value); },
          "value"_a, "name"_a = "");
}

}  // namespace

void define_tensor(nb::module_& m) {
  nb::class_<Tensor> c(
      m, "Tensor", nb::is_weak_referenceable(),
      "An immutable array of numbers of one dtype. No operation changes a tensor; views share elements.\n\n"
      "Made by ``ferrite.tensor`` (a copy) or ``ferrite.asarray`` (without a copy where that is possible).");
  c.def_prop_ro(
      "shape", [](const Tensor& t) { return t.shape(); }, "The extents, outermost first.");
  c.def_prop_ro(
      "strides", [](const Tensor& t) { return t.strides(); }, "The strides, in elements.");
  c.def_prop_ro(
      "dtype", [](const Tensor& t) { return t.dtype(); }, "The type of the elements.");
  c.def_prop_ro(
      "ndim", [](const Tensor& t) { return t.rank(); }, "The number of axes.");
  c.def_prop_ro(
      "size", [](const Tensor& t) { return t.numel(); }, "The number of elements.");
  c.def_prop_ro(
      "T", [](const Tensor& t) { return transpose(t); }, "The tensor with its last two axes exchanged.");
  c.def("numpy", numpy_of, "Returns a NumPy array on the same elements, which cannot be written to.");
  c.def(
      "__array__",
      [](const Tensor& t, nb::handle dtype, nb::handle copy) {
        nb::object a = numpy_of(t);
        if (!dtype.is_none()) a = a.attr("astype")(dtype, "copy"_a = false);
        if (!copy.is_none() && nb::cast<bool>(copy)) a = a.attr("copy")();
        return a;
      },
      "dtype"_a = nb::none(), "copy"_a = nb::none());
  c.attr("__array_ufunc__") = nb::none();  // NumPy leaves operators between arrays and tensors to tensors
  c.def(
      "__dlpack__",
      [](const Tensor& t, nb::handle, nb::handle, nb::handle, nb::handle copy) { return dlpack_of(t, copy); },
      nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(), "dl_device"_a = nb::none(),
      "copy"_a = nb::none(),
      "Returns a DLPack capsule of a copy of the elements; of the elements themselves with ``copy=False``.");
  c.def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(nb::device::cpu::value, 0); });
  c.def("item", item_of, "Returns the only element as a Python number.");
  c.def("tolist", list_of, "Returns the elements as nested lists.");
  c.def("__getitem__", item_at, "key"_a.none());
  c.def("__len__", [](const Tensor& t) {
    if (t.rank() == 0) throw nb::type_error("a tensor without axes has no length");
    return t.size(0);
  });
  c.def("__iter__", [](const Tensor& t) {
    if (t.rank() == 0) throw nb::type_error("a tensor without axes cannot be iterated over");
    return nb::cast(unbind(t)).attr("__iter__")();
  });
  c.def("__bool__", truth_of);
  c.def("__float__", [](const Tensor& t) { return nb::float_(item_of(t)); });
  c.def("__int__", [](const Tensor& t) { return nb::int_(item_of(t)); });
  c.def("__index__", [](const Tensor& t) {
    if (t.dtype() != Dtype::i64 && t.dtype() != Dtype::i32)
      throw nb::type_error("only a tensor of one integer is an index");
    return item_of(t);
  });
  c.def("__repr__", text_of);
  c.def("__hash__", [](const Tensor& t) { return reinterpret_cast<std::intptr_t>(t.identity()) >> 4; });
  c.def("__copy__", [](const Tensor& t) { return t; });
  c.def(
      "__deepcopy__", [](const Tensor& t, nb::handle) { return t; }, "memo"_a);
  c.def("__reduce__", [](const Tensor& t) {
    const nb::object make = nb::module_::import_("ferrite").attr("_unpickled");
    const bool stored = t.dtype() == Dtype::bf16;
    return nb::make_tuple(make, nb::make_tuple(numpy_of(stored ? cast(t, Dtype::f32) : t), object_of(t.dtype())));
  });
  define_operators(c);
  binary<same_as>(c, "__eq__"), binary<ne>(c, "__ne__");
  c.def(
      "astype", [](const Tensor& a, Dtype t) { return cast(a, t); }, "dtype"_a, Call(),
      "Returns the tensor converted to a dtype.");

  m.def(
      "tensor",
      [](nb::handle data, nb::handle dtype) {
        Tensor t = tensor_of(data);
        return dtype.is_none() ? t : cast(t, dtype_of_object(dtype));
      },
      "data"_a, "dtype"_a = nb::none(),
      nb::sig("def tensor(data: object, dtype: Dtype | DTypeLike | None = None) -> Tensor"),
      "Returns a tensor of a copy of an array, a number or nested lists. Floats in lists become f32, integers i64.");
  m.def(
      "asarray", [](nb::handle data) { return tensor_of(data, true); }, "data"_a,
      nb::sig("def asarray(data: object) -> Tensor"),
      "Returns a tensor on the elements of an array, NumPy's or any with DLPack, without a copy where kernels can "
      "read\n"
      "them in place: row-major elements beyond whose end memory may be read. Otherwise they are copied. Writes to "
      "the\n"
      "array may then be seen by the tensor, and by results that a gradient still needs.");
  define_variables(m);
  m.def(
      "shares_memory",
      [](const Tensor& t, nb::handle array) {
        nb::ndarray<nb::ro> a = nb::cast<nb::ndarray<nb::ro>>(array);
        return static_cast<const void*>(t.raw()) == a.data();
      },
      "tensor"_a, "array"_a, "Returns whether the first elements of a tensor and of an array lie at the same address.");
}

}  // namespace ferrite::python
