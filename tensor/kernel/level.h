#pragma once
/// The name of an instruction set as a namespace. Kernels are compiled once for each set that a library has ("level"),
/// with other flags and another FERRITE_LEVEL: all that they define stands in ferrite::detail::FERRITE_LEVEL, so that
/// no function of one level takes the place of another's when they are linked. Sources that belong to no level see what
/// is declared for all, under a name of its own, and call none of it: they reach kernels through tables (kernels.h).
#ifndef FERRITE_LEVEL
#define FERRITE_LEVEL no_level
#endif
