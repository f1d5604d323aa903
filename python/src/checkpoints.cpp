// Checkpoints, charts and event files in Python.
#include "ferrite/train/checkpoint.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include "ferrite/train/heat_map.h"
#include "ferrite/train/line_chart.h"
#include "ferrite/train/tensorboard.h"
#include "module.h"
#include "training.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;
using Path = std::filesystem::path;

namespace {

/// Returns the objects in one, a list of them, or None.
template <class T>
std::vector<T*> several(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<std::remove_const_t<T>>(o)) return {made<std::remove_const_t<T>>(o)};
  std::vector<T*> all;
  for (nb::handle each : o) all.push_back(nb::cast<std::remove_const_t<T>*>(each));
  return all;
}

train::TrainingParts parts_of(const nn::Module& model, nb::handle optimizer, nb::handle schedule, nb::handle average,
                              const train::Fingerprint& also, std::vector<std::string> changed = {}) {
  return {.model = model,
          .optimizers = several<const nn::Optimizer>(optimizer),
          .schedules = several<nn::Schedule>(schedule),
          .averages = several<const nn::WeightAverage>(average),
          .also = also,
          .changed = std::move(changed)};
}

Any object_of(const train::Checkpoint& c) {
  nb::list changes;
  for (const train::Change& k : c.changes)
    changes.append(
        named_tuple("Change", {"name", "before", "now"}, {nb::cast(k.name), nb::cast(k.before), nb::cast(k.now)}));
  return any_tuple("Checkpoint", {"epoch", "batch", "step", "seed", "numbers", "metadata", "changes"},
                   {nb::int_(c.position.epoch), nb::int_(c.position.batch), nb::int_(c.position.step),
                    nb::int_(c.position.seed), nb::cast(c.numbers), nb::cast(c.metadata), changes});
}

}  // namespace

using AnyOptimizers =
    Typed<"ferrite._ferrite._optim.Optimizer | collections.abc.Sequence[ferrite._ferrite._optim.Optimizer]">;
using AnySchedules =
    Typed<"ferrite._ferrite._optim.Schedule | collections.abc.Sequence[ferrite._ferrite._optim.Schedule]">;
using AnyAverages =
    Typed<"ferrite._ferrite._optim.WeightAverage | collections.abc.Sequence[ferrite._ferrite._optim.WeightAverage]">;

void define_checkpoints(nb::module_& m) {
  m.def(
      "save_checkpoint",
      [](const Path& path, const nn::Module& model, AnyOptimizers optimizer, AnySchedules schedule, AnyAverages average,
         std::int64_t epoch, std::int64_t batch, std::int64_t step, std::uint64_t seed, const train::Numbers& numbers,
         const io::Metadata& metadata, const train::Fingerprint& also) {
        const train::TrainingParts parts = parts_of(model, optimizer, schedule, average, also);
        run([&] { train::save_checkpoint(path, parts, {{epoch, batch, step, seed}, numbers, metadata, {}}); });
      },
      "path"_a, "model"_a, "optimizer"_a.none() = nb::none(), "schedule"_a.none() = nb::none(),
      "average"_a.none() = nb::none(), nb::kw_only(), "epoch"_a = 0, "batch"_a = 0, "step"_a = 0, "seed"_a = 0,
      "numbers"_a = train::Numbers{}, "metadata"_a = io::Metadata{}, "also"_a = train::Fingerprint{},
      "Saves everything that training needs to resume as if it had never stopped: parameters, buffers and states of "
      "the\n"
      "model, the states of optimisers and averages, the positions of schedules and data. One file, replaced as a "
      "whole or\n"
      "not at all.\n\n"
      "``optimizer``, ``schedule`` and ``average``: one, a list, or None. ``epoch``, ``batch``, ``step`` and ``seed``: "
      "the\n"
      "position in the data. ``numbers``: lists of floats by name, kept to the last bit. ``metadata``: texts. "
      "``also``:\n"
      "anything else that decides the numbers of this training, as text by name, which loading compares.");
  m.def(
      "load_checkpoint",
      [](const Path& path, const nn::Module& model, AnyOptimizers optimizer, AnySchedules schedule, AnyAverages average,
         const train::Fingerprint& also, std::vector<std::string> changed) {
        require_file(path);
        const train::TrainingParts parts = parts_of(model, optimizer, schedule, average, also, std::move(changed));
        return object_of(run([&] { return train::load_checkpoint(path, parts); }));
      },
      "path"_a, "model"_a, "optimizer"_a.none() = nb::none(), "schedule"_a.none() = nb::none(),
      "average"_a.none() = nb::none(), nb::kw_only(), "also"_a = train::Fingerprint{},
      "changed"_a = std::vector<std::string>{},
      "Restores the parts, which must be built as they were when saved, and returns (epoch, batch, step, seed, "
      "numbers,\n"
      "metadata, changes).\n\n"
      "Raises IoError when anything is missing, does not fit or does not match the checksum, and OtherTrainingError "
      "for a\n"
      "file of another training, unless ``changed`` names the difference. Nothing has changed then.");
}

