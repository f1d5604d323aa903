// Callbacks of training in Python: the library's, and classes that derive from Callback.
#include "ferrite/train/callbacks.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/trampoline.h>

#include <array>
#include <ostream>
#include <streambuf>

#include "module.h"
#include "training.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;
using Path = std::filesystem::path;

namespace {

/// The running training as Python sees it.
struct TrainingObject {
  train::Training* of;
  nb::object model, optimizer, data;

  train::Training& get() const {
    if (!of) throw ValueError("training: it has ended");
    return *of;
  }
};

thread_local Session* current = nullptr;

/// The methods of a Callback.
enum class Method : std::uint8_t {
  train_begin,
  epoch_begin,
  batch_end,
  validation_begin,
  validation_end,
  epoch_end,
  train_end,
  not_finite,
  name,
  settings,
  sets_rate,
  state,
  restore
};
constexpr std::array<const char*, 13> kMethods{"on_train_begin",
                                               "on_epoch_begin",
                                               "on_batch_end",
                                               "on_validation_begin",
                                               "on_validation_end",
                                               "on_epoch_end",
                                               "on_train_end",
                                               "on_not_finite",
                                               "name",
                                               "settings",
                                               "sets_rate",
                                               "state",
                                               "restore"};

/// A callback whose class is written in Python.
class PythonCallback final : public train::Callback {
 public:
  NB_TRAMPOLINE(train::Callback);
  PythonCallback() = default;

  void on_train_begin(train::Training& t) override { tell(Method::train_begin, t); }
  void on_epoch_begin(train::Training& t) override { tell(Method::epoch_begin, t); }
  void on_batch_end(train::Training& t) override { tell(Method::batch_end, t); }
  void on_validation_begin(train::Training& t) override { tell(Method::validation_begin, t); }
  void on_validation_end(train::Training& t) override { tell(Method::validation_end, t); }
  void on_epoch_end(train::Training& t) override { tell(Method::epoch_end, t); }
  void on_train_end(train::Training& t) override { tell(Method::train_end, t); }
  bool on_not_finite(train::Training& t, const std::string& what) override {
    const nb::gil_scoped_acquire lock;
    if (!overrides(Method::not_finite)) return false;
    const nb::object yes = method(Method::not_finite)(Session::handle_of(t), what);
    return nb::cast<bool>(nb::bool_(yes));
  }
  std::string name() const override {
    const nb::gil_scoped_acquire lock;
    if (overrides(Method::name)) return nb::cast<std::string>(method(Method::name)());
    return name_of_object(nb::handle(nb_trampoline.base().type()));
  }
  std::string settings() const override { return asked<std::string>(Method::settings); }
  bool sets_rate() const override { return asked<bool>(Method::sets_rate); }
  std::vector<double> state() const override { return asked<std::vector<double>>(Method::state); }
  void restore(const std::vector<double>& state) override {
    const nb::gil_scoped_acquire lock;
    if (!overrides(Method::restore)) return Callback::restore(state);
    method(Method::restore)(state);
  }

 private:
  nb::object method(Method m) const { return nb_trampoline.base().attr(kMethods[static_cast<std::size_t>(m)]); }
  /// Returns whether the class has its own method.
  bool overrides(Method m) const {
    signed char& known = overrides_[static_cast<std::size_t>(m)];
    if (known < 0) {
      const char* name = kMethods[static_cast<std::size_t>(m)];
      const nb::object own = nb::handle(nb_trampoline.base().type()).attr(name);
      known = !own.is(nb::type<train::Callback>().attr(name));
    }
    return known > 0;
  }
  void tell(Method m, train::Training& t) const {
    if (overrides_[static_cast<std::size_t>(m)] == 0) return;
    const nb::gil_scoped_acquire lock;
    if (overrides(m)) method(m)(Session::handle_of(t));
  }
  template <class T>
  T asked(Method m) const {
    const nb::gil_scoped_acquire lock;
    return overrides(m) ? nb::cast<T>(method(m)()) : T{};
  }

  mutable std::array<signed char, kMethods.size()> overrides_ = [] {
    std::array<signed char, kMethods.size()> unknown;
    unknown.fill(-1);
    return unknown;
  }();
};

/// Writes text to a file object of Python.
class PythonText final : public std::streambuf {
 public:
  void send_to(nb::object file) { file_ = Kept(file); }

