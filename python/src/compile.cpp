// Compiled functions and scans in Python.
#include <nanobind/ndarray.h>

#include <map>

#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/carry.h"
#include "module.h"
#include "structure.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

/// Returns whether an argument is passed as a tensor, or as tuples, lists or dictionaries of them.
bool holds_tensors(nb::handle o) {
  const Nesting level;
  if (is_tensor(o) || nb::ndarray_check(o)) return true;
  if (PyDict_Check(o.ptr())) return holds_tensors(nb::list(o.attr("values")()));
  if (!PyTuple_Check(o.ptr()) && !PyList_Check(o.ptr())) return false;
  for (nb::handle each : o)
    if (holds_tensors(each)) return true;
  return false;
}

/// A function of Python as compiled functions: one for each combination of constants among its keyword arguments.
class CompiledFunction {
 public:
  CompiledFunction(nb::object f, const PlanOptions& options) : f_(std::move(f)), options_(options) {
    if (!PyCallable_Check(f_.ptr())) throw nb::type_error("compile: not a function");
  }

  Any call(const nb::args& arguments, const nb::kwargs& named) {
    Call call(*this, arguments, named);
    const Tensors out = run([&] { return call.variant->compilation.call(call.arguments(), call.body()); });
    return call.result(out);
  }
  void verify(const nb::args& arguments, const nb::kwargs& named) {
    Call call(*this, arguments, named);
    run([&] { call.variant->compilation.verify(call.arguments(), call.body()); });
  }
  std::size_t plans() const {
    std::size_t n = 0;
    for (const auto& v : variants_) n += v->compilation.plans();
    return n;
  }
  const detail::Compilation& last() const {
    if (!last_) throw Error("compile: the function has not been called");
    return last_->compilation;
  }
  nb::handle function() const { return f_; }
  const PlanOptions& options() const { return options_; }
  nb::handle constants() const { return constants_; }
  void clear() { f_.reset(), constants_.reset(); }

 private:
  /// The function with one set of constants, and the structures of its results by the types of the arguments.
  struct Variant {
    explicit Variant(const PlanOptions& options) : compilation(options) {}
    detail::Compilation compilation;
    std::map<std::string, Structure> results;
    const Structure* only = nullptr;  ///< the structure of all results, if they have the same one
    bool differ = false;
  };

  /// One call: the arguments, and the function as one of tensors.
  struct Call {
    Call(CompiledFunction& of, const nb::args& args, const nb::kwargs& kwargs) : owner(of) {
      for (nb::handle a : args) given.append(argument(a));
      nb::list key;
      for (const auto& [name, value] : kwargs) {
        const bool variable = holds_tensors(value) || nb::isinstance<nn::Carry>(value);
        named[name] = variable ? argument(value) : nb::borrow(value);
        key.append(name);
        if (variable)
          tensor_names.append(name);
        else
          key.append(value), key.append(value.type());
      }
      for (const Tensor& t : tensors) operands.push_back(&t);
      if (kwargs.size() > 0 || !owner.plain_) {
        variant = owner.variant_of(nb::tuple(key));
        if (kwargs.size() == 0) owner.plain_ = variant;
      } else {
        variant = owner.plain_;
      }
      owner.last_ = variant;
    }

    detail::Compilation::Arguments arguments() const { return {operands, variables}; }
    detail::Compilation::Body body() { return detail::Compilation::Body(run_function); }

    nb::object result(const Tensors& out) const {
      if (variant->only && !variant->differ) return variant->only->object(out);
      return variant->results.at(types()).object(out);
    }

   private:
    /// Returns what stands for an argument: None for a structure of tensors, or a carry itself.
    nb::object argument(nb::handle a) {
      if (nb::isinstance<nn::Carry>(a)) {
        for (const State& s : made<nn::Carry>(a)->variables()) variables.push_back(s.identity());
        variables.push_back(nullptr);
        return nb::borrow(a);
      }
      structures.push_back(Structure::of(a, tensors, "compile"));
      return nb::none();
    }

