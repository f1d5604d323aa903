// Metrics of training in Python.
#include "ferrite/train/metrics.h"

#include <nanobind/stl/unique_ptr.h>
#include <nanobind/trampoline.h>

#include "ferrite/train/advantages.h"
#include "ferrite/train/confusion.h"
#include "module.h"
#include "training.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

struct Averages {
  static constexpr const char* what = "average";
  static constexpr std::pair<train::Average, const char*> all[] = {{train::Average::macro, "macro"},
                                                                   {train::Average::micro, "micro"},
                                                                   {train::Average::weighted, "weighted"},
                                                                   {train::Average::binary, "binary"}};
  static const auto& of() { return all; }
};

}  // namespace
}  // namespace ferrite::python

template <>
struct nanobind::detail::type_caster<ferrite::train::Average>
    : nanobind::detail::text_caster<ferrite::train::Average, ferrite::python::Averages> {};

namespace ferrite::python {
namespace {

/// A metric whose class is written in Python.
class PythonMetric final : public train::Metric {
 public:
  NB_TRAMPOLINE(train::Metric);
  PythonMetric() = default;

  std::string name() const override {
    const nb::gil_scoped_acquire lock;
    if (is_own("name")) return nb::cast<std::string>(method("name")());
    return name_of_object(nb::handle(nb_trampoline.base().type()));
  }
  bool larger_is_better() const override {
    const nb::gil_scoped_acquire lock;
    return is_own("larger_is_better") && nb::cast<bool>(method("larger_is_better")());
  }
  void reset() override {
    const nb::gil_scoped_acquire lock;
    needed("reset")();
  }
  void add(const Tensor& prediction, const train::Batch& batch) override {
    const nb::gil_scoped_acquire lock;
    needed("add")(prediction, batch);
  }
  double value() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<double>(nb::float_(needed("value")()));
  }
  train::MetricState state() const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<train::MetricState>(needed("state")());
  }
  void restore(const train::MetricState& state) override {
    const nb::gil_scoped_acquire lock;
    needed("restore")(state);
  }

 private:
  nb::object method(const char* name) const { return nb_trampoline.base().attr(name); }
  bool is_own(const char* name) const {
    return !nb::handle(nb_trampoline.base().type()).attr(name).is(nb::type<train::Metric>().attr(name));
  }
  nb::object needed(const char* name) const {
    if (!is_own(name)) throw ValueError("metric: " + this->name() + " has no method " + name);
    return method(name);
  }
};

/// A metric that Python owns, in a list of C++, which owns its metrics.
class LentMetric final : public train::Metric {
 public:
  explicit LentMetric(nb::handle object) : object_(object), metric_(*made<train::Metric>(object)) {}
  std::string name() const override { return metric_.name(); }
  bool larger_is_better() const override { return metric_.larger_is_better(); }
  void reset() override { metric_.reset(); }
  void add(const Tensor& prediction, const train::Batch& batch) override { metric_.add(prediction, batch); }
  double value() const override { return metric_.value(); }
  train::MetricState state() const override { return metric_.state(); }
  void restore(const train::MetricState& state) override { metric_.restore(state); }

 private:
  Kept object_;
  train::Metric& metric_;
};

std::unique_ptr<train::Metric> mean_of(nb::handle f, std::string name, bool larger_is_better) {
  return train::mean_of(
      std::move(name),
      [f = Kept(f)](const Tensor& prediction, const train::Batch& batch) {
        const nb::gil_scoped_acquire lock;
        return nb::cast<double>(nb::float_(f.get()(prediction, batch.y())));
      },
      larger_is_better);
}

void define_metric(nb::module_& m) {
  nb::class_<train::Metric, PythonMetric> c(
      m, "Metric",
      "A number that says how good predictions are, over all batches of an epoch. Made by the functions of this "
      "module, or\n"
      "by a class that derives from it and has ``reset``, ``add``, ``value``, ``state`` and ``restore``.\n\n"
      "Names, for ``fit``: \"accuracy\", \"top5\" (any number), \"f1\", \"precision\" and \"recall\", each also with "
      "the suffix\n"
      "\"_micro\", \"_weighted\" or \"_binary\", \"mae\", \"rmse\", \"mse\", \"r2\", \"perplexity\", \"auc\", "
      "\"edit_distance\".");
  c.def(nb::init<>());
  c.def(
      "name", [](const train::Metric& s) { return s.name(); }, "Returns the name.");
  c.def(
      "larger_is_better", [](const train::Metric& s) { return s.larger_is_better(); },
      "Returns whether larger values are better.");
  c.def(
      "reset", [](train::Metric& s) { s.reset(); }, "Forgets everything added.");
  c.def(
      "add",
      [](train::Metric& s, const Tensor& prediction, Typed<"Batch | ferrite._ferrite.Tensor | ArrayLike"> target) {
        const train::Batch batch = nb::isinstance<train::Batch>(target)
                                       ? *made<train::Batch>(target)
                                       : train::Batch{{prediction, tensor_of(target)}, {Tensor(), Tensor()}};
        run([&] { s.add(prediction, batch); });
      },
      "prediction"_a, "target"_a, "Adds the prediction for a target, or for a batch whose second field is the target.");
  c.def(
      "value", [](const train::Metric& s) { return s.value(); },
      "Returns the value for everything added since ``reset``.");
  c.def(
      "state", [](const train::Metric& s) { return s.state(); },
      "Returns everything added since ``reset``, as a list of numbers.");
  c.def(
      "restore", [](train::Metric& s, const train::MetricState& state) { s.restore(state); }, "state"_a,
      "Restores what ``state`` returned.");
}

}  // namespace

