#pragma once
/// Writing operations that run alone: what the families of them share. A family is a list of names and writers.
#include <span>
#include <string>
#include <string_view>

#include "ferrite/exchange/freeze/c_body.h"

namespace ferrite::exchange::detail {

/// One operation that runs alone, with what it writes to.
struct CCall {
  CBody& body;
  const LoweredStep& step;
  CText& to;

  const Graph::Node& node() const { return *step.node; }
  const LoweredWindow& in(std::size_t i) const { return step.in[i]; }
  const LoweredWindow& out(std::size_t i = 0) const { return step.out[i]; }
  Dtype dtype() const { return out().spec.dtype; }
  std::string at(const LoweredWindow& w) const { return body.at(w.value, w.offset); }
  std::string kernel(std::string_view name) const { return body.module().kernel(name, dtype()); }
  /// Returns the name of the function of a pointwise operation.
  std::string function(std::string_view name) const;
  /// Refuses results that are not floats.
  void wants_floats() const;
  /// Writes the beginnings of loops over the axes of a shape, i0, i1, ..., but not over `without`.
  void open(const Shape& shape, int without = -1) const;
  void close(const Shape& shape, int without = -1) const;
  /// Returns the address of an operand whose elements lie row-major; writes a copy of one whose elements do not.
  std::string dense(const LoweredWindow& w) const;
};

/// Returns whether the elements of a window lie row-major.
bool is_dense(const LoweredWindow& w);
/// Returns the sum of strides times loop variables, " + 3 * i0 + i1".
std::string steps_along(const Shape& shape, const Shape& strides);
/// Writes a copy of a window to row-major memory.
void write_copy_of(const CCall& c, const LoweredWindow& x, const std::string& to);

/// Returns the constant that a window shows as a whole, or null.
const Tensor* constant_of(const CCall& c, const LoweredWindow& w);

/// An operation and what writes it.
struct CWriter {
  std::string_view name;
  void (*write)(const CCall&);
};

std::span<const CWriter> product_writers();     ///< exchange/freeze/c_products.cpp
std::span<const CWriter> choice_writers();      ///< exchange/freeze/c_choices.cpp
std::span<const CWriter> optimiser_writers();   ///< exchange/freeze/c_optimisers.cpp
std::span<const CWriter> recurrence_writers();  ///< exchange/freeze/c_recurrences.cpp
std::span<const CWriter> scan_writers();        ///< exchange/freeze/c_scans.cpp
std::span<const CWriter> transform_writers();   ///< exchange/freeze/c_transforms.cpp
std::span<const CWriter> window_writers();      ///< exchange/freeze/c_windows.cpp

}  // namespace ferrite::exchange::detail
