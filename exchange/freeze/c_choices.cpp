/// Writes operations that choose elements by numbers, and that find numbers: gathers, places of maxima, orders.
#include <algorithm>

#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::exchange::detail {
namespace {

/// Slices of x chosen by a list of numbers; one outside the axis is an error.
void write_index_select(const CCall& c) {
  const LoweredWindow &x = c.in(0), &index = c.in(1), &y = c.out();
  const int axis = static_cast<int>(std::get<std::int64_t>(*c.node().attrs.at(0)));
  const std::int64_t n = x.spec.shape[axis];
  Shape around = y.spec.shape, from = x.strides;
  const std::string i = "i" + text(axis);
  around[axis] = 1, from[axis] = 0;
  const std::string number = "(" + c.at(index) + " + " + text(index.strides[0]) + " * " + i + ")[0]";
  c.to.open("for (ptrdiff_t " + i + " = 0; " + i + " < " + text(y.spec.shape[axis]) + "; ++" + i + ")");
  c.to.line("ptrdiff_t chosen = (ptrdiff_t)" + number + ";");
  c.to.line("if (chosen < 0) chosen += " + text(n) + ";");
  c.to.line("if (chosen < 0 || chosen >= " + text(n) + ") return NF_BAD_INDEX;");
  c.body.fails();
  for (int k = 0; k < around.rank(); ++k)
    if (k != axis)
      c.to.open("for (ptrdiff_t i" + text(k) + " = 0; i" + text(k) + " < " + text(around[k]) + "; ++i" + text(k) + ")");
  std::string to = c.at(y), at = c.at(x) + " + " + text(x.strides[axis]) + " * chosen";
  for (int k = 0; k < around.rank(); ++k) to += " + " + text(y.strides[k]) + " * i" + text(k);
  at += steps_along(around, from);
  c.to.line("(" + to + ")[0] = (" + at + ")[0];");
  for (int k = 0; k < around.rank(); ++k) c.to.close();
}

constexpr CWriter kWriters[] = {{"index_select", write_index_select}};

}  // namespace

std::span<const CWriter> choice_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
