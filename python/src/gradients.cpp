// Gradients in Python.
#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/jacobian.h"
#include "ferrite/autograd/jvp.h"
#include "ferrite/autograd/no_grad.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/autograd/value_and_grad.h"
#include "module.h"

namespace ferrite::python {

void define_gradients(nb::module_&) {}

}  // namespace ferrite::python
