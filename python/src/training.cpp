// Training in one call: fit, evaluate and predict.
#include "training.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>

#include "ferrite/train/adapt.h"
#include "module.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

struct CompileKinds {
  static constexpr const char* what = "compile";
  static constexpr std::pair<train::Compile, const char*> all[] = {
      {train::Compile::automatic, "automatic"}, {train::Compile::never, "never"}, {train::Compile::always, "always"}};
  static const auto& of() { return all; }
};

}  // namespace
}  // namespace ferrite::python

template <>
struct nanobind::detail::type_caster<ferrite::train::Compile>
    : nanobind::detail::text_caster<ferrite::train::Compile, ferrite::python::CompileKinds> {};

namespace ferrite::python {
namespace {

/// Returns whether a function takes the whole batch: its second parameter is called "batch".
bool takes_batch(nb::handle f) {
  try {
    const nb::object parameters = nb::module_::import_("inspect").attr("signature")(f).attr("parameters");
    const nb::list names(parameters.attr("keys")());
    return names.size() > 1 && nb::cast<std::string>(names[1]) == "batch";
  } catch (nb::python_error&) {
    return false;  // a function without a signature
  }
}

Tensor one_tensor(nb::handle o, const char* what) {
  if (!is_tensor(o))
    throw ValueError(std::string(what) + " returned " + nb::cast<std::string>(nb::repr(o.type())) + ", not a tensor");
  return tensor_of(o);
}

/// A function of Python that returns the sum of losses and their number.
struct LossOfSums {
  Kept function;
};

train::Loss loss_of(nb::handle loss) {
  if (loss.is_none()) return {};
  if (nb::isinstance<LossOfSums>(loss)) {
    const Kept f = made<LossOfSums>(loss)->function;
    return [f, whole = takes_batch(f.get())](const Tensor& prediction, const train::Batch& batch) -> train::LossSum {
      const nb::gil_scoped_acquire lock;
      const nb::object out = whole ? f.get()(prediction, batch) : f.get()(prediction, batch.y());
      if (!PyTuple_Check(out.ptr()) || nb::len(out) != 2) throw ValueError("fit: the loss did not return (sum, count)");
      if (is_number(out[1])) return {one_tensor(out[0], "fit: the loss"), nb::cast<double>(out[1])};
      return {one_tensor(out[0], "fit: the loss"), one_tensor(out[1], "fit: the loss")};
    };
  }
  if (nb::isinstance<nb::str>(loss)) return nb::cast<std::string>(loss);
  if (!PyCallable_Check(loss.ptr()))
    throw ValueError("fit: the loss is neither a name nor a function of (prediction, target)");
  return [f = Kept(loss), whole = takes_batch(loss)](const Tensor& prediction, const train::Batch& batch) -> Tensor {
    const nb::gil_scoped_acquire lock;
    return one_tensor(whole ? f.get()(prediction, batch) : f.get()(prediction, batch.y()), "fit: the loss");
  };
}

/// Returns a forward pass in Python: forward(batch) -> loss, or (loss, prediction).
train::Forward forward_of(nb::handle forward, const char* what) {
  return [f = Kept(forward), what](const train::Batch& batch) {
    const nb::gil_scoped_acquire lock;
    const nb::object out = f.get()(batch);
    if (!PyTuple_Check(out.ptr())) return train::StepOutput{one_tensor(out, what)};
    const std::size_t n = nb::len(out);
    if (n != 2 && n != 3) throw ValueError(std::string(what) + " returned a tuple that is not (loss, prediction)");
    train::StepOutput result{one_tensor(out[0], what), {}, {}};
    if (!out[1].is_none()) result.prediction = one_tensor(out[1], what);
    if (n == 3) result.count = tensor_of(out[2]);
    return result;
  };
}

/// Raises KeyboardInterrupt during training: looks for signals after a batch, a few times a second.
class Interrupts final : public train::Callback {
 public:
  std::string name() const override { return "interrupts"; }
  void on_batch_end(train::Training&) override {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < std::chrono::milliseconds(20)) return;
    looked_ = now;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  std::chrono::steady_clock::time_point looked_{};
};

/// Returns a callback of the user's, or a function that is called after every epoch.
train::AnyCallback callback_of(nb::handle c) {
  if (nb::isinstance<train::Callback>(c)) return made<train::Callback>(c);
  if (!PyCallable_Check(c.ptr()))
    throw ValueError("fit: a callback is neither a Callback nor a function of the training");
  return train::LambdaCallback({.on_epoch_end = [f = Kept(c)](train::Training& t) {
    const nb::gil_scoped_acquire lock;
    f.get()(Session::handle_of(t));
  }});
}

/// A loader, given or made of a data set.
class AnyLoader {
 public:
  AnyLoader(nb::handle data, std::int64_t batch_size, bool shuffle, std::uint64_t seed) {
    if (nb::isinstance<train::DataLoader>(data)) {
      given_ = made<train::DataLoader>(data);
    } else {
      const train::Dataset set = dataset_of(data);
      run([&] {
        made_.emplace(set, train::LoaderOptions{.batch_size = batch_size, .shuffle = shuffle, .seed = seed});
      });
    }
  }
  const train::DataLoader& get() const { return given_ ? *given_ : *made_; }

