#include "module.h"
namespace ferrite::python {
void define_training(nb::module_&) {}
}