    Tensors call_function(const Tensors& in) const {
      const nb::gil_scoped_acquire lock;
      std::size_t next = 0, structure = 0;
      const auto value_of = [&](nb::handle g) {
        return g.is_none() ? structures[structure++].object(in, next) : nb::borrow(g);
      };
      nb::list all;
      for (nb::handle g : given) all.append(value_of(g));
      nb::dict options;
      for (const auto& [name, value] : named) options[name] = value;
      for (nb::handle name : tensor_names) options[name] = value_of(named[name]);
      const nb::object out = owner.f_(*all, **options);
      Tensors results;
      keep(Structure::of(out, results, "compile"));
      return results;
    }
    void keep(Structure s) const {
      const auto at = variant->results.insert_or_assign(types(), std::move(s)).first;
      if (!variant->only) variant->only = &at->second;
      variant->differ = variant->differ || !(at->second == *variant->only);
    }
    std::string types() const {
      std::string all;
      for (const Tensor& t : tensors) all += t.spec().str() + ";";
      return all;
    }

   public:
    CompiledFunction& owner;
    nb::list given;         ///< None for structures of tensors, carries themselves
    nb::dict named;         ///< the keyword arguments: None for structures of tensors, other objects themselves
    nb::list tensor_names;  ///< the names of those that are tensors or carries
    Tensors tensors;
    std::vector<const Tensor*> operands;
    std::vector<const void*> variables;
    std::vector<Structure> structures;
    std::shared_ptr<Variant> variant;
    std::function<Tensors(const Tensors&)> run_function = [this](const Tensors& in) { return call_function(in); };
  };

  /// Returns the variant for a key of names and constants.
  std::shared_ptr<Variant> variant_of(const nb::tuple& key) {
    const nb::object known = constants_.attr("setdefault")(key, variants_.size());
    const auto i = nb::cast<std::size_t>(known);
    if (i == variants_.size()) variants_.push_back(std::make_shared<Variant>(options_));
    return variants_[i];
  }

  nb::object f_;
  PlanOptions options_;
  nb::dict constants_;  ///< the numbers of the variants, by their constants
  std::vector<std::shared_ptr<Variant>> variants_;
  std::shared_ptr<Variant> plain_;  ///< the variant without keyword arguments
  std::shared_ptr<Variant> last_;
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  if (Py_TYPE(self)) Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) {
    const nb::handle f = nb::inst_ptr<CompiledFunction>(self)->function();
    const nb::handle constants = nb::inst_ptr<CompiledFunction>(self)->constants();
    Py_VISIT(f.ptr());
    Py_VISIT(constants.ptr());
  }
  return 0;
}
int clear(PyObject* self) {
  nb::inst_ptr<CompiledFunction>(self)->clear();
  return 0;
}
PyType_Slot compiled_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

Any report_of(const PlanReport& r) {
  nb::list steps;
  for (const PlanReport::Step& s : r.steps)
    steps.append(named_tuple("PlanStep", {"what", "operations", "kernel", "bytes"},
                             {nb::cast(s.what), nb::int_(s.operations), nb::bool_(s.kernel), nb::int_(s.bytes)}));
  return any_tuple("PlanReport",
                   {"text", "steps", "operations", "kernels", "products", "bytes_moved", "arena_bytes", "refusals"},
                   {nb::cast(r.str()), steps, nb::int_(r.operations), nb::int_(r.kernels), nb::int_(r.products),
                    nb::int_(r.bytes_moved), nb::int_(r.arena_bytes), nb::cast(r.refusals)});
}

/// Returns the compiled method of an instance, which keeps it under the method's name where it can.
nb::object bound(nb::object self, nb::handle instance) {
  const CompiledFunction& c = *nb::inst_ptr<CompiledFunction>(self);
  const nb::object method = nb::cast(CompiledFunction(nb::borrow(c.function()).attr("__get__")(instance), c.options()));
  const nb::object dict = nb::getattr(instance, "__dict__", nb::none());
  if (nb::isinstance<nb::dict>(dict)) dict[c.function().attr("__name__")] = method;
  return method;
}