 private:
  const train::DataLoader* given_ = nullptr;
  std::optional<train::DataLoader> made_{};
};

const nn::Layer& layer_of(nb::handle model, const char* what) {
  if (!nb::isinstance<nn::Layer>(model))
    throw ValueError(std::string(what) + ": the model is not a layer; give its forward pass as `forward`");
  return *made<nn::Layer>(model);
}

std::vector<train::AnyMetric> metrics_of(nb::handle metrics) {
  std::vector<train::AnyMetric> all;
  for (nb::handle m : metrics) all.push_back(metric_of(m));
  return all;
}

std::vector<nn::Optimizer*> optimizers_of(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<nn::Optimizer>(o)) return {made<nn::Optimizer>(o)};
  return nb::cast<std::vector<nn::Optimizer*>>(o);
}

/// Trains by the forward pass, the step or the loss that is given.
train::History fit_by(nb::handle model, nb::handle forward, nb::handle step, const train::DataLoader& data,
                      const std::vector<nn::Optimizer*>& optimizers, train::FitOptions& options) {
  if (!step.is_none()) {
    const train::OwnStep own{forward_of(step, "fit: the step"), optimizers,
                             forward.is_none() ? train::Forward() : forward_of(forward, "fit: the forward pass")};
    const nn::Module& module = *made<nn::Module>(model);
    return run([&] { return train::fit(module, own, data, options); });
  }
  if (optimizers.size() > 1) throw ValueError("fit: several optimisers need a `step` of your own");
  options.optimizer = optimizers.empty() ? nullptr : optimizers[0];
  if (!forward.is_none()) {
    const train::Forward f = forward_of(forward, "fit: the forward pass");
    const nn::Module& module = *made<nn::Module>(model);
    return run([&] { return train::fit(module, f, data, options); });
  }
  const nn::Layer& net = layer_of(model, "fit");
  return run([&] { return train::fit(net, data, options); });
}

constexpr const char* kFitDoc =
    "Trains a net: forward, loss, backward and update for every batch of every epoch, and returns a History::\n\n"
    "    history = fit(net, (x, y), loss=\"cross_entropy\", optimizer=Adam(net.parameters()), epochs=20,\n"
    "                  validation=(x_val, y_val), metrics=[\"accuracy\"], callbacks=[EarlyStopping(patience=3)])\n"
    "    history[\"val_loss\"]\n\n"
    "``data`` and ``validation``: a DataLoader, a Dataset or a tuple of columns, of which ``batch_size`` and ``seed`` "
    "make\n"
    "a loader. The net gets the first field of a batch and its lengths; the second field is the target.\n\n"
    "``loss``: \"cross_entropy\", \"cross_entropy_classes_last\", \"cross_entropy_classes_second\", "
    "\"bce_with_logits\", \"mse\",\n"
    "\"l1\", \"huber\", \"smooth_l1\", or a function of (prediction, target), or of (prediction, batch) if the second "
    "parameter\n"
    "is called so, that returns a mean; or a LossOfSums. ``metrics``: names, Metrics, or functions of (prediction, "
    "target) that return a\n"
    "number. ``callbacks``: Callbacks, or functions of the training that are called after every epoch.\n"
    "``forward``: the forward pass of a model that is more than a layer: a function of a batch that returns the loss, "
    "or\n"
    "(loss, prediction), or (sum, prediction, count). ``step``: a function of a batch that makes its own updates and "
    "returns the loss or (loss,\n"
    "prediction); ``optimizer`` then lists what checkpoints hold, and ``forward`` is for validation.\n"
    "``accumulate``: batches per update. ``clip_norm``, ``clip_value``: largest norm of all gradients together, and "
    "largest\n"
    "absolute value; 0: no limit. ``schedule``: advanced after each update, or epoch with ``schedule_by_epoch``.\n"
    "``compile``: \"automatic\" compiles the steps of a net whose loss is a name, \"never\", or \"always\".\n"
    "``checkpoint``: file in which training is saved and from which it resumes, bit for bit. ``checkpoint_every``: "
    "updates\n"
    "between saves, in addition to each epoch's end. ``identity``: names for things that a checkpoint cannot compare, "
    "such\n"
    "as your own functions. ``changed``: entries that may differ from the checkpoint. ``progress``: adds a "
    "ProgressBar.\n\n"
    "The parameters are bit for bit those of a hand-written loop. The model has its previous modes at the end. Raises\n"
    "AnomalyError when a loss or a gradient is not finite, before any parameter changes. KeyboardInterrupt ends it.";

using AnyModule = Typed<"ferrite._ferrite._nn._Module">;
using AnyData = Typed<"_DataLoader | Dataset | tuple">;
using AnySet = Typed<"Dataset | tuple">;
using AnyInputs = Typed<"Dataset | tuple | ferrite._ferrite.Tensor | ArrayLike">;
using AnyLoss = Typed<"str | LossOfSums | collections.abc.Callable">;
using AnyStep = Typed<"collections.abc.Callable[[Batch], ferrite._ferrite.Tensor | tuple]">;
using AnyOptimizers =
    Typed<"ferrite._ferrite._optim.Optimizer | collections.abc.Sequence[ferrite._ferrite._optim.Optimizer]">;
using AnyMetrics = Typed<"collections.abc.Sequence[str | Metric | collections.abc.Callable]">;
using AnyCallbacks = Typed<"collections.abc.Sequence[Callback | collections.abc.Callable[[Training], object]]">;

void define_loss(nb::module_& m) {
  nb::class_<LossOfSums>(m, "LossOfSums",
                         "A loss by a function of (prediction, target), or (prediction, batch), that returns the sum "
                         "of the losses and their\n"
                         "number, a tensor of one element or a number. The loss of a batch is sum / count; for a batch "
                         "in parts it is the sum\n"
                         "of all sums divided by that of all counts, however unequal the counts are.")
      .def(
          "__init__", [](LossOfSums* p, AnyFunction f) { new (p) LossOfSums{Kept(f)}; }, "f"_a);
}

void define_fit(nb::module_& m) {
  m.def(
      "fit",
      [m](AnyModule model, AnyData data, AnyLoss loss, AnyOptimizers optimizer, std::int64_t epochs, AnyData validation,
          const AnyMetrics& metrics, const AnyCallbacks& callbacks, std::int64_t batch_size, std::uint64_t seed,
          AnyStep forward, AnyStep step, std::int64_t accumulate, double clip_norm, double clip_value,
          nn::Schedule* schedule, bool schedule_by_epoch, train::Compile compile,
          std::optional<std::filesystem::path> checkpoint, std::int64_t checkpoint_every,
          const train::Fingerprint& identity, std::vector<std::string> changed, bool progress) {
        if (!nb::isinstance<nn::Module>(model)) throw ValueError("fit: the model is not a module");
        const AnyLoader loader(data, batch_size, true, seed);
        std::optional<AnyLoader> validating;
        if (!validation.is_none()) validating.emplace(validation, std::max<std::int64_t>(batch_size, 1), false, seed);
        const nb::object bar = progress ? m.attr("ProgressBar")() : nb::none();
        train::FitOptions options{.loss = loss_of(loss),
                                  .epochs = epochs,
                                  .validation = validating ? &validating->get() : nullptr,
                                  .metrics = metrics_of(metrics),
                                  .accumulate = accumulate,
                                  .clip_norm = clip_norm,
                                  .clip_value = clip_value,
                                  .schedule = schedule,
                                  .schedule_by_epoch = schedule_by_epoch,
                                  .compile = compile,
                                  .checkpoint = checkpoint.value_or(std::filesystem::path()),
                                  .checkpoint_every = checkpoint_every,
                                  .identity = identity,
                                  .changed = std::move(changed)};
        const nb::tuple kept(nb::borrow(callbacks));  // a callback may change the list
        for (nb::handle c : kept) options.callbacks.push_back(callback_of(c));
        if (progress) options.callbacks.push_back(callback_of(bar));
        options.callbacks.push_back(Interrupts());
        const Session session(model, optimizer, data);
        return fit_by(model, forward, step, loader.get(), optimizers_of(optimizer), options);
      },
      "model"_a, "data"_a, "loss"_a.none() = nb::none(), "optimizer"_a.none() = nb::none(), "epochs"_a = 1,
      "validation"_a.none() = nb::none(), "metrics"_a = nb::list(), "callbacks"_a = nb::list(), nb::kw_only(),
      "batch_size"_a = 32, "seed"_a = 0, "forward"_a.none() = nb::none(), "step"_a.none() = nb::none(),
      "accumulate"_a = 1, "clip_norm"_a = 0.0, "clip_value"_a = 0.0, "schedule"_a.none() = nb::none(),
      "schedule_by_epoch"_a = false, "compile"_a = train::Compile::automatic, "checkpoint"_a.none() = nb::none(),
      "checkpoint_every"_a = 0, "identity"_a = train::Fingerprint{}, "changed"_a = std::vector<std::string>{},
      "progress"_a = false, kFitDoc);
}

void define_evaluation(nb::module_& m) {
  m.def(
      "evaluate",
      [](AnyModule model, AnyData data, AnyLoss loss, const AnyMetrics& metrics, std::int64_t batch_size,
         AnyStep forward) {
        if (!nb::isinstance<nn::Module>(model)) throw ValueError("evaluate: the model is not a module");
        const AnyLoader loader(data, batch_size, false, 0);
        const train::EvaluateOptions options{.loss = loss_of(loss), .metrics = metrics_of(metrics)};
        if (forward.is_none()) {
          const nn::Layer& net = layer_of(model, "evaluate");
          return dict_of(run([&] { return train::evaluate(net, loader.get(), options); }));
        }
        const train::Forward f = forward_of(forward, "evaluate: the forward pass");
        const nn::Module& module = *made<nn::Module>(model);
        return dict_of(run([&] { return train::evaluate(module, f, loader.get(), options); }));
      },
      "model"_a, "data"_a, "loss"_a.none() = nb::none(), "metrics"_a = nb::list(), nb::kw_only(), "batch_size"_a = 32,
      "forward"_a.none() = nb::none(),
      "Returns \"loss\" and metrics over all batches, as a dictionary, in evaluation mode and without a tape. The "
      "arguments\n"
      "are those of ``fit``.");
  m.def(
      "predict",
      [](const nn::Layer& net, AnyInputs data, std::int64_t batch_size) {
        const train::Dataset set = PyTuple_Check(data.ptr()) || nb::isinstance<train::Dataset>(data)
                                       ? dataset_of(data)
                                       : dataset_of(nb::make_tuple(data));
        return run([&] { return train::predict(net, set, batch_size); });
      },
      "net"_a, "data"_a, "batch_size"_a = 256,
      "Returns the output of a net for all examples of a data set or an array in their order, [N, ...], in evaluation "
      "mode.");
  m.def(
      "adapt",
      [](const nn::Layer& net, AnySet data, std::size_t field) {
        const train::Dataset set = dataset_of(data);
        run([&] {
          if (const auto* layer = dynamic_cast<const nn::Standardize*>(&net)) return train::adapt(*layer, set, field);
          if (const auto* chain = dynamic_cast<const nn::Sequential*>(&net)) return train::adapt(*chain, set, field);
          throw ValueError("adapt: neither a Standardize nor a chain that begins with one but " + net.kind());
        });
      },
      "net"_a, "training"_a, "field"_a = 0,
      "Sets the mean and deviation of a Standardize, or of the one at the beginning of a chain, to those of a field of "
      "a\n"
      "data set. Call it with the training part alone.");
}

void define_history(nb::module_& m) {
  nb::class_<train::History> c(
      m, "History", "The values of every epoch by name, as ``fit`` returns them: a mapping to NumPy arrays.");
  c.def(
      "__getitem__",
      [](const train::History& h, const std::string& name) {
        if (std::ranges::find(h.names(), name) == h.names().end()) throw nb::key_error(name.c_str());
        return array_of(h[name]);
      },
      "name"_a, nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"));
  c.def(
      "keys", [](const train::History& h) { return h.names(); }, "Returns the names of all values.");
  c.def("__iter__", [](const train::History& h) { return nb::iter(nb::cast(h.names())); });
  c.def("__len__", [](const train::History& h) { return h.names().size(); });
  c.def("__contains__", [](const train::History& h, const std::string& name) {
    return std::ranges::find(h.names(), name) != h.names().end();
  });
  const auto dict = [](const train::History& h) {
    nb::dict all;
    for (const std::string& name : h.names()) all[name.c_str()] = array_of(h[name]);
    return all;
  };
  c.def("to_dict", dict, "Returns the values as a dictionary of NumPy arrays.");
  c.def(
      "items", [dict](const train::History& h) { return dict(h).items(); }, "Returns pairs of names and arrays.");
  c.def(
      "values", [dict](const train::History& h) { return dict(h).values(); }, "Returns the arrays.");
  c.def(
      "at", [](const train::History& h, std::int64_t epoch) { return dict_of(h.at(epoch)); }, "epoch"_a,
      "Returns the values of an epoch, counted from 0, as a dictionary.");
  c.def_prop_ro("epochs", &train::History::epochs, "The number of epochs whose values are held.");
  c.def_prop_ro("resumed", &train::History::resumed,
                "The number of finished epochs in the checkpoint from which this training resumed; 0 if it did not.");
  c.def_prop_ro("stopped", &train::History::stopped,
                "Why training ended before its last epoch; empty when it did not.");
  c.def("__repr__", [](const train::History& h) {
    std::string all;
    for (const std::string& n : h.names()) all += ", " + n;
    return "History(" + std::to_string(h.epochs()) + " epochs" + all + ")";
  });
}

}  // namespace

nb::object array_of(std::vector<double> values) {
  auto* kept = new std::vector<double>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double>(kept->data(), {kept->size()}, owner), nb::rv_policy::reference);
}

nb::dict dict_of(const train::Logs& logs) {
  nb::dict all;
  for (const auto& [name, value] : logs) all[name.c_str()] = value;
  return all;
}

void define_training(nb::module_& m) {
  define_history(m);
  define_callbacks(m);
  define_metrics(m);
  define_checkpoints(m);
  define_charts(m);
  define_loss(m);
  define_fit(m);
  define_evaluation(m);
}

}  // namespace ferrite::python
