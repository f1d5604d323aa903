#include "module.h"
namespace ferrite::python {
void define_data(nb::module_&) {}
}