void define_compiled(nb::module_& m) {
  nb::class_<CompiledFunction> c(m, "CompiledFunction", nb::type_slots(compiled_slots), nb::dynamic_attr(),
                                 nb::is_weak_referenceable(), "The result of ``compile``.");
  c.def("__call__", &CompiledFunction::call);
  c.def(
      "__get__",
      [](nb::object self, nb::handle instance, nb::handle) {
        return instance.is_none() ? self : bound(self, instance);
      },
      "instance"_a.none(), "owner"_a = nb::none());
  c.def(
      "verify", &CompiledFunction::verify,
      "Checks that the function is still the one that was traced for these arguments. Traces it again and raises\n"
      "TraceError, naming the first difference, when changed Python values that it uses make another program, which a\n"
      "call does not notice. Computes nothing and changes no variable.");
  c.def_prop_ro(
      "plans", &CompiledFunction::plans,
      "The number of plans kept: one for each combination of shapes, dtypes, switches read and variables given.");
  c.def(
      "report", [](const CompiledFunction& f) { return report_of(f.last().report()); },
      "Returns a report of the plan made last, whose ``text`` lists its steps and what was not fused and why.");
  c.def(
      "graph", [](const CompiledFunction& f) { return f.last().graph().str(); },
      "Returns the program of the plan made last, as traced, as text.");
  c.def_prop_ro("__wrapped__", [](const CompiledFunction& f) { return nb::borrow(f.function()); });
  m.def(
      "compile",
      [](AnyFunction f, bool fuse, bool guard, bool reuse, std::size_t most_plans) -> nb::object {
        const PlanOptions options{.fuse = fuse, .guard = guard, .reuse = reuse, .most_plans = most_plans};
        if (f.is_none())
          return nb::cpp_function([options](nb::object g) { return CompiledFunction(std::move(g), options); });
        nb::object out = nb::cast(CompiledFunction(nb::borrow(f), options));
        if (nb::hasattr(f, "__doc__")) out.attr("__doc__") = f.attr("__doc__");
        if (nb::hasattr(f, "__name__")) out.attr("__name__") = f.attr("__name__");
        return out;
      },
      "f"_a.none() = nb::none(), nb::kw_only(), "fuse"_a = true, "guard"_a = true, "reuse"_a = true,
      "most_plans"_a = 128,
      nb::sig("def compile(f: collections.abc.Callable | None = None, *, fuse: bool = True, guard: bool = True, "
              "reuse: bool = True, most_plans: int = 128) -> typing.Any"),
      "Compiles a function of tensors to one program: traced once for every combination of shapes, dtypes and "
      "switches\n"
      "(train or eval) that it meets, simplified, fused, planned, and replayed. The results are those of the function\n"
      "itself, bit for bit. Also a decorator, of methods too::\n\n"
      "    @ferrite.compile\n    def step(x, y):\n        loss, grads = loss_and_grads(x, y)\n"
      "        adam.step(grads)\n        return loss\n\n"
      "Positional arguments are tensors, arrays, numbers, and tuples, lists and dictionaries of these, or a Carry. "
      "Numbers\n"
      "become tensors too. Keyword arguments are constants, for others of which the function is traced again, unless "
      "they\n"
      "hold tensors or arrays. It returns tensors, and tuples, lists or dictionaries of them, or None.\n\n"
      "Variables (parameters, running statistics, optimiser state, draw counters) are read and written in every call. "
      "Any\n"
      "other Python state is read once, while tracing (``verify`` checks whether it has changed since). Reading "
      "values\n"
      "inside raises TraceError. ``most_plans``: the number of plans kept; 0 for no limit.");
}

/// A scan whose body is a function of Python: body(carry, x) -> (next carry, y).
class ScanObject {
 public:
  explicit ScanObject(nb::handle body)
      : shared_(std::make_shared<Shared>()),
        scan_([body = Kept(body), shared = shared_](const Tensors& carry, const Tensors& x) {
          const nb::gil_scoped_acquire lock;
          const nb::object out = body.get()(shared->carry.object(carry), shared->x.object(x));
          if (!PyTuple_Check(out.ptr()) || nb::len(out) != 2)
            throw ValueError("scan: the body returns a tuple (next carry, y)");
          ScanStep step;
          const Structure next = Structure::of(out[0], step.carry, "scan");
          if (!(next == shared->carry))
            throw ValueError("scan: the body returns a carry of another structure than it gets");
          shared->y = Structure::of(out[1], step.y, "scan");
          return step;
        }) {
    if (!PyCallable_Check(body.ptr())) throw nb::type_error("scan: the body is not a function");
  }