 protected:
  int_type overflow(int_type c) override {
    if (!traits_type::eq_int_type(c, traits_type::eof())) text_.push_back(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* s, std::streamsize n) override {
    text_.append(s, static_cast<std::size_t>(n));
    return n;
  }
  int sync() override {
    const nb::gil_scoped_acquire lock;
    file_.get().attr("write")(nb::str(text_.data(), text_.size()));
    file_.get().attr("flush")();
    text_.clear();
    return 0;
  }

 private:
  Kept file_;
  std::string text_;
};

/// The library's progress bar on a file object of Python, by default the sys.stdout of the moment.
class PythonProgress final : public train::Callback {
 public:
  PythonProgress(nb::handle file, std::optional<bool> terminal, int columns)
      : file_(file), terminal_(terminal), columns_(columns) {}
  std::string name() const override { return "progress_bar"; }
  void on_train_begin(train::Training& t) override {
    {
      const nb::gil_scoped_acquire lock;
      nb::object file = nb::borrow(file_.get());
      if (file.is_none()) file = nb::module_::import_("sys").attr("stdout");
      bool terminal = terminal_.value_or(false);
      if (!terminal_ && nb::hasattr(file, "isatty")) terminal = nb::cast<bool>(file.attr("isatty")());
      buffer_.send_to(file);
      out_.exceptions(std::ios::badbit);  // so that errors of the file reach the caller
      bar_.emplace(out_, terminal, columns_);
    }
    bar_->on_train_begin(t);
  }
  void on_batch_end(train::Training& t) override { bar_->on_batch_end(t); }
  void on_epoch_end(train::Training& t) override { bar_->on_epoch_end(t); }
  void on_train_end(train::Training& t) override { bar_->on_train_end(t); }

