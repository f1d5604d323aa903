// Recurrent layers on the memory of PyTorch's tensors: what ferrite/torch calls. Layers have PyTorch's layout of
// weights, which are packed again in each call, so that no change of them can be missed.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "ferrite/tensor/threads.h"
#include "module.h"
#include "torch_layers.h"

namespace ferrite::python {
namespace {

// ---- calls from Python ---------------------------------------------------------------------------------

/// Names and objects of PyTorch that each call needs, made once.
struct Torch {
  nb::object tensor, parameter, f32, f64, strided;
  nb::object threads, transforms, modes, functions, autocast, tracing, forward_ad;  ///< what says that others watch
  nb::str cpu = nb::str("cpu");
};
Torch* torch = nullptr;

/// The attributes and methods of tensors that calls use.
enum Name : std::size_t {
  kDtype,
  kIsCpu,
  kLayout,
  kIsNeg,
  kIsZero,
  kShape,
  kStride,
  kDataPtr,
  kIsContiguous,
  kContiguous,
  kRequiresGrad,
  kNewEmpty,
  kNewEmptyStrided,
  kLevel,
  kNames
};
/// Returns the interned texts of the names.
const std::array<PyObject*, kNames>& names() {
  static const std::array<PyObject*, kNames> all = [] {
    constexpr std::array<const char*, kNames> texts = {"dtype",
                                                       "is_cpu",
                                                       "layout",
                                                       "is_neg",
                                                       "_is_zerotensor",
                                                       "shape",
                                                       "stride",
                                                       "data_ptr",
                                                       "is_contiguous",
                                                       "contiguous",
                                                       "requires_grad",
                                                       "new_empty",
                                                       "new_empty_strided",
                                                       "_current_level"};
    std::array<PyObject*, kNames> made{};
    for (std::size_t i = 0; i < kNames; ++i) made[i] = PyUnicode_InternFromString(texts[i]);
    return made;
  }();
  return all;
}

/// Takes a new reference; throws Python's error if there is none.
nb::object owned(PyObject* o) {
  if (!o) throw nb::python_error();
  return nb::steal(o);
}
nb::object get(nb::handle o, Name name) { return owned(PyObject_GetAttr(o.ptr(), names()[name])); }
/// Calls a method with up to two arguments.
template <class... Args>
nb::object call(nb::handle o, Name name, Args... args) {
  PyObject* all[] = {o.ptr(), args.ptr()...};
  return owned(PyObject_VectorcallMethod(names()[name], all, std::size(all), nullptr));
}
nb::object call_function(nb::handle f) { return owned(PyObject_CallNoArgs(f.ptr())); }
bool is_true(const nb::object& o) { return o.ptr() == Py_True; }

/// The numbers of a tuple, of which at most 4 are kept.
struct Numbers {
  int n = 0;
  std::array<std::int64_t, 4> at{};
  std::int64_t operator[](int i) const { return at[static_cast<std::size_t>(i)]; }
  bool is(std::initializer_list<std::int64_t> other) const {
    return n == static_cast<int>(other.size()) && std::equal(other.begin(), other.end(), at.begin());
  }
};
Numbers numbers(const nb::object& tuple) {
  Numbers r;
  const Py_ssize_t n = PyTuple_Size(tuple.ptr());
  r.n = static_cast<int>(n);
  for (Py_ssize_t i = 0; i < std::min<Py_ssize_t>(n, 4); ++i)
    r.at[static_cast<std::size_t>(i)] = PyLong_AsLongLong(PyTuple_GetItem(tuple.ptr(), i));
  if (PyErr_Occurred()) throw nb::python_error();
  return r;
}
template <class T>
T* pointer(nb::handle o) {
  const nb::object n = call(o, kDataPtr);
  void* p = PyLong_AsVoidPtr(n.ptr());
  if (!p && PyErr_Occurred()) throw nb::python_error();
  return static_cast<T*>(p);
}
nb::object tuple_of(std::initializer_list<std::int64_t> all) {
  PyObject* t = PyTuple_New(static_cast<Py_ssize_t>(all.size()));
  Py_ssize_t i = 0;
  for (const std::int64_t n : all) PyTuple_SetItem(t, i++, PyLong_FromLongLong(n));
  return nb::steal(t);
}

/// Why a call is left to PyTorch; `none` if it is not.
enum class Reason : std::uint8_t {
  none,
  transform,
  mode,
  autocast,
  forward_ad,
  tracing,
  function_mode,
  subclass,
  device,
  layout,
  dtype,
  empty,
  shape,
  slower,
  count
};
constexpr const char* kReasons[] = {"ferrite", "transform",     "dispatch mode", "autocast", "forward-mode AD",
                                    "tracing", "function mode", "subclass",      "device",   "layout",
                                    "dtype",   "empty",         "shape",         "slower"};
static_assert(std::size(kReasons) == static_cast<std::size_t>(Reason::count));
std::array<std::atomic<std::int64_t>, std::size_t(Reason::count)> counts{};
thread_local Reason last = Reason::none;

/// Returns why a tensor is not a plain one in memory that can be read (a subclass, on a device, not strided, of another
/// dtype), or none.
Reason plain(nb::handle t, nb::handle dtype) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(t.ptr()));
  if (type != torch->tensor.ptr() && type != torch->parameter.ptr()) return Reason::subclass;
  if (!get(t, kDtype).is(dtype)) return Reason::dtype;
  if (!is_true(get(t, kIsCpu))) return Reason::device;
  if (!get(t, kLayout).is(torch->strided)) return Reason::layout;
  if (is_true(call(t, kIsNeg)) || is_true(call(t, kIsZero))) return Reason::layout;
  return Reason::none;
}