void define_charts(nb::module_& m) {
  m.def(
      "line_chart",
      [](nb::dict series, const std::string& title, const std::string& x_label, const std::string& y_label, int width,
         int height, std::optional<Path> path) {
        std::vector<train::Series> all;
        for (const auto& [name, value] : series) {
          if (PyTuple_Check(value.ptr()))
            all.push_back(train::Series::of(nb::cast<std::string>(name), tensor_of(value[0]), tensor_of(value[1])));
          else
            all.push_back(train::Series::of(nb::cast<std::string>(name), tensor_of(value)));
        }
        const std::string svg = train::line_chart(all, {title, x_label, y_label, width, height});
        if (path) train::write_line_chart(*path, all, {title, x_label, y_label, width, height});
        return svg;
      },
      "series"_a, nb::kw_only(), "title"_a = "", "x_label"_a = "", "y_label"_a = "", "width"_a = 720, "height"_a = 420,
      "path"_a.none() = nb::none(),
      "Returns a line chart as SVG text, and writes it to ``path``. ``series`` has arrays y, or tuples (x, y), by "
      "name.");
  m.def(
      "heat_map",
      [](const Tensor& values, const std::string& title, const std::string& x_label, const std::string& y_label,
         bool numbers, bool scale, int cell, std::optional<Path> path) {
        train::HeatMapOptions o;
        o.title = title, o.x_label = x_label, o.y_label = y_label, o.numbers = numbers, o.scale = scale, o.cell = cell;
        if (path) train::write_heat_map(*path, values, o);
        return train::heat_map(values, o);
      },
      "values"_a, nb::kw_only(), "title"_a = "", "x_label"_a = "", "y_label"_a = "", "numbers"_a = false,
      "scale"_a = true, "cell"_a = 0, "path"_a.none() = nb::none(), Call(),
      "Returns a heat map of a matrix [rows, columns] as SVG text, and writes it to ``path``.");
  m.def(
      "image_grid",
      [](const Tensor& images, std::int64_t columns, std::int64_t padding, double background) {
        return train::image_grid(images, {columns, padding, background});
      },
      "images"_a, "columns"_a = 8, "padding"_a = 1, "background"_a = 0.0, Call(),
      "Returns one image that shows several in a grid: [N, H, W] -> [H', W'], [N, C, H, W] -> [C, H', W'].");
  nb::class_<train::EventWriter>(m, "EventWriter",
                                 "Writes one event file, which ``tensorboard --logdir <folder>`` shows while it grows.")
      .def(
          "__init__",
          [](train::EventWriter* p, const Path& folder, const std::string& suffix) {
            new (p) train::EventWriter(folder, {.clock = {}, .suffix = suffix});
          },
          "folder"_a, "suffix"_a = "")
      .def(
          "scalar",
          [](train::EventWriter& w, const std::string& tag, double v, std::int64_t step) { w.scalar(tag, v, step); },
          "tag"_a, "value"_a, "step"_a, "Writes a point of a curve.")
      .def(
          "histogram",
          [](train::EventWriter& w, const std::string& tag, const Tensor& v, std::int64_t step) {
            w.histogram(tag, v, step);
          },
          "tag"_a, "values"_a, "step"_a, "Writes a histogram of the elements of a tensor of any shape.")
      .def(
          "image",
          [](train::EventWriter& w, const std::string& tag, const Tensor& v, std::int64_t step) {
            w.image(tag, v, step);
          },
          "tag"_a, "pixels"_a, "step"_a,
          "Writes a picture, f32 [H, W] or [C, H, W] of 1 to 4 channels, with values in 0..1.")
      .def(
          "text",
          [](train::EventWriter& w, const std::string& tag, const std::string& t, std::int64_t step) {
            w.text(tag, t, step);
          },
          "tag"_a, "text"_a, "step"_a, "Writes a text in Markdown.")
      .def_prop_ro(
          "file", [](const train::EventWriter& w) { return w.file(); }, "The path of the file.");
}

}  // namespace ferrite::python
