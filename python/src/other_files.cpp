// Sound, tables, and models of other programs in Python.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include "ferrite/io/class_folders.h"
#include "ferrite/io/csv.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/guitarml.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/io/time_series.h"
#include "ferrite/io/wav.h"
#include "files.h"
#include "module.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;
using Path = std::filesystem::path;

namespace {

nb::object text(std::string_view s) { return nb::str(s.data(), s.size()); }

struct WavFormats {
  static constexpr const char* what = "write_wav";
  static constexpr std::pair<io::WavFormat, const char*> all[] = {
      {io::WavFormat::pcm16, "pcm16"}, {io::WavFormat::pcm24, "pcm24"}, {io::WavFormat::float32, "float32"}};
  static const auto& of() { return all; }
};
struct MissingNumbers {
  static constexpr const char* what = "missing";
  static constexpr std::pair<io::Missing, const char*> all[] = {{io::Missing::refused, "refused"},
                                                                {io::Missing::nan, "nan"}};
  static const auto& of() { return all; }
};

struct GgufTypes {
  static constexpr const char* what = "write_gguf";
  static constexpr std::pair<io::GgufType, const char*> all[] = {{io::GgufType::same, "same"},
                                                                 {io::GgufType::f16, "f16"},
                                                                 {io::GgufType::bf16, "bf16"},
                                                                 {io::GgufType::q8_0, "q8_0"},
                                                                 {io::GgufType::q4_0, "q4_0"}};
  static const auto& of() { return all; }
};

}  // namespace
}  // namespace ferrite::python

template <>
struct nanobind::detail::type_caster<ferrite::io::GgufType>
    : nanobind::detail::text_caster<ferrite::io::GgufType, ferrite::python::GgufTypes> {};
template <>
struct nanobind::detail::type_caster<ferrite::io::WavFormat>
    : nanobind::detail::text_caster<ferrite::io::WavFormat, ferrite::python::WavFormats> {};
template <>
struct nanobind::detail::type_caster<ferrite::io::Missing>
    : nanobind::detail::text_caster<ferrite::io::Missing, ferrite::python::MissingNumbers> {};

