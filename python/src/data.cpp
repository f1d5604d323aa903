// Data sets, loaders and splits in Python.
#include <nanobind/ndarray.h>

#include "ferrite/train/characters.h"
#include "ferrite/train/split.h"
#include "ferrite/train/windows.h"
#include "module.h"
#include "training.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;

namespace {

using AnySet = Typed<"Dataset | tuple">;
using AnyFields = Typed<"collections.abc.Sequence[bool | float | None]">;
using AnySequence = Typed<"collections.abc.Sequence[ferrite._ferrite.Tensor | ArrayLike]">;

/// Returns whether an object is a list of arrays of at least one axis each.
bool is_list_of_arrays(nb::handle o) {
  if (!PyList_Check(o.ptr()) || nb::len(o) == 0) return false;
  const nb::object first = o[0];
  return is_tensor(first) || nb::ndarray_check(first) || PyList_Check(first.ptr());
}

std::vector<Tensor> tensors_in(nb::handle list) {
  std::vector<Tensor> all;
  for (nb::handle each : list) all.push_back(tensor_of(each));
  return all;
}

/// Returns the column in an object: a Column, an array whose rows are examples, or a list of sequences. Sequences of
/// equal length are rows.
train::Column column_of(nb::handle o) {
  if (nb::isinstance<train::Column>(o)) return *made<train::Column>(o);
  if (!is_list_of_arrays(o)) return tensor_of(o);
  const std::vector<Tensor> each = tensors_in(o);
  for (const Tensor& t : each)
    if (t.shape() != each[0].shape()) return train::sequences(each);
  return stack(each);
}

std::vector<train::Field> fields_of(nb::handle fields) {
  std::vector<train::Field> all;
  if (fields.is_none()) return all;
  for (nb::handle f : fields) {
    if (nb::isinstance<nb::bool_>(f))
      all.push_back({.sequence = nb::cast<bool>(f)});
    else
      all.push_back({.sequence = !f.is_none(), .padding = f.is_none() ? 0 : nb::cast<double>(f)});
  }
  return all;
}

/// Returns the tensors of an example that a Python function returned: one, or a tuple or list of them.
Tensors example_of(nb::handle o) {
  Tensors all;
  if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) {
    for (nb::handle each : o) all.push_back(tensor_of(each));
  } else {
    all.push_back(tensor_of(o));
  }
  return all;
}
nb::tuple tuple_of(const Tensors& example) {
  nb::list all;
  for (const Tensor& t : example) all.append(t);
  return nb::tuple(all);
}

/// Returns a function of examples; its arguments are the tensors of the example, and the key if there is one.
template <class... More>
std::function<Tensors(const Tensors&, const More&...)> function_of_example(nb::handle f) {
  return [kept = Kept(f)](const Tensors& example, const More&... more) {
    const nb::gil_scoped_acquire lock;
    nb::list arguments;
    for (const Tensor& t : example) arguments.append(t);
    (arguments.append(more), ...);
    return example_of(kept.get()(*arguments));
  };
}

train::Dataset from_function(std::int64_t size, AnyFunction example, AnyFields fields) {
  return {size,
          [kept = Kept(example)](std::int64_t i) {
            const nb::gil_scoped_acquire lock;
            return example_of(kept.get()(i));
          },
          fields_of(fields)};
}

train::Dataset collect(Typed<"collections.abc.Iterable"> examples, AnyFields fields) {
  nb::iterator next = nb::iter(examples);
  return train::Dataset::collect(
      [&]() -> std::optional<Tensors> {
        if (next == nb::iterator::sentinel()) return {};
        const Tensors example = example_of(*next);
        ++next;
        return example;
      },
      fields_of(fields));
}

std::int64_t in_range(const train::Dataset& d, std::int64_t i) {
  const std::int64_t at = i < 0 ? i + d.size() : i;
  if (at < 0 || at >= d.size())
    throw nb::index_error(("example " + std::to_string(i) + " of " + std::to_string(d.size())).c_str());
  return at;
}

nb::object item_of(const train::Dataset& d, nb::handle key) {
  if (PySlice_Check(key.ptr())) {
    const nb::object numbers = nb::module_::import_("builtins").attr("range")(d.size())[key];
    std::vector<std::int64_t> all;
    for (nb::handle i : numbers) all.push_back(nb::cast<std::int64_t>(i));
    return nb::cast(d.subset(std::move(all)));
  }
  const std::int64_t i = in_range(d, nb::cast<std::int64_t>(key));
  return tuple_of(run([&] { return d[i]; }));
}

