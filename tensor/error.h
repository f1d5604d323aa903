#pragma once
/// The exceptions of the library.
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// Base of everything the library throws. Messages read
/// `<where>: <what is wrong>: <the values seen>[; <what to do>]`, and begin with "in <path>: " where a layer of a model
/// threw it: "in encoder.gru: matmul: inner extents differ: [2, 3] . [4, 5]".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  const char* what() const noexcept override;
  /// The path of the layer that threw it, as the names of its parameters begin; empty outside of layers.
  std::string_view layer() const noexcept;
  /// Says which layer threw it. The first to say so, which is the innermost one, is right; an empty path says nothing.
  /// Leaves the message as it is where there is no memory for a longer one.
  void set_layer(std::string_view path) noexcept;

 private:
  struct Located;
  std::shared_ptr<const Located> located_{};
};

/// Shapes, extents, axes or indices that do not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// Dtypes that do not fit; there is no promotion between tensors.
class DtypeError : public Error {
 public:
  using Error::Error;
};

/// A value outside the range an option or argument allows.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// Misuse of a Tape or of a gradient.
class TapeError : public Error {
 public:
  using Error::Error;
};

/// The values of a traced tensor were read, or a traced value left its trace.
class TraceError : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, damaged or does not fit the model.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A tensor, or what an operation works with, is larger than the memory that the system gives. Nothing has changed.
///
///     tensor: no memory for f32[1000000, 1000000]: 4000000000000 bytes; make it smaller, or split the batch
class MemoryError : public Error {
 public:
  using Error::Error;
};

/// An element that `checked` found outside its range.
class RangeError : public ValueError {
 public:
  /// `who`: as `checked` was told; it lives as long as the process.
  RangeError(const std::string& message, std::string_view who) : ValueError(message), who_(who) {}
  std::string_view who() const noexcept { return who_; }

 private:
  std::string_view who_;
};

namespace detail {

/// Throws ValueError "<what> must be finite and must not be negative, got <the values>" unless all are so.
void check_not_negative(std::string_view what, std::initializer_list<double> values);
/// Throws ValueError, for headers: programs that include them may be compiled with -fno-exceptions.
[[noreturn]] void throw_value_error(const char* message);

}  // namespace detail
}  // namespace ferrite
