#pragma once
/// Pointwise operations as C functions, made from the packet functions of the kernels.
///
/// A function has the library's bits where multiply-adds round once (AVX2, AVX-512, NEON), for all operands, large
/// angles included. Where the library calls the C library lane by lane, so does the function, whose bits are then those
/// of that C library: in f64 erf, erfc, gelu, gelu_grad, inverse trigonometric and hyperbolic functions and hypot; in
/// both widths lgamma of numbers up to 0, in f64 of all. The other ones call only `sqrt` and `fmod`, which are exact
/// everywhere.
///
/// These operations have no form in C: digamma and trigamma, erfinv in f64, bits of integers, and those that programs
/// define.
///
/// Nothing in the file may be contracted: clang gets `#pragma STDC FP_CONTRACT OFF`, GCC `#pragma GCC optimize`. A file
/// is c_vectors, then the text of the functions and what uses them, then c_end. GCC 9 or newer, clang, or any C99
/// compiler, for which the form without vectors is chosen.
#include <cstddef>
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
  /// "nf_tanh_f" or "nf_tanh_d", and keeps its text. Returns "" for an operation that has no form in C. Conditions,
  /// results of comparisons and bool operands are vectors of integers, `nf_i` next to f32 and `nf_l` next to f64: -1 or
  /// 0.
  std::string name_of(const Primitive& op, Dtype dtype);
  /// Returns the definitions of all functions so far, in an order in which they can be compiled.
  std::string text() const;
  /// Returns whether some function calls the C library (`math.h`).
  bool calls_library() const { return calls_library_; }
  /// Returns whether some function of f32 computes in doubles, so that `c_vectors(true, true)` must precede the text.
  bool uses_doubles() const { return uses_doubles_; }

 private:
  friend class FunctionWriter;
  std::vector<std::string> definitions_;
  std::map<std::string, std::string, std::less<>> names_;
  bool calls_library_ = false;
  bool uses_doubles_ = false;
};

/// Returns the text before all functions: the vector types and what every function is made of.
std::string c_vectors(Dtype dtype);
/// Returns the same for floats and doubles.
std::string c_vectors(bool with_floats, bool with_doubles);
/// Returns the text after all functions: it restores the compiler's options, for a file that others include.
std::string c_end();

/// A function of C that others call: its definition, "" for one of `c_vectors`, and what it needs.
struct CHelper {
  std::string definition;
  std::vector<std::string> needs;  ///< names of other helpers
  bool calls_library = false;
  bool uses_doubles = false;
};
/// Returns the helper with a name that the writer of functions uses, such as "nf_sqrt_f"; `lane` is the function of one
/// lane that it applies, or null.
CHelper c_helper(const std::string& name, const char* lane, std::size_t operands);
/// Returns the helper with a name that begins with "nf_turn", for large angles.
CHelper turned_helper(const std::string& name);

}  // namespace ferrite::exchange::detail