namespace ferrite::python {
namespace {

void define_sound(nb::module_& m) {
  m.def(
      "read_wav",
      [](const Path& path) {
        require_file(path);
        const io::Audio a = run([&] { return io::read_wav(path); });
        return any_tuple("Audio", {"samples", "rate"}, {nb::cast(a.samples), nb::int_(a.rate)});
      },
      "path"_a,
      "Reads a WAV file and returns (samples, rate): f32 [C, N], where 1 is full scale, and samples per second.\n\n"
      "Integers of 8, 16, 24 and 32 bits, floats, A-law and mu-law are understood. Raises MissingFileError and "
      "IoError.");
  m.def(
      "write_wav",
      [](const Path& path, const Tensor& samples, std::int64_t rate, io::WavFormat format) {
        io::write_wav(path, {samples, rate}, format);
      },
      "path"_a, "samples"_a, "rate"_a, "format"_a = io::WavFormat::pcm16, Call(),
      "Writes a WAV file of f32 samples [C, N], or [N] for one channel, as \"pcm16\", \"pcm24\" or \"float32\".\n\n"
      "Integers are rounded to nearest and clipped; float32 is neither.");
}

Tensor numbers_of(const io::CsvTable& t, nb::handle names, Dtype dtype) {
  if (names.is_none()) return run([&] { return t.numbers(dtype); });
  if (nb::isinstance<nb::str>(names)) {
    const auto name = nb::cast<std::string>(names);
    return run([&] { return t.column(name, dtype); });
  }
  const auto list = nb::cast<std::vector<std::string>>(names);
  return run([&] { return t.numbers(list, dtype); });
}

void define_folders(nb::module_& m) {
  m.def(
      "list_class_folders",
      [](const Path& root, const std::vector<std::string>& endings) {
        require_file(root);
        const io::ClassFolders f = run([&] { return io::list_class_folders(root, endings); });
        return any_tuple("ClassFolders", {"files", "labels", "classes"},
                         {nb::cast(f.files), nb::cast(f.labels), nb::cast(f.classes)});
      },
      "root"_a, "endings"_a = std::vector<std::string>{},
      "Lists the files of a data set that has a folder for each class, as (files, labels i64 [N], classes), class by "
      "class\n"
      "and sorted. ``endings``: only files with one of these, such as [\".png\"].");
}

void define_csv(nb::module_& m) {
  nb::class_<io::CsvTable> c(m, "CsvTable", "A table whose fields stay text until a column is asked for.");
  c.def_prop_ro("rows", &io::CsvTable::rows, "The number of records, without the header.");
  c.def_prop_ro("columns", &io::CsvTable::columns, "The number of columns.");
  c.def_prop_ro("names", &io::CsvTable::names, "The names of all columns, in the order of the file.");
  c.def("numbers", numbers_of, "names"_a = nb::none(), "dtype"_a = Dtype::f32,
        nb::sig("def numbers(self, names: Sequence[str] | None = None, dtype: numpy.typing.DTypeLike = ...) -> Tensor"),
        "Returns columns as numbers [N, D] of f32, f64 or i64: those of a list of names, or all.\n\n"
        "Raises IoError with line, column and text for a field that is not a number.");
  c.def(
      "__getitem__", [](const io::CsvTable& t, const std::string& name) { return t.column(name); }, "name"_a, Call(),
      "Returns one column as f32 numbers [N].");
  c.def(
      "column", [](const io::CsvTable& t, const std::string& name, Dtype dtype) { return t.column(name, dtype); },
      "name"_a, "dtype"_a = Dtype::f32, Call(), "Returns one column as numbers [N].");
  c.def(
      "text", [](const io::CsvTable& t, const std::string& name) { return t.text(name); }, "name"_a,
      "Returns the fields of one column as text.");
  c.def(
      "categories",
      [](const io::CsvTable& t, const std::string& name) {
        const io::Categories k = t.categories(name);
        return any_tuple("Categories", {"codes", "vocabulary"}, {nb::cast(k.codes), nb::cast(k.vocabulary)});
      },
      "name"_a, "Returns one column as classes: (codes i64 [N], the sorted list of its texts).");
  c.def(
      "codes",
      [](const io::CsvTable& t, const std::string& name, const std::vector<std::string>& vocabulary) {
        return t.codes(name, vocabulary);
      },
      "name"_a, "vocabulary"_a, Call(), "Returns the position of every record's text in a given list: i64 [N].");
  m.def(
      "read_csv",
      [](const Path& path, const std::string& delimiter, bool header, io::Missing missing,
         std::vector<std::string> missing_texts) {
        require_file(path);
        if (delimiter.size() != 1) throw ValueError("read_csv: the delimiter is not one character");
        return run([&] { return io::read_csv(path, {delimiter[0], header, missing, std::move(missing_texts)}); });
      },
      "path"_a, nb::kw_only(), "delimiter"_a = ",", "header"_a = true, "missing"_a = io::Missing::refused,
      "missing_texts"_a = io::CsvOptions{}.missing_texts,
      "Reads a whole CSV file.\n\n"
      "``header``: whether the first line holds the names of the columns; else they are \"0\", \"1\", ... ``missing``: "
      "what\n"
      "becomes of a missing number, \"refused\" or \"nan\". Raises MissingFileError and IoError, which names the "
      "line.");
  m.def(
      "write_csv",
      [](const Path& path, nb::dict columns, const std::string& delimiter) {
        if (delimiter.size() != 1) throw ValueError("write_csv: the delimiter is not one character");
        std::vector<std::string> names;
        std::vector<io::CsvColumn> values;
        for (const auto& [name, value] : columns) {
          names.push_back(nb::cast<std::string>(name));
          std::vector<std::string> texts;
          if (nb::isinstance<nb::list>(value) && nb::try_cast(value, texts))
            values.emplace_back(std::move(texts));
          else
            values.emplace_back(tensor_of(value));
        }
        run([&] { io::write_csv(path, names, values, delimiter[0]); });
      },
      "path"_a, "columns"_a, "delimiter"_a = ",",
      nb::sig("def write_csv(path: str | os.PathLike, columns: dict[str, numpy.typing.ArrayLike], "
              "delimiter: str = ',') -> None"),
      "Writes a CSV file of columns by name: numbers [N] or lists of texts. Numbers have the fewest digits that read "
      "back\n"
      "as the same number.");
  m.def(
      "read_time_series",
      [](const Path& path, io::Missing missing) {
        require_file(path);
        const io::TimeSeries s = run([&] { return io::read_time_series(path, missing); });
        return any_tuple("TimeSeries", {"name", "values", "lengths", "labels", "classes", "targets"},
                         {text(s.name), nb::cast(s.values), nb::cast(s.lengths), nb::cast(s.labels),
                          nb::cast(s.classes), nb::cast(s.targets)});
      },
      "path"_a, "missing"_a = io::Missing::refused,
      "Reads a .ts file of the UEA and UCR archive: concatenated values f32 [sum of lengths, D], lengths and labels\n"
      "i64 [N], the list of classes, and targets f32 [N]. What the file does not have is None.");
}

/// Returns a value of a GGUF file's metadata: integers become i64, numbers f64, lists those of their elements.
io::GgufValue gguf_value(nb::handle o) {
  if (PyBool_Check(o.ptr())) return nb::cast<bool>(o);
  if (PyLong_Check(o.ptr())) return nb::cast<std::int64_t>(o);
  if (PyFloat_Check(o.ptr())) return nb::cast<double>(o);
  if (nb::isinstance<nb::str>(o)) return nb::cast<std::string>(o);
  std::vector<std::string> texts;
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  if (PyList_Check(o.ptr()) && nb::try_cast(o, texts)) return texts;
  if (PyList_Check(o.ptr()) && nb::try_cast(o, integers)) return integers;
  if (PyList_Check(o.ptr()) && nb::try_cast(o, numbers)) return numbers;
  throw ValueError("write_gguf: a value of the metadata is neither a number nor a text nor a list of them");
}

void define_gguf(nb::module_& m) {
  m.def(
      "read_gguf_metadata",
      [](const Path& path) {
        require_file(path);
        nb::dict all;
        for (const auto& [key, value] : run([&] { return io::read_gguf_metadata(path); }))
          all[text(key)] = std::visit([](const auto& v) { return nb::cast(v); }, value);
        return all;
      },
      "path"_a, "Returns all metadata of a GGUF file by key, lists of tokens included.");
  m.def(
      "write_gguf",
      [](const Path& path, nb::dict tensors, nb::dict metadata, nb::handle type) {
        std::vector<io::NamedTensor> all;
        for (const auto& [name, value] : tensors) all.push_back({nb::cast<std::string>(name), tensor_of(value)});
        io::GgufMetadata values;
        for (const auto& [key, value] : metadata) values.emplace(nb::cast<std::string>(key), gguf_value(value));
        std::map<std::string, io::GgufType> types;
        io::GgufType others = io::GgufType::same;
        if (nb::isinstance<nb::dict>(type)) {
          for (const auto& [name, t] : nb::borrow<nb::dict>(type))
            types.emplace(nb::cast<std::string>(name), nb::cast<io::GgufType>(t));
        } else {
          others = nb::cast<io::GgufType>(type);
        }
        run([&] {
          io::write_gguf(path, all, values, [&](const io::NamedTensor& t) {
            const auto found = types.find(t.name);
            return found == types.end() ? others : found->second;
          });
        });
      },
      "path"_a, "tensors"_a, "metadata"_a = nb::dict(), nb::kw_only(), "type"_a = "same",
      nb::sig("def write_gguf(path: str | os.PathLike, tensors: dict[str, numpy.typing.ArrayLike], "
              "metadata: dict[str, object] = {}, *, "
              "type: str | dict[str, str] = 'same') -> None"),
      "Writes a GGUF file. ``type`` is \"same\" (the tensor's own dtype), \"f16\", \"bf16\", \"q8_0\" or \"q4_0\", for "
      "all\n"
      "tensors or by name. Raises IoError for values that the type cannot hold and rows that are not whole blocks of "
      "32.");
}

/// Lends a layer to a NamModel, which owns its layer, for the time of one call.
class LentLayer {
 public:
  LentLayer(nn::Layer& layer, io::NamModel& to) : to_(to) { to.layer.reset(&layer); }
  ~LentLayer() { (void)to_.layer.release(); }
  LentLayer(const LentLayer&) = delete;
  LentLayer& operator=(const LentLayer&) = delete;