 private:
  Kept file_;
  std::optional<bool> terminal_;
  int columns_;
  PythonText buffer_;
  std::ostream out_{&buffer_};
  std::optional<train::ProgressBar> bar_{};
};

train::Monitor monitor_of(const std::string& value, std::optional<bool> larger, double least_change) {
  return {.value = value, .larger_is_better = larger, .least_change = least_change};
}

void define_training_object(nb::module_& m) {
  nb::class_<TrainingObject> c(m, "Training", "The running training, as callbacks see it.");
  c.def_prop_ro(
      "model", [](const TrainingObject& t) { return t.get(), t.model; }, "The model.");
  c.def_prop_ro(
      "optimizer", [](const TrainingObject& t) { return t.get(), t.optimizer; }, "What ``fit`` got as optimizer.");
  c.def_prop_ro(
      "data", [](const TrainingObject& t) { return t.get(), t.data; }, "What ``fit`` got as data.");
  c.def_prop_ro(
      "epoch", [](const TrainingObject& t) { return t.get().epoch(); }, "The running epoch, counted from 0.");
  c.def_prop_ro(
      "epochs", [](const TrainingObject& t) { return t.get().epochs(); },
      "The number of epochs that the training is to have.");
  c.def_prop_ro(
      "batch", [](const TrainingObject& t) { return t.get().batch(); },
      "The number of finished batches of this epoch.");
  c.def_prop_ro(
      "batches", [](const TrainingObject& t) { return t.get().data().batches(); },
      "The number of batches of an epoch.");
  c.def_prop_ro(
      "step", [](const TrainingObject& t) { return t.get().step(); }, "The number of updates so far, in all epochs.");
  c.def_prop_ro(
      "logs", [](const TrainingObject& t) { return dict_of(t.get().logs()); },
      "The values of this epoch's batches so far, at its end also those of the validation.");
  c.def_prop_ro(
      "history", [](const TrainingObject& t) { return train::History(t.get().history()); },
      "A copy of the values of the epochs that have ended.");
  c.def(
      "validated", [](const TrainingObject& t) { return t.get().validated(); },
      "Returns the parameters and buffers with which the values \"val_...\" of this epoch were computed.");
  c.def(
      "log", [](const TrainingObject& t, const std::string& name, double value) { t.get().log(name, value); }, "name"_a,
      "value"_a, "Adds a value to this epoch's logs, and in on_epoch_end to the history; later callbacks see it.");
  c.def(
      "stop", [](const TrainingObject& t, const std::string& reason) { t.get().stop(reason); },
      "reason"_a = "a callback", "Ends the training after this batch or epoch. The reason becomes History.stopped.");
}

void define_base(nb::module_& m) {
  nb::class_<train::Callback, PythonCallback> c(
      m, "Callback",
      "An observer of a training, to derive from. ``fit`` calls callbacks in the order of its list; an exception from "
      "one\n"
      "ends the training::\n\n"
      "    class Printer(Callback):\n        def on_epoch_end(self, training):\n            print(training.epoch, "
      "training.logs)\n\n"
      "``state`` and ``restore`` give checkpoints the numbers that the callback needs when training resumes.");
  c.def(nb::init<>());
  const auto event = [&](const char* name, const char* doc) {
    c.def(
        name, [](train::Callback&, Typed<"Training">) {}, "training"_a, doc);
  };
  event("on_train_begin", "Called at the beginning.");
  event("on_epoch_begin", "Called at the beginning of each epoch.");
  event("on_batch_end", "Called after each batch, its update included.");
  event("on_validation_begin", "Called before the validation.");
  event("on_validation_end", "Called after the validation, even when it raised an error.");
  event("on_epoch_end", "Called after each epoch and its validation, whose values the logs then hold.");
  event("on_train_end", "Called once after the last epoch, but not when training ended by an exception.");
  c.def(
      "on_not_finite", [](train::Callback&, Typed<"Training">, Typed<"str">) { return false; }, "training"_a, "what"_a,
      "Called when a loss or gradient is not finite. Returns whether training ends without an exception.");
  c.def(
      "name", [](nb::handle self) { return name_of_object(nb::handle(self.type())); },
      "Returns the callback's name in checkpoints; by default that of the class.");
  c.def(
      "settings", [](train::Callback&) { return ""; },
      "Returns the options as text, of a callback that changes what training computes; a checkpoint resumes only with\n"
      "the same ones.");
  c.def(
      "sets_rate", [](train::Callback&) { return false; }, "Returns whether the callback sets learning rates.");
  c.def(
      "state", [](train::Callback&) { return std::vector<double>(); },
      "Returns the list of numbers that the callback needs when training resumes.");
  c.def(
      "restore", [](train::Callback& c, const std::vector<double>& state) { c.Callback::restore(state); }, "state"_a,
      "Restores what ``state`` returned.");
}

void define_stopping(nb::module_& m) {
  nb::class_<train::EarlyStopping, train::Callback>(
      m, "EarlyStopping",
      "Ends training when a value has not become better for more than ``patience`` epochs in a row, and by default\n"
      "restores the best weights.\n\n"
      "``monitor``: a name of the logs. ``larger_is_better``: None: the name decides. ``least_change``: a value counts "
      "as\n"
      "better only when it beats the best by more than this. ``start_from_epoch``: the first epoch that is compared.")
      .def(
          "__init__",
          [](train::EarlyStopping* p, const std::string& monitor, std::int64_t patience, std::optional<bool> larger,
             double least_change, bool restore, std::int64_t start) {
            new (p) train::EarlyStopping({monitor_of(monitor, larger, least_change), patience, restore, start});
          },
          "monitor"_a = "val_loss", "patience"_a = 0, nb::kw_only(), "larger_is_better"_a.none() = nb::none(),
          "least_change"_a = 0.0, "restore_best_weights"_a = true, "start_from_epoch"_a = 0)
      .def_prop_ro("best", &train::EarlyStopping::best, "The best value so far; NaN when no epoch had a value.")
      .def_prop_ro("best_epoch", &train::EarlyStopping::best_epoch,
                   "The epoch with the best value, counted from 1; 0: none.");
  nb::class_<train::ReduceLROnPlateau, train::Callback>(
      m, "ReduceLROnPlateau",
      "Lowers the learning rate by ``factor`` when a value has not improved for more than ``patience`` epochs.")
      .def(
          "__init__",
          [](train::ReduceLROnPlateau* p, const std::string& monitor, double factor, std::int64_t patience,
             std::int64_t cooldown, double least_rate, std::optional<bool> larger, double least_change) {
            new (p) train::ReduceLROnPlateau(
                {monitor_of(monitor, larger, least_change), factor, patience, cooldown, least_rate});
          },
          "monitor"_a = "val_loss", "factor"_a = 0.1, "patience"_a = 10, nb::kw_only(), "cooldown"_a = 0,
          "least_rate"_a = 0.0, "larger_is_better"_a.none() = nb::none(), "least_change"_a = 0.0);
  nb::class_<train::TerminateOnNaN, train::Callback>(
      m, "TerminateOnNaN",
      "Ends training without an exception when a loss or a gradient is not finite; History.stopped says where.")
      .def(nb::init<>());
  nb::class_<train::Ema, train::Callback>(
      m, "Ema",
      "Keeps exponential moving averages of the weights, which replace the weights during validation and, with\n"
      "``in_the_end``, when training has ended.")
      .def(nb::init<std::vector<Parameter>, double, bool>(), "parameters"_a, "decay"_a = 0.999, "in_the_end"_a = true);
}

void define_writers(nb::module_& m) {
  nb::class_<PythonProgress, train::Callback>(
      m, "ProgressBar",
      "Writes the progress of training to a file object, by default sys.stdout. On a terminal it updates one line with "
      "a\n"
      "bar, the values, samples per second and the time left; elsewhere it writes one plain line per epoch.\n\n"
      "``terminal``: None: what ``file.isatty()`` says. ``columns``: the width of a line; 0: that of the terminal.")
      .def(
          "__init__",
          [](PythonProgress* p, Typed<"typing.TextIO"> file, std::optional<bool> terminal, int columns) {
            new (p) PythonProgress(file, terminal, columns);
          },
          "file"_a.none() = nb::none(), "terminal"_a.none() = nb::none(), "columns"_a = 0);
  nb::class_<train::ModelCheckpoint, train::Callback>(m, "ModelCheckpoint",
                                                      "Saves the model's best weights as \"best.safetensors\" in a "
                                                      "folder, and those of its ``last`` epochs. To resume\n"
                                                      "training, use ``fit(checkpoint=...)`` instead.")
      .def(
          "__init__",
          [](train::ModelCheckpoint* p, const Path& folder, const std::string& monitor, bool best, std::int64_t last,
             std::optional<bool> larger, double least_change) {
            new (p) train::ModelCheckpoint(folder, {monitor_of(monitor, larger, least_change), best, last});
          },
          "folder"_a, "monitor"_a = "val_loss", nb::kw_only(), "best"_a = true, "last"_a = 0,
          "larger_is_better"_a.none() = nb::none(), "least_change"_a = 0.0)
      .def_prop_ro("best_path", &train::ModelCheckpoint::best_path, "The path of the best weights.");
  nb::class_<train::CSVLogger, train::Callback>(m, "CSVLogger",
                                                "Writes the values of all epochs to a CSV file after every epoch.")
      .def(nb::init<Path>(), "path"_a);
  nb::class_<train::Curves, train::Callback>(m, "Curves",
                                             "Draws the values of these names over epochs as curves in one SVG "
                                             "picture, after every epoch. No names: the losses.")
      .def(nb::init<Path, std::vector<std::string>, std::string>(), "path"_a, "names"_a = std::vector<std::string>{},
           "title"_a = "");
  nb::class_<train::TensorBoard, train::Callback>(m, "TensorBoard",
                                                  "Writes the values of epochs to event files that ``tensorboard "
                                                  "--logdir`` shows, as the runs \"<folder>/train\" and\n"
                                                  "\"<folder>/validation\".\n\n"
                                                  "``histograms``: histograms of all parameters after every epoch "
                                                  "divisible by this; 0: none. ``update_losses``: also\n"
                                                  "writes the mean loss of the epoch so far after every batch.")
      .def(
          "__init__",
          [](train::TensorBoard* p, const Path& folder, std::int64_t histograms, bool update_losses) {
            new (p) train::TensorBoard(folder, {histograms, update_losses});
          },
          "folder"_a, nb::kw_only(), "histograms"_a = 0, "update_losses"_a = false);
}

std::function<void(train::Training&)> event_of(nb::handle f) {
  if (f.is_none()) return {};
  return [f = Kept(f)](train::Training& t) {
    const nb::gil_scoped_acquire lock;
    f.get()(Session::handle_of(t));
  };
}

using AnyEvent = Typed<"collections.abc.Callable[[Training], object]">;

void define_lambda(nb::module_& m) {
  nb::class_<train::LambdaCallback, train::Callback>(
      m, "LambdaCallback", "Calls functions of the training; those that are not given are skipped.")
      .def(
          "__init__",
          [](train::LambdaCallback* p, AnyEvent train_begin, AnyEvent epoch_begin, AnyEvent batch_end,
             AnyEvent epoch_end, AnyEvent train_end) {
            new (p) train::LambdaCallback({event_of(train_begin), event_of(epoch_begin), event_of(batch_end),
                                           event_of(epoch_end), event_of(train_end)});
          },
          nb::kw_only(), "on_train_begin"_a.none() = nb::none(), "on_epoch_begin"_a.none() = nb::none(),
          "on_batch_end"_a.none() = nb::none(), "on_epoch_end"_a.none() = nb::none(),
          "on_train_end"_a.none() = nb::none());
}

}  // namespace

Session::Session(nb::handle model, nb::handle optimizer, nb::handle data)
    : model_(nb::borrow(model)), optimizer_(nb::borrow(optimizer)), data_(nb::borrow(data)), outer_(current) {
  current = this;
}

Session::~Session() {
  current = outer_;
  if (handle_.is_valid()) nb::inst_ptr<TrainingObject>(handle_)->of = nullptr;
}

nb::object Session::handle_of(train::Training& training) {
  Session& s = *current;
  if (!s.handle_.is_valid()) s.handle_ = nb::cast(TrainingObject{&training, s.model_, s.optimizer_, s.data_});
  return s.handle_;
}

void define_callbacks(nb::module_& m) {
  define_training_object(m);
  define_base(m);
  define_stopping(m);
  define_writers(m);
  define_lambda(m);
}

}  // namespace ferrite::python
