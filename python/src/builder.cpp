// The builder in Python.
#include "builder.h"

#include <nanobind/stl/unique_ptr.h>

#include "module.h"

namespace ferrite::python {

using nb::literals::operator""_a;

dsl::Sizes sizes_of(const Shape& shape) {
  switch (shape.rank()) {
    case 1: return shape[0];
    case 2: return {shape[0], shape[1]};
    case 3: return {shape[0], shape[1], shape[2]};
    default: throw ShapeError("builder: one to three sizes are needed, got " + shape.str());
  }
}

dsl::Builder::Part part_of(nb::callable f) {
  return [f = std::move(f)](dsl::Builder& b) {
    const nb::gil_scoped_acquire lock;
    if (const nb::object known = nb::find(&b); known.is_valid()) {  // a part of the same chain, as of repeat
      f(known);
      return;
    }
    const nb::object lent = nb::cast(&b, nb::rv_policy::reference);
    struct End {
      nb::handle object;
      ~End() { nb::inst_set_state(object, false, false); }  // it may be kept longer than the builder lives
    } const end{lent};
    f(lent);
  };
}

std::vector<dsl::Builder::Part> parts_of(const nb::list& functions) {
  std::vector<dsl::Builder::Part> parts;
  for (nb::handle f : functions) parts.push_back(part_of(nb::borrow<nb::callable>(f)));
  return parts;
}

void define_builder(nb::module_& m) {
  nb::class_<dsl::Network, nn::Sequential>(m, "Network", "A chain of layers that the builder made.")
      .def("summary", &dsl::Network::summary,
           "Returns a table of the layers with their shapes, parameters and multiply-adds.")
      .def(
          "copy", [](const dsl::Network& n) { return n.copy(); }, "Returns an independent copy.")
      .def("__repr__", &dsl::Network::summary);
  nb::class_<dsl::Builder> c(m, "Builder",
                             "Describes a chain of layers, one word per layer; ``build`` makes the network. The input "
                             "size of each layer follows\n"
                             "from the layer before; batch and time are not part of the sizes.");
  define_written_words(c);
  c.def(
      "build",
      [](const dsl::Builder& b, std::optional<std::uint64_t> seed, Dtype dtype) { return b.build(seed, dtype); },
      "seed"_a.none() = std::uint64_t{0}, "dtype"_a = Dtype::f32, Call(),
      "Makes the network. One seed fixes all weights; with None they have no values yet, and a file gives them.");
  m.def("sequence", dsl::sequence, "features"_a, "Starts a chain that reads sequences [B, T, features].");
  m.def("features", dsl::features, "n"_a, "Starts a chain that reads vectors [B, n].");
  m.def("image", dsl::image, "channels"_a, "height"_a, "width"_a,
        "Starts a chain that reads images [B, channels, height, width].");
  m.def("volume", dsl::volume, "channels"_a, "depth"_a, "height"_a, "width"_a,
        "Starts a chain that reads volumes [B, channels, depth, height, width].");
  m.def("tokens", dsl::tokens, "vocabulary"_a,
        "Starts a chain that reads sequences of tokens i64 [B, T], each below the vocabulary.");
}

}  // namespace ferrite::python