void define_batch(nb::module_& m) {
  nb::class_<train::Batch> c(
      m, "Batch",
      "Examples joined along a new first axis; sequences are padded to the longest. It unpacks into\n"
      "its fields: ``for x, y in loader``.");
  c.def_prop_ro(
      "fields", [](const train::Batch& b) { return tuple_of(b.fields); },
      "Each field of the examples: [B, ...], sequences [B, T, ...].");
  c.def_prop_ro(
      "lengths", [](const train::Batch& b) { return tuple_of(b.lengths); },
      "The lengths of each field: i64 [B] for sequences, None for others.");
  c.def_prop_ro(
      "x", [](const train::Batch& b) { return b.x(); }, "The first field, by convention the input.");
  c.def_prop_ro(
      "y", [](const train::Batch& b) { return b.y(); }, "The second field, by convention the target.");
  c.def_prop_ro("size", &train::Batch::size, "The number of examples.");
  c.def_prop_ro(
      "target_lengths", [](const train::Batch& b) { return b.target_lengths(); },
      "The number of steps of the target that count, i64 [B]; None if all do.");
  c.def("__len__", [](const train::Batch& b) { return b.fields.size(); });
  c.def("__getitem__", [](const train::Batch& b, std::int64_t i) {
    const auto n = static_cast<std::int64_t>(b.fields.size());
    if (i < -n || i >= n) throw nb::index_error("a field that the batch does not have");
    return b.fields[static_cast<std::size_t>(i < 0 ? i + n : i)];
  });
  c.def("__iter__", [](const train::Batch& b) { return nb::iter(tuple_of(b.fields)); });
  c.def("__repr__", [](const train::Batch& b) {
    std::string all;
    for (const Tensor& t : b.fields) all += (all.empty() ? "" : ", ") + t.spec().str();
    return "Batch(" + all + ")";
  });
}

void define_dataset_changes(nb::class_<train::Dataset>& c) {
  c.def(
      "subset",
      [](const train::Dataset& d, std::vector<std::int64_t> examples) { return d.subset(std::move(examples)); },
      "examples"_a, "Returns the set of the examples with these numbers, in that order; numbers may repeat.");
  c.def("first", &train::Dataset::first, "n"_a,
        "Returns the set of the first n examples, or of all if there are fewer.");
  c.def(
      "map",
      [](const train::Dataset& d, AnyFunction f, AnyFields fields) {
        return d.map(function_of_example<>(f), fields_of(fields));
      },
      "f"_a, "fields"_a.none() = nb::none(),
      "Returns the set in which ``f(*tensors)`` changes each example on demand, on any thread. ``fields`` describes "
      "the\n"
      "examples after the change, as for from_function; by default they stay as they are.");
  c.def(
      "augment",
      [](const train::Dataset& d, AnyFunction f) { return d.augment(function_of_example<train::ExampleKey>(f)); },
      "f"_a,
      "Returns the set in which ``f(*tensors, key)`` changes each example at random. ``key(name)`` gives the keyword\n"
      "arguments of a draw, which depend on the loader's seed, the epoch and the place in its order alone::\n\n"
      "    data.augment(lambda x, y, key: (x + ferrite.normal(x.shape, deviation=0.01, **key(\"noise\")), y))");
  c.def(
      "__add__", [](const train::Dataset& a, const train::Dataset& b) { return a + b; }, nb::is_operator());
}

