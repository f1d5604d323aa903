// Files in Python: weights of modules, tensors, sound, tables, and models of other programs.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include "ferrite/io/any_file.h"
#include "ferrite/io/keras.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/torch.h"
#include "ferrite/io/torch_optimizer.h"
#include "files.h"
#include "kept.h"
#include "module.h"
#include "typed.h"

namespace ferrite::python {

using nb::literals::operator""_a;
using Path = std::filesystem::path;

namespace {

bool has_extension(const Path& path, std::initializer_list<const char*> endings) {
  std::string own = path.extension().string();
  for (char& c : own) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(endings, own) != endings.end();
}

nb::str text(std::string_view s) { return nb::str(s.data(), s.size()); }

/// Returns the tensors of a dictionary by name.
std::vector<io::NamedTensor> named_tensors(nb::dict all) {
  std::vector<io::NamedTensor> out;
  for (const auto& [name, value] : all) out.push_back({nb::cast<std::string>(name), tensor_of(value)});
  return out;
}

io::ReadOptions read_options(bool map, std::uint64_t most_inflated) {
  return {.most_inflated = most_inflated, .map = map};
}

/// Reads a file of tensors; with a key only that part of a PyTorch checkpoint.
io::TensorFile read_file(const Path& path, const std::string& key, const io::ReadOptions& options) {
  require_file(path);
  return run([&] {
    if (!key.empty()) return io::read_torch(path, key, options);
    return io::read_tensors(path, options);
  });
}

nb::dict metadata_of(const io::TensorFile& file) {
  nb::dict all;
  for (const auto& [key, value] : file.metadata()) all[text(key)] = text(value);
  return all;
}

nb::list names_of(const io::TensorFile& file) {
  nb::list all;
  for (const std::string_view name : file.names()) all.append(text(name));
  return all;
}

io::Elements elements_of(bool as_stored) { return as_stored ? io::Elements::as_stored : io::Elements::for_computing; }

nb::dict tensors_of(const io::TensorFile& file, bool as_stored) {
  const std::vector<Tensor> values = run([&] {
    std::vector<Tensor> out;
    for (const std::string_view name : file.names()) out.push_back(file.tensor(name, elements_of(as_stored)));
    return out;
  });
  nb::dict all;
  std::size_t i = 0;
  for (const std::string_view name : file.names()) all[text(name)] = values[i++];
  return all;
}

/// Returns the file with names that a function or a dictionary gives: "" or None leaves a tensor out.
io::TensorFile renamed(const io::TensorFile& file, nb::handle rename) {
  if (rename.is_none()) return file;
  const bool table = nb::isinstance<nb::dict>(rename);
  return file.renamed([&](std::string_view name) {
    const nb::object to = table ? rename.attr("get")(text(name), text(name)) : rename(text(name));
    return to.is_none() ? std::string() : nb::cast<std::string>(to);
  });
}

using AnyNames = Typed<"collections.abc.Callable[[str], str] | dict[str, str]">;

void define_tensor_file(nb::module_& m) {
  nb::class_<io::TensorFile> c(m, "TensorFile",
                               "The named tensors of a file that has been read and checked, made when asked for.");
  c.def_prop_ro(
      "where", [](const io::TensorFile& f) { return f.where(); }, "The path of the file.");
  c.def_prop_ro("metadata", metadata_of, "The texts, by key, that the file carries besides its tensors.");
  c.def("keys", names_of, "Returns the names of all tensors, in the order of the file.");
  c.def("__iter__", [](const io::TensorFile& f) { return nb::iter(names_of(f)); });
  c.def("__len__", &io::TensorFile::size);
  c.def("__contains__", [](const io::TensorFile& f, const std::string& name) { return f.contains(name); });
  c.def(
      "__getitem__", [](const io::TensorFile& f, const std::string& name) { return f.tensor(name); }, "name"_a, Call());
  c.def(
      "tensor",
      [](const io::TensorFile& f, const std::string& name, bool as_stored) {
        return f.tensor(name, elements_of(as_stored));
      },
      "name"_a, "as_stored"_a = false, Call(),
      "Returns a tensor. float16 and bfloat16 become f32 and small integers i32, unless ``as_stored``.");
  c.def(
      "info",
      [](const io::TensorFile& f, const std::string& name) {
        const io::TensorInfo i = f.info(name);
        nb::list shape;
        for (const std::int64_t e : i.shape) shape.append(e);
        return any_tuple(
            "TensorInfo", {"dtype", "loads_as", "shape", "bytes"},
            {text(i.dtype), i.loads_as ? object_of(*i.loads_as) : nb::none(), nb::tuple(shape), nb::int_(i.bytes)});
      },
      "name"_a, "Returns dtype (as the file spells it), loads_as, shape and bytes of a tensor.");
  c.def(
      "renamed", [](const io::TensorFile& f, AnyNames rename) { return renamed(f, rename); }, "rename"_a,
      "Returns a file of the same tensors under the names that a function or a dictionary gives them; tensors for\n"
      "which a function returns \"\" are left out.");
  c.def("__repr__", [](const io::TensorFile& f) {
    return "TensorFile(" + f.where() + ", " + std::to_string(f.size()) + " tensors)";
  });
  m.def(
      "open_tensors",
      [](const Path& path, const std::string& key, bool map, std::uint64_t most_inflated) {
        return read_file(path, key, read_options(map, most_inflated));
      },
      "path"_a, nb::kw_only(), "key"_a = "", "map"_a = false, "most_inflated"_a = io::ReadOptions{}.most_inflated,
      "Reads a file of tensors in any format that read_tensors knows, and makes tensors when they are asked for.\n\n"
      "``key`` names a part of a PyTorch checkpoint. With ``map`` the elements of a safetensors file stay in the "
      "file.");
}

void define_tensor_files(nb::module_& m) {
  m.def(
      "read_tensors",
      [](const Path& path, const std::string& key, bool as_stored, bool map, std::uint64_t most_inflated) {
        return tensors_of(read_file(path, key, read_options(map, most_inflated)), as_stored);
      },
      "path"_a, nb::kw_only(), "key"_a = "", "as_stored"_a = false, "map"_a = false,
      "most_inflated"_a = io::ReadOptions{}.most_inflated,
      nb::sig("def read_tensors(path: str | os.PathLike, *, key: str = '', as_stored: bool = False, map: bool = False, "
              "most_inflated: int = 4294967296) -> dict[str, Tensor]"),
      "Reads a file of tensors in any supported format: safetensors, both of PyTorch's forms, npz, npy (a tensor "
      "named\n"
      "\"array\"), GGUF or JSON weights. The format is recognised by the contents, not by the file name.\n\n"
      "``key`` reads only that part of a PyTorch checkpoint. float16 and bfloat16 become f32, unless ``as_stored``.\n"
      "``map`` maps a safetensors file instead of reading it. Raises MissingFileError and IoError.");
  m.def(
      "read_metadata", [](const Path& path) { return metadata_of(read_file(path, "", {})); }, "path"_a,
      "Returns the texts, by key, that a file carries besides its tensors.");
  m.def(
      "write_tensors",
      [](const Path& path, nb::dict tensors, const io::Metadata& metadata) {
        const std::vector<io::NamedTensor> all = named_tensors(tensors);
        run([&] {
          has_extension(path, {".npy"}) && all.size() == 1 ? io::write_npy(path, all[0].tensor)
                                                           : io::write_tensors(path, all, metadata);
        });
      },
      "path"_a, "tensors"_a, "metadata"_a = io::Metadata{},
      "Writes tensors in the format of the file name's extension: .safetensors, .pt or .pth, .npz, .gguf, and .npy "
      "for\n"
      "one tensor. Metadata is kept where the format has it (safetensors, GGUF). Raises IoError for another "
      "extension.");
  m.def(
      "read_npy",
      [](const Path& path, bool as_stored) {
        require_file(path);
        return run([&] { return io::read_npy(path, elements_of(as_stored)); });
      },
      "path"_a, "as_stored"_a = false, "Reads an array from a .npy file.");
  m.def(
      "write_npy", [](const Path& path, const Tensor& tensor) { io::write_npy(path, tensor); }, "path"_a, "tensor"_a,
      Call(), "Writes a .npy file, as numpy.save does. An old file is replaced as a whole or not at all.");
  m.def(
      "recognise_layers",
      [](Typed<"str | os.PathLike | TensorFile | dict"> source) {
        const io::TensorFile file = file_of(source);
        nb::list all;
        for (const io::RecognisedLayer& l : run([&] { return io::recognise_layers(file); }))
          all.append(named_tuple("RecognisedLayer", {"name", "description"}, {text(l.name), text(l.description)}));
        return all;
      },
      "source"_a,
      "Returns the layers that can be recognised in a file or a dictionary of tensors, as (name, description): "
      "recurrent\n"
      "layers and cells, Linear, Embedding, LayerNorm and BatchNorm under PyTorch's names.");
}

/// Returns the states of an optimiser that a file holds too; none without one.
std::vector<nn::Named<State>> states_of(const nn::Optimizer* optimizer) {
  return optimizer ? optimizer->states() : std::vector<nn::Named<State>>();
}

Any report_of(const io::LoadReport& r) {
  return any_tuple("LoadReport", {"missing", "unexpected"}, {nb::cast(r.missing), nb::cast(r.unexpected)});
}

Any load_module(const nn::Module& module, nb::handle source, const nn::Optimizer* optimizer, io::LoadOptions options,
                nb::handle rename, const std::string& key, bool keras) {
  io::TensorFile file = nb::isinstance<io::TensorFile>(source) || nb::isinstance<nb::dict>(source)
                            ? file_of(source)
                            : read_file(nb::cast<Path>(source), key, options.read);
  if (keras) file = io::from_keras(file);
  file = renamed(file, rename);
  options.states = states_of(optimizer);
  return report_of(run([&] { return io::load(module, file, options); }));
}

void save_module(const nn::Module& module, const Path& path, const io::SaveOptions& options) {
  if (has_extension(path, {".safetensors"})) return io::save(module, path, options);
  const io::ModuleContents all = io::contents(module, options);
  io::write_tensors(path, all.tensors, all.metadata);
}

void define_module_files(nb::module_& m) {
  m.def(
      "load",
      [](const nn::Module& module, nb::handle source, bool strict, const std::string& prefix, bool convert,
         bool module_states, const nn::Optimizer* optimizer, nb::handle rename, const std::string& key, bool keras,
         bool map) {
        return load_module(module, source, optimizer,
                           {.prefix = prefix,
                            .strict = strict,
                            .convert = convert,
                            .module_states = module_states,
                            .read = {.map = map}},
                           rename, key, keras);
      },
      "module"_a, "source"_a, "strict"_a = true, "prefix"_a = "", nb::kw_only(), "convert"_a = true,
      "module_states"_a = false, "optimizer"_a = nb::none(), "rename"_a = nb::none(), "key"_a = "", "keras"_a = false,
      "map"_a = false,
      nb::sig("def load(module: ferrite._ferrite._nn._Module, "
              "source: str | os.PathLike | TensorFile | dict[str, ArrayLike], "
              "strict: bool = True, prefix: str = '', *, convert: bool = True, module_states: bool = False, "
              "optimizer: ferrite._ferrite._optim.Optimizer | None = None, "
              "rename: collections.abc.Callable[[str], str] | dict[str, str] | None = None, "
              "key: str = '', keras: bool = False, map: bool = False) -> typing.Any"),
      "Loads the parameters and buffers of a module from a file in any format that read_tensors knows, or from a\n"
      "dictionary, under their dotted names and in PyTorch's layout. F16, BF16, F32 and F64 become the parameter's "
      "dtype.\n\n"
      "``strict``: names that are missing, or that the module does not know, are errors; otherwise they are returned "
      "as\n"
      "``missing`` and ``unexpected``, and such parameters keep their values. ``prefix``: the prefix that the "
      "module's\n"
      "names have in the file. ``convert``: converts floats of another width; otherwise they are errors.\n"
      "``module_states``: loads also the states that the module has registered, such as counters of dropout.\n"
      "``optimizer``: an optimiser whose states are loaded too. ``rename``: a function of names, or a dictionary.\n"
      "``key``: the part of a PyTorch checkpoint. ``keras``: the names and layout are those of Keras.\n\n"
      "Raises MissingFileError, and one IoError that lists everything that does not fit; nothing has changed then.");
  m.def(
      "save",
      [](const nn::Module& module, const Path& path, const std::string& prefix, const nn::Optimizer* optimizer,
         bool module_states, std::optional<bool> every_name, const io::Metadata& metadata) {
        save_module(module, path,
                    {.prefix = prefix,
                     .states = states_of(optimizer),
                     .module_states = module_states,
                     .every_name = every_name.value_or(has_extension(path, {".pt", ".pth"})),
                     .metadata = metadata});
      },
      "module"_a, "path"_a, nb::kw_only(), "prefix"_a = "", "optimizer"_a = nb::none(), "module_states"_a = false,
      "every_name"_a = nb::none(), "metadata"_a = io::Metadata{}, Call(),
      "Saves a module in the format of the file name's extension: .safetensors, .pt or .pth, .npz, .gguf. An old file "
      "is\n"
      "replaced as a whole or not at all.\n\n"
      "``prefix``: prefix of all names. ``optimizer``: an optimiser whose states are saved too. ``module_states``: "
      "saves\n"
      "also the states that the module has registered. ``every_name``: writes a tied variable under each of its names, "
      "by\n"
      "default for .pt and .pth, whose files PyTorch then loads strictly. ``metadata``: texts by key. Raises IoError.");
}

void define_state_dicts(nb::module_& m) {
  m.def(
      "state_dict",
      [](const nn::Module& module, const std::string& prefix) {
        const io::ModuleContents all =
            run([&] { return io::contents(module, {.prefix = prefix, .every_name = true}); });
        nb::dict out;
        for (const io::NamedTensor& t : all.tensors) out[text(t.name)] = t.tensor;
        return out;
      },
      "module"_a, "prefix"_a = "",
      nb::sig("def state_dict(module: ferrite._ferrite._nn._Module, prefix: str = '') -> dict[str, Tensor]"),
      "Returns the parameters and buffers of a module by their dotted names, in PyTorch's layout.");
  m.def(
      "load_state_dict",
      [](const nn::Module& module, nb::dict state_dict, bool strict, const std::string& prefix) {
        return load_module(module, state_dict, nullptr, {.prefix = prefix, .strict = strict}, nb::none(), "", false);
      },
      "module"_a, "state_dict"_a, "strict"_a = true, "prefix"_a = "",
      "Sets the parameters and buffers of a module to tensors or arrays by name, in PyTorch's layout, as ``load`` "
      "does.");
  m.def(
      "load_torch_optimizer",
      [](nn::Optimizer& optimizer, const Path& path, const std::string& key) {
        require_file(path);
        run([&] { io::load_torch_optimizer(optimizer, path, key); });
      },
      "optimizer"_a, "path"_a, "key"_a = "",
      "Loads the state of a PyTorch optimiser, so that training resumes where PyTorch stopped: moments, step counts "
      "and\n"
      "learning rates. Parameters are paired by their order. Options other than the learning rate must equal the "
      "file's.\n"
      "Raises IoError when it does not fit; the optimiser is then unchanged.");
  m.def(
      "save_torch_optimizer",
      [](const nn::Optimizer& optimizer, const Path& path) { io::write_torch_optimizer(path, optimizer); },
      "optimizer"_a, "path"_a, Call(),
      "Writes the state of an optimiser as a file that ``optimizer.load_state_dict(torch.load(path))`` loads.");
}

}  // namespace

io::TensorFile file_of(nb::handle source) {
  if (nb::isinstance<io::TensorFile>(source)) return *made<io::TensorFile>(source);
  if (nb::isinstance<nb::dict>(source))
    return io::tensor_file_of(named_tensors(nb::borrow<nb::dict>(source)), "dictionary");
  return read_file(nb::cast<Path>(source), "", {});
}

void define_files(nb::module_& m) {
  define_tensor_file(m);
  define_tensor_files(m);
  define_module_files(m);
  define_state_dicts(m);
  define_other_files(m);
}

}  // namespace ferrite::python