train::AnyMetric metric_of(nb::handle o) {
  if (nb::isinstance<nb::str>(o)) return nb::cast<std::string>(o);
  if (nb::isinstance<train::Metric>(o)) return std::unique_ptr<train::Metric>(std::make_unique<LentMetric>(o));
  if (!PyCallable_Check(o.ptr()))
    throw ValueError("a metric is neither a name nor a Metric nor a function of (prediction, target)");
  return mean_of(o, name_of_object(o), false);
}

void define_metrics(nb::module_& m) {
  define_metric(m);
  m.def(
      "metric", [](const std::string& name) { return train::metric(name); }, "name"_a, "Returns a metric by its name.");
  m.def(
      "accuracy", &train::accuracy, "ignore_index"_a = -100,
      "Returns the metric of the share of right predictions [..., C] for integer targets [...]. Scores [...] without\n"
      "classes are right if they are above 0 for target 1, else for target 0.");
  m.def("top_k_accuracy", &train::top_k_accuracy, "k"_a, "ignore_index"_a = -100,
        "Returns the metric of the share of predictions whose k largest entries include the target's.");
  m.def("precision", &train::precision, "average"_a = train::Average::macro, "ignore_index"_a = -100,
        "Returns the metric of the precision tp / (tp + fp), as \"macro\", \"micro\", \"weighted\" or \"binary\" "
        "average.");
  m.def("recall", &train::recall, "average"_a = train::Average::macro, "ignore_index"_a = -100,
        "Returns the metric of the recall tp / (tp + fn).");
  m.def("f1", &train::f1, "average"_a = train::Average::macro, "ignore_index"_a = -100,
        "Returns the metric of F1 = 2 tp / (2 tp + fp + fn).");
  m.def("auc", &train::auc,
        "Returns the metric of the area under the receiver operating curve of scores for targets 0 and 1.");
  m.def("mae", &train::mae, "Returns the metric of the mean absolute error.");
  m.def("mse", &train::mse, "Returns the metric of the mean squared error.");
  m.def("rmse", &train::rmse, "Returns the metric of the root of the mean squared error.");
  m.def("r2", &train::r2, "Returns the metric of the coefficient of determination.");
  m.def("perplexity", &train::perplexity, "ignore_index"_a = -100,
        "Returns the metric of the perplexity: exp of the mean cross entropy.");
  m.def("edit_distance", &train::edit_distance, "blank"_a = 0, "Returns the metric of the label error rate of CTC.");
  m.def(
      "levenshtein",
      [](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) { return train::levenshtein(a, b); },
      "a"_a, "b"_a, "Returns the edit distance of two sequences of labels.");
  m.def(
      "mean_of", [](const std::string& name, AnyFunction f, bool larger) { return mean_of(f, name, larger); }, "name"_a,
      "f"_a, "larger_is_better"_a = false,
      "Returns the metric of the mean of what ``f(prediction, target)`` returns for each batch, weighted by its size.");
  nb::class_<train::Confusion>(m, "Confusion",
                               "A confusion matrix: how often each class was predicted for each true class.")
      .def(nb::init<std::int64_t>(), "classes"_a)
      .def("add", &train::Confusion::add, "predicted"_a, "target"_a, "ignore_index"_a = -100, Call(),
           "Adds predictions and targets, both i64 of the same shape.")
      .def("count", &train::Confusion::count, "target"_a, "predicted"_a,
           "Returns how often a class was predicted for a class.")
      .def("counts", &train::Confusion::counts,
           "Returns all counts, i64 [classes, classes] with a row for each true class.")
      .def_prop_ro("total", &train::Confusion::total, "The number of predictions that count.")
      .def_prop_ro("accuracy", &train::Confusion::accuracy, "The share of right predictions.")
      .def("__str__", &train::Confusion::str);
  m.def(
      "advantages",
      [](const Tensor& rewards, const Tensor& values, const Tensor& goes_on, double discount, double trace) {
        return train::advantages(rewards, values, goes_on, {discount, trace});
      },
      "rewards"_a, "values"_a, "goes_on"_a, nb::kw_only(), "discount"_a = 0.99, "trace"_a = 0.95, Call(),
      "Returns generalised advantage estimates (arXiv 1506.02438) for T steps of parallel environments: rewards and "
      "goes_on\n"
      "[T, ...], values [T + 1, ...] -> [T, ...].");
}

}  // namespace ferrite::python