void define_dataset(nb::module_& m) {
  nb::class_<train::Column>(m, "Column", "One field of all examples, held in memory.")
      .def("__len__", &train::Column::size)
      .def("__getitem__", [](const train::Column& c, std::int64_t i) {
        if (i < 0 || i >= c.size()) throw nb::index_error("an example that the column does not have");
        return c[i];
      });
  m.def(
      "sequences", [](AnySequence each, double padding) { return train::sequences(tensors_in(each), padding); },
      "each"_a, "padding"_a = 0.0,
      "Returns a column of sequences [T, ...] of different lengths, which batches pad with ``padding``.");
  m.def(
      "sequences",
      [](const Tensor& steps, const Tensor& lengths, double padding) {
        return train::sequences(steps, lengths, padding);
      },
      "steps"_a, "lengths"_a, "padding"_a = 0.0,
      "Returns a column of concatenated sequences: steps [sum of lengths, ...], lengths i64 or i32 [N].");
  nb::class_<train::ExampleKey>(m, "ExampleKey", "The key of an example's random numbers.")
      .def_ro("seed", &train::ExampleKey::seed)
      .def_ro("epoch", &train::ExampleKey::epoch)
      .def_ro("place", &train::ExampleKey::place)
      .def(
          "__call__",
          [](const train::ExampleKey& k, const std::string& name) {
            const RandomKey r = k(name);
            nb::dict all;
            all["seed"] = r.seed, all["stream"] = r.stream, all["call"] = r.call;
            return all;
          },
          "name"_a,
          "Returns the keyword arguments (seed, stream, call) for a named draw: draws with different names are "
          "independent.");
  nb::class_<train::Dataset> c(
      m, "Dataset",
      "Numbered examples, each a tuple of tensors: inputs, targets, and whatever else a step needs::\n\n"
      "    Dataset(x, y)                        # example i is row i of each array\n"
      "    Dataset([wave_a, wave_b], labels)    # sequences of different lengths, padded in batches\n"
      "    Dataset(sequences(waves, padding=-1), labels)\n\n"
      "A column is an array [N, ...], a list of arrays, or what ``sequences`` returns. Arrays are copied. Raises "
      "ShapeError\n"
      "for columns of different sizes.");
  c.def("__init__", [](train::Dataset* p, nb::args columns) { new (p) train::Dataset(dataset_of(columns)); });
  c.def_static(
      "from_function", from_function, "size"_a, "example"_a, "fields"_a.none() = nb::none(),
      "Returns a set whose examples ``example(i)`` computes on demand, a tensor or a tuple of them. It must return\n"
      "the same for the same number, and threads of a loader may call it. ``fields`` has an entry for each tensor:\n"
      "None or False, or the number that pads sequences (True: 0).");
  c.def_static("collect", collect, "examples"_a, "fields"_a.none() = nb::none(),
               "Collects examples from an iterable and keeps them in memory. ``fields`` as for from_function.");
  c.def("__len__", &train::Dataset::size);
  c.def("__getitem__", item_of, "key"_a, nb::sig("def __getitem__(self, key: int | slice) -> typing.Any"),
        "Returns an example as a tuple of tensors, or the subset of a slice.");
  c.def(
      "length", [](const train::Dataset& d, std::int64_t i) { return d.length(in_range(d, i)); }, "i"_a, Call(),
      "Returns the first extent of the longest sequence of example i; 0 without sequences.");
  c.def("fingerprint", &train::Dataset::fingerprint, Call(), "Returns a text that identifies this set.");
  c.def("__repr__", [](const train::Dataset& d) { return "Dataset(" + run([&] { return d.fingerprint(); }) + ")"; });
  c.def(
      "batch", [](const train::Dataset& d, const std::vector<std::int64_t>& examples) { return d.batch(examples); },
      "examples"_a, Call(), "Returns several examples as one batch.");
  c.def("all", &train::Dataset::all, Call(), "Returns all examples as one batch.");
  define_dataset_changes(c);
}

/// The batches of an epoch. What threads make in the background may need the interpreter's lock.
class EpochObject {
 public:
  EpochObject(const train::DataLoader& loader, std::int64_t number, std::int64_t first)
      : epoch_(run([&] { return std::make_unique<train::DataLoader::Epoch>(loader.epoch(number, first)); })) {}
  ~EpochObject() {
    const nb::gil_scoped_release unlocked;
    epoch_.reset();
  }
  EpochObject(EpochObject&& o) noexcept = default;

  train::Batch next() {
    auto batch = run([&]() -> std::optional<train::Batch> {
      if (begun_ && !(at_ == epoch_->end())) ++at_;
      begun_ = true;
      if (at_ == epoch_->end()) return {};
      return *at_;
    });
    if (!batch) throw nb::stop_iteration();
    return *std::move(batch);
  }

 private:
  std::unique_ptr<train::DataLoader::Epoch> epoch_;
  train::DataLoader::Epoch::Iterator at_ = epoch_->begin();
  bool begun_ = false;
};

/// A loader, and the number of the epoch that the next `for` runs over.
struct LoaderObject : train::DataLoader {
  using DataLoader::DataLoader;
  std::int64_t next_epoch = 0;
};

