#pragma once
/// Pointwise operations as C functions, made from the packet functions of the kernels.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/primitive.h"

namespace ferrite::exchange::detail {

/// The C functions that a frozen file needs, each defined once. All names begin with `nf_` or `NF_`, which the writer
/// of the file replaces by its own prefix.
class CFunctions {
 public:
  /// Returns the name of the function that computes a pointwise operation on vectors of `dtype` (f32 or f64),
  /// "nf_tanh_f" or "nf_tanh_d", and keeps its text. Returns "" for an operation that has no form in C.
  std::string name_of(const Primitive& op, Dtype dtype);
  /// Returns the definitions of all functions so far, in an order in which they can be compiled.
  std::string text() const;
  /// Returns whether some function calls the C library (`math.h`).
  bool calls_library() const { return calls_library_; }

 private:
  std::vector<std::string> definitions_;
  std::map<std::string, std::string, std::less<>> names_;
  bool calls_library_ = false;
};

/// Returns the text before all functions: the vector types and what every function is made of.
std::string c_vectors(Dtype dtype);

}  // namespace ferrite::exchange::detail