 private:
  io::NamModel& to_;
};

void define_models(nb::module_& m) {
  m.def(
      "read_nam",
      [](const Path& path) {
        require_file(path);
        io::NamModel n = run([&] { return io::read_nam(path); });
        return any_tuple("NamModel", {"layer", "sample_rate", "version", "metadata"},
                         {nb::cast(std::move(n.layer)), nb::cast(n.sample_rate), text(n.version), text(n.metadata)});
      },
      "path"_a,
      "Reads a .nam file of the Neural Amp Modeler and returns (layer, sample_rate, version, metadata). The layer "
      "takes\n"
      "x [B, T, 1] -> [B, T, 1]; sample_rate is None where the file does not say; metadata is the file's JSON.");
  m.def(
      "save_nam",
      [](nn::Layer& layer, const Path& path, std::optional<double> sample_rate, const std::string& version,
         const std::string& metadata) {
        io::NamModel n{.layer = nullptr, .sample_rate = sample_rate, .version = version, .metadata = metadata};
        const LentLayer lent(layer, n);
        io::save_nam(n, path);
      },
      "layer"_a, "path"_a, nb::kw_only(), "sample_rate"_a = nb::none(), "version"_a = "0.5.4", "metadata"_a = "",
      Call(), "Writes a layer that read_nam returned as a .nam file. Raises IoError for another layer.");
  m.def(
      "read_rtneural",
      [](const Path& path, double rate_ratio) -> std::unique_ptr<nn::Layer> {
        require_file(path);
        return run([&] { return io::read_rtneural(path, {.rate_ratio = rate_ratio}); });
      },
      "path"_a, nb::kw_only(), "rate_ratio"_a = 1.0,
      "Reads an RTNeural file as a chain that computes what RTNeural computes.\n\n"
      "``rate_ratio``: the sample rate at which the net runs divided by that at which it was trained, 1 to 64.");
  m.def(
      "save_rtneural",
      [](const nn::Layer& net, const Path& path) {
        const auto* chain = dynamic_cast<const nn::Sequential*>(&net);
        if (!chain) throw ValueError("save_rtneural: not a chain of layers but " + net.kind());
        io::save_rtneural(*chain, path);
      },
      "net"_a, "path"_a, Call(),
      "Writes a chain of Linear, Gru, Lstm, CausalConv1d, Prelu, BatchNorm1d and activations as an RTNeural file.\n"
      "Raises IoError for what RTNeural does not have.");
  m.def(
      "read_guitarml",
      [](const Path& path) -> std::unique_ptr<nn::Layer> {
        require_file(path);
        return run([&] { return io::read_guitarml(path); });
      },
      "path"_a, "Reads a GuitarML file (Proteus, NeuralPi) as a layer x [B, T, input_size] -> [B, T, output_size].");
}

}  // namespace

void define_other_files(nb::module_& m) {
  define_sound(m);
  define_folders(m);
  define_csv(m);
  define_gguf(m);
  define_models(m);
}

}  // namespace ferrite::python
