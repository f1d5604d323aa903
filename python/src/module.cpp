// The extension module.
#include "module.h"

#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/threads.h"

#ifdef FERRITE_PYTHON_COMMAND
int ferrite_command_main(int argc, char** argv);
#endif

namespace {

/// Runs the command `ferrite` with these arguments and returns its exit code.
int command(std::vector<std::string> arguments) {
#ifdef FERRITE_PYTHON_COMMAND
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  return ferrite::python::run([&] { return ferrite_command_main(static_cast<int>(arguments.size()), argv.data()); });
#else
  throw ferrite::Error("command: this package was built without it, since CLI11 and toml++ were not found");
#endif
}

}  // namespace

NB_MODULE(_ferrite, m) {
  using namespace ferrite::python;
  using nb::literals::operator""_a;
  nb::set_leak_warnings(false);  // dtypes and named tuples live as long as the process
  m.doc() = "Ferrite: trains and runs small neural networks, recurrent ones above all, on the CPU.";
  m.attr("_version") = FERRITE_PYTHON_VERSION;
  define_errors(m);
  define_dtypes(m);
  define_tensor(m);
  define_gradients(m);
  nb::module_ nn = m.def_submodule("_nn", "Layers and losses."),
              optim = m.def_submodule("_optim", "Optimisers and schedules.");
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
  m.def("_command", command, "arguments"_a);
  define_recurrence(m);
}
