#pragma once
/// The exceptions of the library.
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ferrite/tensor/language.h"

namespace ferrite {

/// Base class of the errors that the library throws. Messages read
/// `<where>: <what is wrong>: <the values seen>[; <what to do>]`, and begin with "in <path>: " where a layer of a model
/// threw it: "in encoder.gru: matmul: inner extents differ: [2, 3] . [4, 5]".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  const char* what() const noexcept override;
  /// Returns the path of the layer that threw the error, the prefix of its parameters' names; empty outside layers.
  std::string_view layer() const noexcept;
  /// Sets the layer that threw the error. The first call, made by the innermost layer, decides; an empty path is
  /// ignored. Leaves the message as it is where there is no memory for a longer one.
  void set_layer(std::string_view path) noexcept;

 private:
  struct Located;
  std::shared_ptr<const Located> located_{};
};

/// Thrown for shapes, extents, axes or indices that do not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// Thrown for dtypes that do not fit; there is no promotion between tensors.
class DtypeError : public Error {
 public:
  using Error::Error;
};

/// Thrown for a value outside the range that an option or argument allows.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// Thrown for misuse of automatic differentiation: of a Tape, a gradient function, a checkpoint or a custom function.
class TapeError : public Error {
 public:
  using Error::Error;
};

/// Thrown when the values of a traced tensor are read, or when a traced value leaves its trace.
class TraceError : public Error {
 public:
  using Error::Error;
};

/// Thrown for a file that is missing, damaged or does not fit the model.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Thrown when a tensor, or the workspace of an operation, needs more memory than the system provides. The operation
/// has changed nothing.
///
///     tensor: no memory for f32[1000000, 1000000]: 4000000000000 bytes; make it smaller, or split the batch
class MemoryError : public Error {
 public:
  using Error::Error;
};

/// Thrown by `checked` for a float element outside the range low..high (an integer there throws ShapeError).
class RangeError : public ValueError {
 public:
  /// `who` is the name that was given to `checked`; it must live as long as the process.
  RangeError(const std::string& message, std::string_view who) : ValueError(message), who_(who) {}
  /// Returns the `who` given to `checked`, which names the value at the beginning of the message: "bce: probability".
  std::string_view who() const noexcept { return who_; }

 private:
  std::string_view who_;
};

namespace detail {

/// Throws ValueError "<what> must be finite and must not be negative, got <the values>" unless all values are so.
void check_not_negative(std::string_view what, std::initializer_list<double> values);
/// Throws ValueError. For headers: programs that include them may be compiled with -fno-exceptions.
[[noreturn]] void throw_value_error(const char* message);

}  // namespace detail
}  // namespace ferrite