void define_loader(nb::module_& m) {
  nb::class_<EpochObject>(m, "_Epoch")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", &EpochObject::next);
  nb::class_<train::DataLoader>(m, "_DataLoader");
  nb::class_<LoaderObject, train::DataLoader> c(
      m, "DataLoader",
      "Makes the batches of epochs over a data set::\n\n"
      "    loader = DataLoader(data, batch_size=64, threads=2)\n"
      "    for epoch in range(10):\n        for x, y in loader: ...\n\n"
      "Each ``for`` is the next epoch, with an order of its own; ``loader.epoch(n)`` is a given one. A batch depends "
      "only on\n"
      "the set, the options, the epoch and its number: it is the same for any number of threads.\n\n"
      "``data``: a Dataset, or a tuple of columns. ``batch_size``: number of examples in a batch. ``shuffle``: whether "
      "every\n"
      "epoch has its own random order, drawn from ``seed``. ``drop_last``: leaves out a smaller last batch. "
      "``weights``: of\n"
      "the examples, which are drawn with replacement in proportion to them, ``samples`` in an epoch. "
      "``bucket_lengths``:\n"
      "the largest length of each bucket; a batch holds sequences of one bucket. ``buckets``: number of buckets whose\n"
      "lengths are chosen from the data. ``threads``: number of threads that make batches in the background. "
      "``prefetch``:\n"
      "number of batches that each makes ahead.");
  c.def(
      "__init__",
      [](LoaderObject* p, AnySet data, std::int64_t batch_size, bool shuffle, std::uint64_t seed, bool drop_last,
         const Tensor& weights, std::int64_t samples, std::vector<std::int64_t> bucket_lengths, int buckets,
         int threads, int prefetch) {
        const train::Dataset set = dataset_of(data);
        const train::LoaderOptions options{
            batch_size, shuffle, seed,    drop_last, weights, samples, std::move(bucket_lengths),
            buckets,    threads, prefetch};
        run([&] { new (p) LoaderObject(set, options); });
      },
      "data"_a, "batch_size"_a = 32, nb::kw_only(), "shuffle"_a = true, "seed"_a = 0, "drop_last"_a = false,
      "weights"_a.none() = nb::none(), "samples"_a = 0, "bucket_lengths"_a = std::vector<std::int64_t>{},
      "buckets"_a = 0, "threads"_a = 0, "prefetch"_a = 2);
  c.def("__len__", [](const LoaderObject& l) { return l.batches(); });
  c.def(
      "__iter__", [](LoaderObject& l) { return EpochObject(l, l.next_epoch++, 0); }, nb::keep_alive<0, 1>());
  c.def(
      "epoch",
      [](const LoaderObject& l, std::int64_t epoch, std::int64_t first) { return EpochObject(l, epoch, first); },
      "epoch"_a, "first"_a = 0, nb::keep_alive<0, 1>(), "Returns the batches of an epoch from ``first`` on.");
  c.def(
      "batch", [](const LoaderObject& l, std::int64_t epoch, std::int64_t i) { return l.batch(epoch, i); }, "epoch"_a,
      "i"_a, Call(), "Makes batch i of an epoch.");
  c.def(
      "examples", [](const LoaderObject& l, std::int64_t epoch, std::int64_t i) { return l.examples(epoch, i); },
      "epoch"_a, "i"_a, Call(), "Returns the numbers of the examples in batch i of an epoch.");
  c.def_prop_ro(
      "data", [](const LoaderObject& l) { return l.data(); }, "The data set.");
  c.def_prop_ro(
      "batches", [](const LoaderObject& l) { return l.batches(); }, "The number of batches of every epoch.");
  c.def_prop_ro(
      "samples", [](const LoaderObject& l) { return l.samples(); }, "The number of examples of every epoch.");
  c.def_prop_ro(
      "bucket_lengths", [](const LoaderObject& l) { return l.bucket_lengths(); }, "The largest length of each bucket.");
  m.def(
      "balanced_weights", [](const Tensor& labels) { return train::balanced_weights(labels); }, "labels"_a, Call(),
      "Returns weights with which every class is drawn equally often: labels i64 or i32 [N] -> f64 [N].");
}

nb::list pairs_of(const std::vector<train::Fold>& folds) {
  nb::list all;
  for (const train::Fold& f : folds)
    all.append(named_tuple("Fold", {"training", "validation"}, {nb::cast(f.training), nb::cast(f.validation)}));
  return all;
}