/// Returns what watches this thread besides autograd, or none.
Reason watched(bool modules) {
  if (!call_function(torch->transforms).is_none()) return Reason::transform;
  if (PyObject_IsTrue(call_function(torch->modes).ptr())) return Reason::mode;
  PyObject* args[] = {torch->cpu.ptr()};
  if (is_true(owned(PyObject_Vectorcall(torch->autocast.ptr(), args, 1, nullptr)))) return Reason::autocast;
  if (PyLong_AsLong(get(torch->forward_ad, kLevel).ptr()) >= 0) return Reason::forward_ad;
  if (!call_function(torch->tracing).is_none()) return Reason::tracing;
  if (modules && PyObject_IsTrue(call_function(torch->functions).ptr())) return Reason::function_mode;
  return Reason::none;
}

/// One call of a stack of layers: its sizes, and while it runs its operands.
class LayerCall {
 public:
  Sizes sizes;
  bool is_double = false, batch_first = false, batched = true, packed = false;
  bool wants_grad = false;

  /// Finds the memory of the operands. Their sizes must have been checked.
  template <class T>
  Operands<T> operands(nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0, nb::handle weights) {
    Operands<T> o;
    nb::object rows = nb::borrow(x);
    Numbers stride = numbers(call(rows, kStride));
    if (sizes.D > 1 && stride[stride.n - 1] != 1) {
      rows = call(rows, kContiguous);
      stride = numbers(call(rows, kStride));
      keep(rows);
    }
    o.x.data = pointer<const T>(rows);
    if (packed) {
      o.x.row = stride[0];
      o.batch_sizes = pointer<const std::int64_t>(row_major(batch_sizes));
    } else if (!batched) {
      o.x.step = stride[0], o.x.row = 0;
    } else {
      o.x.step = stride[batch_first ? 1 : 0], o.x.row = stride[batch_first ? 0 : 1];
    }
    o.x_bytes = ((sizes.T - 1) * o.x.step + (sizes.B - 1) * o.x.row + sizes.D) * static_cast<std::int64_t>(sizeof(T));
    if (!h0.is_none()) o.h0 = pointer<const T>(row_major(h0));
    if (!c0.is_none()) o.c0 = pointer<const T>(row_major(c0));
    o.weights.reserve(static_cast<std::size_t>(sizes.count() * sizes.weights_each()));
    const Py_ssize_t n = PySequence_Size(weights.ptr());
    for (Py_ssize_t i = 0; i < n; ++i) o.weights.push_back(pointer<const T>(row_major(item(weights, i))));
    return o;
  }
  static nb::handle item(nb::handle list, Py_ssize_t i) {
    return PyList_Check(list.ptr()) ? PyList_GetItem(list.ptr(), i) : PyTuple_GetItem(list.ptr(), i);
  }
  /// Returns a row-major version of a tensor, which lives as long as this call.
  nb::object row_major(nb::handle t) {
    if (is_true(call(t, kIsContiguous))) return nb::borrow(t);
    nb::object copy = call(t, kContiguous);
    keep(copy);
    return copy;
  }
  void keep(const nb::object& o) { kept_.push_back(o); }
  void drop() { kept_.clear(); }

