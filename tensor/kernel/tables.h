#pragma once
/// How a source that belongs to no level names the tables of one kind, of which every level has one.
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite_levels.h"

/// Declares the table `name` of every level, in the namespaces of levels within the one at hand, and defines `in_use`:
///
///   FERRITE_TABLES(RankKernels, rank_kernels, ranks_in_use)
#define FERRITE_TABLES(Table, name, in_use)                                  \
  FERRITE_LIST_TABLES(FERRITE_EACH_LEVEL_WITH, Table, name, in_use##_levels) \
  constinit const ferrite::detail::TableInUse<Table> in_use(in_use##_levels);
/// Declares and defines like FERRITE_TABLES, for tables that AVX-512 takes from AVX2.
#define FERRITE_TABLES_TO_AVX2(Table, name, in_use)                                  \
  FERRITE_LIST_TABLES(FERRITE_EACH_LEVEL_TO_AVX2_WITH, Table, name, in_use##_levels) \
  constinit const ferrite::detail::TableInUse<Table> in_use(in_use##_levels);
/// Declares and defines like FERRITE_TABLES, for the tables that FERRITE_DEFINE_FLOAT_TABLES (level.h) makes, of which
/// AVX-512 takes those of f64 from AVX2.
#define FERRITE_FLOAT_TABLES(Table, name, in_use)                                                            \
  FERRITE_LIST_TABLES(FERRITE_EACH_LEVEL_WITH, Table<float>, name##_f32, in_use##_f32)                       \
  FERRITE_LIST_TABLES(FERRITE_EACH_LEVEL_TO_AVX2_WITH, Table<double>, name##_f64, in_use##_f64)              \
  constinit const ferrite::detail::FloatTablesInUse<Table> in_use{ferrite::detail::TableInUse(in_use##_f32), \
                                                                  ferrite::detail::TableInUse(in_use##_f64)};

#define FERRITE_LIST_TABLES(each, Table, name, list)          \
  FERRITE_EACH_LEVEL_WITH(FERRITE_DECLARE_TABLE, Table, name) \
  constexpr const Table* list[] = {each(FERRITE_ADDRESS_OF_TABLE, name)};
#define FERRITE_DECLARE_TABLE(level, Table, name) \
  namespace level {                               \
  extern const Table name;                        \
  }
#define FERRITE_ADDRESS_OF_TABLE(level, name) &level::name,
