#pragma once
/// The name of an instruction set as a namespace. Kernels are compiled once for each set that a library has ("level"),
/// with other flags and another FERRITE_LEVEL: everything that they define lies in ferrite::detail::FERRITE_LEVEL, so
/// that linking never substitutes a function of one level for that of another. Sources that belong to no level see what
/// is declared for all, under a name of its own, and call none of it: they reach kernels through tables (kernels.h).
#ifndef FERRITE_LEVEL
#define FERRITE_LEVEL no_level
#endif

/// Defines the tables of this level for f32 and f64, name_f32 = make<float>() and name_f64 = make<double>(). A level
/// that uses another's table for f64 defines none for it.
#define FERRITE_DEFINE_FLOAT_TABLES(Table, name, make)     \
  extern const Table<float> name##_f32;                    \
  constinit const Table<float> name##_f32 = make<float>(); \
  FERRITE_DEFINE_F64_TABLE(Table, name##_f64, make)
#ifdef FERRITE_ABOVE_AVX2
#define FERRITE_DEFINE_F64_TABLE(Table, name, make)
#else
#define FERRITE_DEFINE_F64_TABLE(Table, name, make) \
  extern const Table<double> name;                  \
  constinit const Table<double> name = make<double>();
#endif
