#pragma once
/// The parts of a level's table of recurrences, each defined by a source of the level.
#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/tensor/kernel/level.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {

template <class T>
void row_back(CellType cell, const RowBack<T>& s);
template <class T>
void product_back(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, T* to, std::int64_t to_row,
                  bool add);
template <class T>
void reset_back(const ResetBack<T>& s);

extern const RecurrenceTable recurrence_table;

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
