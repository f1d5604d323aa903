// Gradients in Python.
#include "enums.h"
#include "ferrite/autograd/checkpoint.h"
#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/jacobian.h"
#include "ferrite/autograd/jvp.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/autograd/value_and_grad.h"
#include "module.h"

namespace ferrite::python {
namespace {

using nb::literals::operator""_a;

using Function = std::function<Tensor(const Tensor&)>;
using Functions = std::function<Tensors(const Tensors&)>;

/// Returns a Python function of several tensors as one of a list of them. It may return one tensor or a list.
Functions spread(nb::callable f) {
  return [f = std::move(f)](const Tensors& in) {
    const nb::gil_scoped_acquire lock;
    nb::list args;
    for (const Tensor& t : in) args.append(t);
    const nb::object out = f(*args);
    if (PyList_Check(out.ptr()) || PyTuple_Check(out.ptr())) return nb::cast<Tensors>(out);
    return Tensors{nb::cast<Tensor>(out)};
  };
}
std::function<Tensor(const Tensors&)> spread_to_one(nb::callable f) {
  return [all = spread(std::move(f))](const Tensors& in) { return all(in)[0]; };
}

/// A tape as a context of Python's `with`.
struct TapeContext {
  std::unique_ptr<Tape> tape{};
  Tape& open() {
    if (!tape) throw TapeError("tape: used outside its `with`");
    return *tape;
  }
};

nb::object gradients_of(TapeContext& t, const Tensor& of, nb::handle wrt, bool retain, bool create_graph,
                        const Tensor& cotangent) {
  const GradOptions options{.retain = retain, .create_graph = create_graph};
  const bool single = !PyList_Check(wrt.ptr()) && !PyTuple_Check(wrt.ptr());
  const nb::list all = single ? nb::list(nb::make_tuple(wrt)) : nb::list(nb::borrow(wrt));
  bool variables = nb::len(all) > 0;
  for (nb::handle each : all) variables &= is_variable(each);
  Tensors grads;
  if (variables) {
    const auto parameters = nb::cast<std::vector<Parameter>>(all);
    grads = run([&] { return t.open().grad(of, parameters, options, cotangent); });
  } else {
    const auto tensors = nb::cast<std::vector<Tensor>>(all);
    grads = run([&] { return t.open().grad(of, std::span<const Tensor>(tensors), options, cotangent); });
  }
  return single ? nb::cast(grads[0]) : nb::cast(grads);
}

void define_tape(nb::module_& m) {
  nb::class_<TapeContext>(
      m, "Tape", "Records what runs on this thread within its ``with``, and computes gradients from the record.")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::object self) {
             made<TapeContext>(self)->tape = std::make_unique<Tape>();
             return self;
           })
      .def(
          "__exit__", [](TapeContext& t, nb::handle, nb::handle, nb::handle) { t.tape.reset(); }, "type"_a.none(),
          "value"_a.none(), "trace"_a.none())
      .def(
          "watch", [](TapeContext& t, const Tensor& x) { return t.open().watch(x); }, "x"_a,
          "Returns x as a variable of the tape; x itself is not watched. Parameters are watched when they are read.")
      .def("grad", gradients_of, "of"_a, "wrt"_a, nb::kw_only(), "retain"_a = false, "create_graph"_a = false,
           "cotangent"_a.none() = nb::none(),
           "Returns d(of)/d(x) for every x in ``wrt``, tensors that the tape watches or parameters; None for a "
           "parameter\n"
           "that was not read. Without ``retain`` or ``create_graph`` the record is freed.")
      .def_prop_ro(
          "size", [](TapeContext& t) { return t.open().size(); }, "The number of operations recorded so far.");
}

void define_products(nb::module_& m) {
  m.def(
      "jacobian", [](const Function& f, const Tensor& x, JacobianBy by) { return jacobian(f, x, {.by = by}); }, "f"_a,
      "x"_a, nb::kw_only(), "by"_a = JacobianBy::smaller, Call(),
      "Returns the derivative of every element of f(x) by every element of x, [y..., x...].");
  m.def(
      "hessian", [](const Function& f, const Tensor& x) { return hessian(f, x); }, "f"_a, "x"_a, Call(),
      "Returns the second derivatives of an f that gives one element, [x..., x...].");
  const auto pair_of = [](const char* type, const char* a, const char* b, Tensor first, Tensor second) {
    return named_tuple(type, {a, b}, {nb::cast(std::move(first)), nb::cast(std::move(second))});
  };
  m.def(
      "jvp",
      [pair_of](const Function& f, const Tensor& x, const Tensor& v) {
        auto r = run([&] { return jvp(f, x, v); });
        return pair_of("JvpResult", "value", "tangent", r.value, r.tangent);
      },
      "f"_a, "x"_a, "tangent"_a, "Returns f(x) and its derivative along a direction.");
  m.def(
      "vjp",
      [pair_of](const Function& f, const Tensor& x, const Tensor& u) {
        auto r = run([&] { return vjp(f, x, u); });
        return pair_of("VjpResult", "value", "gradient", r.value, r.gradient);
      },
      "f"_a, "x"_a, "cotangent"_a, "Returns f(x) and the gradient of <cotangent, f(x)> by x.");
  m.def(
      "hvp",
      [pair_of](const Function& f, const Tensor& x, const Tensor& v) {
        auto r = run([&] { return hvp(f, x, v); });
        return pair_of("HvpResult", "value", "product", r.value, r.product);
      },
      "f"_a, "x"_a, "vector"_a, "Returns f(x), one element, and the product of its Hessian with a vector.");
  m.def(
      "checkpoint", [](nb::callable f, const Tensors& in) { return run([&] { return checkpoint(spread(f), in); }); },
      "f"_a, "inputs"_a,
      "Returns f(*inputs) as a list; the gradient computes it again instead of keeping what it needs.");
  m.def(
      "hook_gradient", [](const Tensor& x, GradientHookFunction hook) { return hook_gradient(x, std::move(hook)); },
      "x"_a, "hook"_a, "Returns x with a function on its gradient, which may return another gradient or None.");
}

}  // namespace

void define_gradients(nb::module_& m) {
  define_tape(m);
  define_products(m);
  m.def("_value_and_grad", [](nb::callable f, const Tensors& in, const std::vector<Parameter>& parameters) {
    const auto one = spread_to_one(std::move(f));
    auto r = run([&] { return value_and_grad(one, in, parameters); });
    return nb::make_tuple(r.value, r.inputs, r.parameters);
  });
}

}  // namespace ferrite::python
