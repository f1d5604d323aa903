#pragma once
/// What the written words of the builder use.
#include "ferrite/dsl/builder.h"
#include "layers.h"

namespace ferrite::python {

/// Returns one size for all axes, or one for each.
dsl::Sizes sizes_of(const Shape& shape);
/// Returns a Python function of a builder as a part of a network.
dsl::Builder::Part part_of(nb::callable f);
std::vector<dsl::Builder::Part> parts_of(const nb::list& functions);
/// The builder that a word returns: the one that it was called on.
using Self = nb::typed<nb::object, dsl::Builder>;
inline Self result_of(const nb::object& builder) { return nb::borrow<Self>(builder); }
/// Defines the words; written by python/bindings.py.
void define_written_words(nb::class_<dsl::Builder>& c);

}  // namespace ferrite::python