void define_splits(nb::module_& m) {
  m.def(
      "split",
      [](AnySet data, const std::vector<double>& shares, bool shuffle, std::uint64_t seed, const Tensor& stratify,
         std::int64_t gap) {
        const train::Dataset set = dataset_of(data);
        return nb::cast(run([&] { return train::split(set, shares, {shuffle, seed, stratify, gap}); }));
      },
      "data"_a, "shares"_a, nb::kw_only(), "shuffle"_a = true, "seed"_a = 0, "stratify"_a.none() = nb::none(),
      "gap"_a = 0,
      "Splits a data set into a list of parts in proportion to shares that add up to 1 or less.\n\n"
      "``shuffle``: deals examples out in random order, of ``seed``. ``stratify``: classes of the examples, i64 [N]; "
      "every\n"
      "part gets about the same share of each. ``gap``: number of examples to leave out between parts without "
      "shuffling.");
  m.def(
      "k_folds",
      [](AnySet data, std::int64_t k, bool shuffle, std::uint64_t seed, const Tensor& stratify) {
        const train::Dataset set = dataset_of(data);
        return pairs_of(run([&] { return train::k_folds(set, k, {shuffle, seed, stratify, 0}); }));
      },
      "data"_a, "k"_a, nb::kw_only(), "shuffle"_a = true, "seed"_a = 0, "stratify"_a.none() = nb::none(),
      "Returns k folds (training, validation), each with another k-th of the examples for validation.");
  m.def(
      "time_folds",
      [](AnySet data, std::int64_t k, std::int64_t gap) {
        return pairs_of(train::time_folds(dataset_of(data), k, gap));
      },
      "data"_a, "k"_a, "gap"_a = 0,
      "Returns k folds along time: fold f trains on the first f + 1 of k + 1 parts and is validated on the next part.");
  m.def(
      "windows",
      [](const Tensor& series, std::int64_t length, std::int64_t horizon, std::int64_t step, std::int64_t delay,
         std::vector<std::int64_t> targets, bool every_step, bool flat) {
        return train::windows(series, {length, horizon, step, delay, std::move(targets), every_step, flat});
      },
      "series"_a, "length"_a = 32, "horizon"_a = 1, nb::kw_only(), "step"_a = 1, "delay"_a = 0,
      "targets"_a = std::vector<std::int64_t>{}, "every_step"_a = false, "flat"_a = false, Call(),
      "Returns the windows of a series [T] or [T, D] as a data set: ``length`` past steps are the input, the "
      "``horizon``\n"
      "following ones, in the columns ``targets``, the target.\n\n"
      "``step``: steps from one window to the next. ``delay``: steps left out between input and target. "
      "``every_step``: the\n"
      "target of each step of the input is the step ``delay`` + 1 later. ``flat``: the target is one row.");
  m.def("side_by_side", &train::side_by_side, "series"_a, "rows"_a, "length"_a, Call(),
        "Cuts a long series [T, ...] into parallel parts, for truncated back-propagation through time: batch p of an\n"
        "unshuffled loader of ``rows`` examples holds the p-th piece of ``length`` steps of each part.");
  m.def("split_series", &train::split_series, "series"_a, "shares"_a, Call(),
        "Splits a series [T, ...] along its steps into parts in proportion to shares, in the order of time.");
}

void define_characters(nb::module_& m) {
  nb::class_<train::Characters>(
      m, "Characters", "Converts between characters and tokens: those of an alphabet, numbered from 0 in its order.")
      .def(nb::init<std::string_view>(), "alphabet"_a)
      .def_static("of", &train::Characters::of, "text"_a, "Returns the alphabet of all characters in a text.")
      .def("__len__", &train::Characters::size)
      .def("tokens", &train::Characters::tokens, "text"_a, "Returns the tokens of a text, i64 [T].")
      .def("text", &train::Characters::text, "tokens"_a, "Returns the text of tokens i64 [T].");
  m.def(
      "next_tokens", [](const std::vector<Tensor>& each, std::int64_t stop) { return train::next_tokens(each, stop); },
      "each"_a, "stop"_a, Call(),
      "Returns examples for models that predict the next token: for each sequence t the input stop, t[0], ... and the\n"
      "target t[0], ..., stop.");
}

}  // namespace

train::Dataset dataset_of(nb::handle data) {
  if (nb::isinstance<train::Dataset>(data)) return *made<train::Dataset>(data);
  if (!PyTuple_Check(data.ptr())) throw ValueError("data: neither a Dataset nor a tuple of columns (x, y)");
  std::vector<train::Column> columns;
  for (nb::handle each : data) columns.push_back(column_of(each));
  return columns;
}

void define_data(nb::module_& m) {
  define_batch(m);
  define_dataset(m);
  define_loader(m);
  define_splits(m);
  define_characters(m);
}

}  // namespace ferrite::python