  Any call(AnyTensors init, AnyTensors xs, const ScanOptions& options) {
    const auto [first, stacks] = operands(init, xs);
    const ScanResult out = run([&] { return scan_(first, stacks, options); });
    return nb::make_tuple(shared_->carry.object(out.carry), shared_->y.object(out.y));
  }
  std::string report(AnyTensors init, AnyTensors xs) {
    const auto [first, stacks] = operands(init, xs);
    return run([&] { return scan_.report(first, stacks); });
  }
  bool is_linear(AnyTensors init, AnyTensors xs) {
    const auto [first, stacks] = operands(init, xs);
    return run([&] { return scan_.is_linear(first, stacks); });
  }

 private:
  struct Shared {
    Structure carry, x, y;
  };
  std::pair<Tensors, Tensors> operands(nb::handle init, nb::handle xs) {
    Tensors first, stacks;
    shared_->carry = Structure::of(init, first, "scan");
    shared_->x = Structure::of(xs, stacks, "scan");
    return {first, stacks};
  }

  std::shared_ptr<Shared> shared_;
  Scan scan_;
};

ScanOptions scan_options(bool reverse, const Tensor& lengths, std::int64_t every, std::int64_t steps, bool by_steps) {
  return {.reverse = reverse, .lengths = lengths, .checkpoint_every = every, .steps = steps, .by_steps = by_steps};
}

constexpr const char* kScanDoc =
    "Applies a step repeatedly, each time to the carry of the step before, as one operation that can be "
    "differentiated::\n\n"
    "    carry, y = ferrite.scan(body, init, xs)\n"
    "    # carry = init; for each step t: carry, y[t] = body(carry, xs[t])\n\n"
    "``init`` is the first carry, ``xs`` stacks [T, ...] whose slices the steps take one by one: tensors, or tuples, "
    "lists\n"
    "and dictionaries of them, or None. ``body(carry, x)`` returns the next carry, of the same structure and types, "
    "and\n"
    "y, of which a stack is returned. The body is called once, with abstract tensors. A body that is linear in its "
    "carry\n"
    "runs as linear_scan.\n\n"
    "``reverse``: runs from the last step to the first. ``lengths``: the number of valid steps of each row, i64 [B].\n"
    "``checkpoint_every``: k keeps for the gradient only the carries of every k-th step. ``steps``: the number of "
    "steps;\n"
    "needed only without xs. ``by_steps``: runs step by step even if the body is linear.\n\n"
    "Raises ShapeError for xs of different lengths or a carry that changes its type, TraceError where the body reads\n"
    "values or writes a variable.";

void define_scan(nb::module_& m) {
  m.def(
      "scan",
      [](AnyFunction body, AnyTensors init, AnyTensors xs, bool reverse, const Tensor& lengths, std::int64_t every,
         std::int64_t steps, bool by_steps) {
        return ScanObject(body).call(init, xs, scan_options(reverse, lengths, every, steps, by_steps));
      },
      "body"_a, "init"_a.none(), "xs"_a.none() = nb::none(), nb::kw_only(), "reverse"_a = false,
      "lengths"_a = nb::none(), "checkpoint_every"_a = 0, "steps"_a = -1, "by_steps"_a = false, kScanDoc);
  nb::class_<ScanObject> c(m, "Scan",
                           "A scan that is called repeatedly with equal types: its body is traced once for each\n"
                           "combination of types. A body that captures tensors is traced again in every call.");
  c.def(
      "__init__", [](ScanObject* p, AnyFunction body) { new (p) ScanObject(body); }, "body"_a);
  c.def(
      "__call__",
      [](ScanObject& s, AnyTensors init, AnyTensors xs, bool reverse, const Tensor& lengths, std::int64_t every,
         std::int64_t steps,
         bool by_steps) { return s.call(init, xs, scan_options(reverse, lengths, every, steps, by_steps)); },
      "init"_a.none(), "xs"_a.none() = nb::none(), nb::kw_only(), "reverse"_a = false, "lengths"_a = nb::none(),
      "checkpoint_every"_a = 0, "steps"_a = -1, "by_steps"_a = false, "Runs the scan, as ``ferrite.scan`` does.");
  c.def("report", &ScanObject::report, "init"_a.none(), "xs"_a.none() = nb::none(),
        "Says how the body runs for operands of these types, and why.");
  c.def("is_linear", &ScanObject::is_linear, "init"_a.none(), "xs"_a.none() = nb::none(),
        "Returns whether the body runs as linear_scan for operands of these types.");
}

}  // namespace

void define_compile(nb::module_& m) {
  define_compiled(m);
  define_scan(m);
}

}  // namespace ferrite::python
