// The extension module.
#include "module.h"

#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/threads.h"

NB_MODULE(_ferrite, m) {
  using namespace ferrite::python;
  nb::set_leak_warnings(false);  // dtypes and named tuples live as long as the process
  m.doc() = "Ferrite: trains and runs small neural networks, recurrent ones above all, on the CPU.";
  m.attr("__version__") = FERRITE_PYTHON_VERSION;
  define_errors(m);
  define_dtypes(m);
  define_tensor(m);
  define_gradients(m);
  nb::module_ nn = m.def_submodule("_nn", "Layers and losses."), optim = m.def_submodule("_optim", "Optimisers and schedules.");
  define_operations(m, nn);
  define_layers(nn);
  define_written_layers(nn);
  define_builder(m);
  define_optimisers(optim);
  define_files(m);
  define_exchange(m);
  define_compile(m);
  define_streams(m, nn);
  define_guards(m);
  nb::module_ train = m.def_submodule("_train", "Data sets and training.");
  define_data(train);
  define_training(train);
}
