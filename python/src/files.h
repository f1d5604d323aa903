#pragma once
/// The parts of the bindings of files.
#include "casters.h"
#include "ferrite/io/tensor_file.h"

namespace ferrite::python {

/// Returns the file in an object: a TensorFile, a dictionary of tensors, or a path.
io::TensorFile file_of(nb::handle source);
/// Defines sound, tables and the files of other programs.
void define_other_files(nb::module_& m);

}  // namespace ferrite::python
