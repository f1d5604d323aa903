// The extension module.
#include "module.h"

#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/threads.h"

NB_MODULE(_ferrite, m) {
  using namespace ferrite::python;
  nb::set_leak_warnings(false);  // dtypes and named tuples live as long as the process
  m.doc() = "Ferrite: trains and runs small neural networks, recurrent ones above all, on the CPU.";
  define_errors(m);
  define_dtypes(m);
  define_tensor(m);
  define_gradients(m);
  define_operations(m);
  define_files(m);
  define_exchange(m);
  define_compile(m);
  define_streams(m);
  define_guards(m);
  define_data(m);
  define_training(m);
}