 private:
  std::vector<nb::object> kept_{};
};

/// Returns whether PyTorch runs these sizes faster, by measurement (bench/python/torch_recurrent.py): few steps of
/// large layers read each weight so seldom that packing it costs more than the steps. Its LSTM is oneDNN's, which packs
/// weights, too, and whose products of few rows with large weights are faster.
bool torch_is_faster(const Sizes& s, bool with_gradient, bool is_double) {
  const bool of_onednn = s.cell->has_memory && s.P == s.H && !is_double;
  if (s.T > 4 && !of_onednn) return false;
  std::int64_t most = 0;
  for (std::int64_t l = 0; l < std::min<std::int64_t>(s.layers, 2); ++l)
    most = std::max(most, s.columns() * (s.features_into(l) + s.P));
  if (of_onednn) {
    if (most < 400'000) return false;
    if (with_gradient) return s.B <= 16 && s.T >= 4;
    return s.B <= (most >= 1'500'000 ? 48 : 16) && s.T * s.B >= 20;
  }
  if (!with_gradient) return s.T == 1 && most >= 1'000'000;
  return most >= (s.T == 1 ? 120'000 : s.T == 2 ? 350'000 : 2'000'000);
}

/// Makes large calls use as many threads as PyTorch does.
void follow_threads(const Sizes& s) {
  if (s.T * s.B * s.columns() * (s.D + s.P) < ferrite::detail::kWorthSharing) return;
  const long n = PyLong_AsLong(call_function(torch->threads).ptr());
  if (n >= 1 && n != thread_count()) set_threads(static_cast<int>(std::min<long>(n, 1024)));
}

/// Checks the operands; returns the reason to leave the call to PyTorch, or none and fills `c`.
Reason check(LayerCall& c, int kind, nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0,
             nb::handle weights, bool bias, std::int64_t layers, bool bidirectional, bool batch_first,
             bool grad_enabled, bool modules) {
  if (const Reason r = watched(modules); r != Reason::none) return r;
  Sizes& s = c.sizes;
  s.cell = kCells[kind];
  s.layers = layers, s.directions = bidirectional ? 2 : 1, s.bias = bias;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
  if (type != torch->tensor.ptr() && type != torch->parameter.ptr()) return Reason::subclass;
  const nb::object dtype = get(x, kDtype);
  c.is_double = dtype.is(torch->f64);
  if (!c.is_double && !dtype.is(torch->f32)) return Reason::dtype;
  if (const Reason r = plain(x, dtype); r != Reason::none) return r;
  const Numbers shape = numbers(get(x, kShape));
  c.packed = !batch_sizes.is_none();
  c.batched = shape.n == 3;
  c.batch_first = batch_first && c.batched && !c.packed;
  if (c.packed) {
    if (shape.n != 2) return Reason::shape;
    const Numbers steps = numbers(get(batch_sizes, kShape));
    s.T = steps[0];
    if (s.T == 0) return Reason::empty;
    const nb::object sorted = c.row_major(batch_sizes);
    const auto* sizes = pointer<const std::int64_t>(sorted);
    s.B = sizes[0];
    std::int64_t all = 0;
    for (std::int64_t t = 0; t < s.T; ++t) {
      if (sizes[t] < 1 || (t > 0 && sizes[t] > sizes[t - 1])) return Reason::shape;
      all += sizes[t];
    }
    if (all != shape[0]) return Reason::shape;
    c.drop();
  } else if (shape.n == 3) {
    s.T = shape[batch_first ? 1 : 0], s.B = shape[batch_first ? 0 : 1];
  } else if (shape.n == 2 && modules) {
    s.T = shape[0], s.B = 1;
  } else {
    return Reason::shape;
  }
  s.D = shape[shape.n - 1];
  if (s.T == 0 || s.B == 0 || s.D == 0) return Reason::empty;

  bool wants = grad_enabled && is_true(get(x, kRequiresGrad));
  const Py_ssize_t n = PySequence_Size(weights.ptr());
  if (n < 2) return Reason::shape;
  const Numbers hh = numbers(get(LayerCall::item(weights, 1), kShape));
  if (hh.n != 2 || hh[0] % s.cell->gates != 0 || hh[0] == 0 || hh[1] == 0) return Reason::shape;
  s.H = hh[0] / s.cell->gates;
  s.P = hh[1];
  if (s.P != s.H && (!s.cell->projects || s.P > s.H)) return Reason::shape;
  if (n != s.count() * s.weights_each()) return Reason::shape;
  Py_ssize_t at = 0;
  for (std::int64_t l = 0; l < layers; ++l)
    for (std::int64_t d = 0; d < s.directions; ++d)
      for (std::int64_t k = 0; k < s.weights_each(); ++k, ++at) {
        const nb::handle w = LayerCall::item(weights, at);
        if (const Reason r = plain(w, dtype); r != Reason::none) return r;
        const Numbers is = numbers(get(w, kShape));
        const bool fits = k == 0            ? is.is({s.columns(), s.features_into(l)})
                          : k == 1          ? is.is({s.columns(), s.P})
                          : k == 4 || !bias ? is.is({s.P, s.H})
                                            : is.is({s.columns()});
        if (!fits) return Reason::shape;
        if (grad_enabled && !wants) wants = is_true(get(w, kRequiresGrad));
      }
  const auto state = [&](nb::handle h, std::int64_t width) {
    if (h.is_none()) return Reason::none;
    if (const Reason r = plain(h, dtype); r != Reason::none) return r;
    const Numbers is = numbers(get(h, kShape));
    if (c.batched || c.packed ? !is.is({s.count(), s.B, width}) : !is.is({s.count(), width})) return Reason::shape;
    if (grad_enabled && !wants) wants = is_true(get(h, kRequiresGrad));
    return Reason::none;
  };
  if (const Reason r = state(h0, s.P); r != Reason::none) return r;
  if (const Reason r = state(c0, s.H); r != Reason::none) return r;
  c.wants_grad = wants;
  if (torch_is_faster(s, wants, c.is_double)) return Reason::slower;
  return Reason::none;
}

/// Allocates an uninitialised tensor of x's dtype.
nb::object empty(nb::handle like, std::initializer_list<std::int64_t> shape) {
  return call(like, kNewEmpty, tuple_of(shape));
}

template <class T>
nb::object forward_of(LayerCall& c, nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0,
                      nb::handle weights, bool save) {
  const Sizes& s = c.sizes;
  const Operands<T> o = c.operands<T>(x, batch_sizes, h0, c0, weights);
  const std::int64_t W = s.width();
  nb::object y = c.packed        ? empty(x, {numbers(get(x, kShape))[0], W})
                 : !c.batched    ? empty(x, {s.T, W})
                 : c.batch_first ? call(x, kNewEmptyStrided, tuple_of({s.B, s.T, W}), tuple_of({W, s.B * W, 1}))
                                 : empty(x, {s.T, s.B, W});
  const auto state = [&](std::int64_t width) {
    return c.batched || c.packed ? empty(x, {s.count(), s.B, width}) : empty(x, {s.count(), width});
  };
  nb::object h = state(s.P), memory, saved;
  if (s.cell->has_memory) memory = state(s.H);
  if (save) saved = empty(x, {Saved(s).all});
  T *const py = pointer<T>(y), *const ph = pointer<T>(h), *const pc = memory ? pointer<T>(memory) : nullptr,
           *const ps = saved ? pointer<T>(saved) : nullptr;
  follow_threads(s);
  run([&] { run_forward<T>(s, o, py, ph, pc, ps); });
  c.drop();
  const Py_ssize_t n = (s.cell->has_memory ? 3 : 2) + (save ? 1 : 0);
  PyObject* result = PyTuple_New(n);
  Py_ssize_t i = 0;
  PyTuple_SetItem(result, i++, y.release().ptr());
  PyTuple_SetItem(result, i++, h.release().ptr());
  if (s.cell->has_memory) PyTuple_SetItem(result, i++, memory.release().ptr());
  if (save) PyTuple_SetItem(result, i++, saved.release().ptr());
  return nb::steal(result);
}

template <class T>
nb::object backward_of(LayerCall& c, nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0,
                       nb::handle weights, nb::handle saved, nb::handle dy, nb::handle dhn, nb::handle dcn,
                       nb::handle wants) {
  const Sizes& s = c.sizes;
  for (const nb::handle d : {dy, dhn, dcn})
    if (!d.is_none() && plain(d, c.is_double ? torch->f64 : torch->f32) != Reason::none) return nb::none();
  const Operands<T> o = c.operands<T>(x, batch_sizes, h0, c0, weights);
  // `wants` and the result have the places x, h0, c0, weights.
  const auto wanted = [&](Py_ssize_t i) { return PyTuple_GetItem(wants.ptr(), i) == Py_True; };
  Gradients<T> g;
  g.batch_first = c.batch_first;
  if (!dy.is_none()) {
    nb::object d = nb::borrow(dy);
    Numbers stride = numbers(call(d, kStride));
    if (s.width() > 1 && stride[stride.n - 1] != 1) {
      d = call(d, kContiguous);
      c.keep(d);
      stride = numbers(call(d, kStride));
    }
    g.dy.data = pointer<const T>(d);
    if (c.packed)
      g.dy.row = stride[0];
    else if (!c.batched)
      g.dy.step = stride[0];
    else
      g.dy.step = stride[c.batch_first ? 1 : 0], g.dy.row = stride[c.batch_first ? 0 : 1];
  }
  if (!dhn.is_none()) g.dhn = pointer<const T>(c.row_major(dhn));
  if (!dcn.is_none()) g.dcn = pointer<const T>(c.row_major(dcn));
  const Py_ssize_t n = 3 + PySequence_Size(weights.ptr());
  nb::object result = nb::steal(PyTuple_New(n));
  const auto made = [&](Py_ssize_t i, nb::handle like) -> T* {
    nb::object grad = call(like, kNewEmpty, get(like, kShape));
    T* const p = pointer<T>(grad);
    PyTuple_SetItem(result.ptr(), i, grad.release().ptr());
    return p;
  };
  const auto absent = [&](Py_ssize_t i) { PyTuple_SetItem(result.ptr(), i, nb::none().release().ptr()); };
  if (wanted(0))
    g.dx = made(0, x);
  else
    absent(0);
  if (wanted(1))
    g.dh0 = made(1, h0);
  else
    absent(1);
  if (wanted(2))
    g.dc0 = made(2, c0);
  else
    absent(2);
  // The last outputs of a projection reach nothing but y and hn.
  const bool unread = s.P != s.H && s.T == 1 && dy.is_none() && dhn.is_none();
  for (Py_ssize_t i = 3; i < n; ++i) {
    const std::int64_t each = s.weights_each();
    const bool projects = s.P != s.H && (i - 3) % each == each - 1;
    const bool unreached = unread && projects && (i - 3) / each >= (s.layers - 1) * s.directions;
    if (wanted(i) && !unreached) {
      g.weights.push_back(made(i, LayerCall::item(weights, i - 3)));
    } else {
      g.weights.push_back(nullptr);
      absent(i);
    }
  }
  const T* const ps = pointer<const T>(saved);
  follow_threads(s);
  run([&] { run_backward<T>(s, o, ps, g); });
  c.drop();
  return result;
}

}  // namespace

