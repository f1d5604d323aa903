// The functions of library.h.
#include "library.h"

int run(const Options* options) { return options->size; }
#ifdef GROWS
int stop(const Options* options) { return -options->size; }
#endif
