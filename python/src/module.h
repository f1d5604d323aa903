#pragma once
/// The parts of the extension module.
#include <filesystem>

#include "casters.h"

namespace ferrite::python {

void define_errors(nb::module_& m);
void define_dtypes(nb::module_& m);
void define_tensor(nb::module_& m);
void define_gradients(nb::module_& m);
void define_recurrence(nb::module_& m);
/// Defines the functions of tensors and the losses; written by python/bindings.py from the headers.
void define_operations(nb::module_& m, nb::module_& nn);
void define_layers(nb::module_& nn);
void define_written_layers(nb::module_& nn);
void define_builder(nb::module_& m);
void define_optimisers(nb::module_& optim);
void define_files(nb::module_& m);
void define_exchange(nb::module_& m);
void define_compile(nb::module_& m);
void define_streams(nb::module_& m, nb::module_& nn);
void define_guards(nb::module_& m);
void define_data(nb::module_& m);
void define_training(nb::module_& m);

/// Raises MissingFileError, which is a FileNotFoundError, unless something exists at a path.
void require_file(const std::filesystem::path& path);

}  // namespace ferrite::python