void define_recurrence(nb::module_& m) {
  nb::module_ sub = m.def_submodule("_recurrence", "Recurrent layers on the memory of PyTorch's tensors.");
  nb::class_<LayerCall>(sub, "Call", "A call of recurrent layers whose operands have been checked.")
      .def_ro("wants_grad", &LayerCall::wants_grad)
      .def_ro("packed", &LayerCall::packed)
      .def(
          "forward",
          [](LayerCall& c, nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0, nb::handle weights,
             bool save) {
            return c.is_double ? forward_of<double>(c, x, batch_sizes, h0, c0, weights, save)
                               : forward_of<float>(c, x, batch_sizes, h0, c0, weights, save);
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
          "Returns y, the last states and, with ``save``, what the gradient reads.")
      .def(
          "backward",
          [](LayerCall& c, nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0, nb::handle weights,
             nb::handle saved, nb::handle dy, nb::handle dhn, nb::handle dcn, nb::handle wants) {
            return c.is_double ? backward_of<double>(c, x, batch_sizes, h0, c0, weights, saved, dy, dhn, dcn, wants)
                               : backward_of<float>(c, x, batch_sizes, h0, c0, weights, saved, dy, dhn, dcn, wants);
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(),
          "Returns the gradients of x, h0, c0 and the weights, None where none is wanted; or\nNone if PyTorch must "
          "compute them, because a cotangent is no plain tensor.");
  sub.def(
      "prepare",
      [](int kind, nb::handle x, nb::handle batch_sizes, nb::handle h0, nb::handle c0, nb::handle weights, bool bias,
         std::int64_t layers, bool bidirectional, bool batch_first, bool grad_enabled, bool modules) -> nb::object {
        LayerCall c;
        const Reason r = check(c, kind, x, batch_sizes, h0, c0, weights, bias, layers, bidirectional, batch_first,
                               grad_enabled, modules);
        last = r;
        counts[static_cast<std::size_t>(r)].fetch_add(1, std::memory_order_relaxed);
        if (r != Reason::none) return nb::none();
        return nb::cast(std::move(c));
      },
      nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
      "Checks the operands of layers; returns None if PyTorch must run them, as ``why`` tells.");
  sub.def(
      "why",
      [] { return last == Reason::none ? nb::object(nb::none()) : nb::object(nb::str(kReasons[std::size_t(last)])); },
      "Returns why PyTorch ran the last call of this thread, or None.");
  sub.def(
      "counts",
      [] {
        nb::dict all;
        for (std::size_t i = 0; i < counts.size(); ++i) all[kReasons[i]] = counts[i].load();
        return all;
      },
      "Returns how many calls Ferrite ran, and how many PyTorch for each reason.");
  sub.def(
      "set_up",
      [](nb::dict objects) {
        if (!torch) torch = new Torch();  // lives as long as the process
        torch->tensor = objects["tensor"], torch->parameter = objects["parameter"];
        torch->f32 = objects["f32"], torch->f64 = objects["f64"], torch->strided = objects["strided"];
        torch->threads = objects["threads"], torch->transforms = objects["transforms"], torch->modes = objects["modes"];
        torch->functions = objects["functions"], torch->autocast = objects["autocast"];
        torch->tracing = objects["tracing"], torch->forward_ad = objects["forward_ad"];
      },
      "Gives the objects of PyTorch that calls need.");
}

}  // namespace ferrite::python
