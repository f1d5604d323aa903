#pragma once
/// What a frozen file contains besides its functions: constants, kernels and pointwise functions, each once.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/exchange/freeze/c_functions.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// The constants and helping functions of a frozen file. All names begin with `nf_` or `NF_`.
class CModule {
 public:
  /// Returns the name of a constant array with the elements of a tensor. `what` describes it in a comment.
  std::string constant(const Tensor& values, std::string_view what);
  /// Returns the address of a constant array in which each row of `row` elements starts a new vector. `behind` is the C
  /// text that adds the rows past the end which vectors may read, " + 2" or "".
  std::string rows(const Tensor& values, std::int64_t row, const std::string& behind, std::string_view what);
  /// Declares that several programs read the constants, so that each constant keeps one layout.
  void share_constants() { shared_ = true; }
  bool shares_constants() const { return shared_; }
  /// Returns the name of a kernel of c_kernels.h, "nf_rows_f", and makes it a part of the file.
  std::string kernel(std::string_view name, Dtype dtype);
  /// Returns the name of the function of a pointwise operation; "" if it has none.
  std::string function(const Primitive& op, Dtype dtype);
  /// Returns the name of a function of the file that is defined by `text`, in which $name stands for its name; equal
  /// texts are one function.
  std::string define(std::string_view name, const std::string& text);
  /// Notes that the program has numbers of this type, so that its vectors are defined.
  void has(Dtype dtype) { floats_.insert(dtype); }

  /// Returns the definitions of everything so far, without constants.
  std::string functions() const;
  const std::string& constants() const { return constants_; }
  bool calls_library() const { return functions_.calls_library(); }
  bool has_doubles() const { return floats_.contains(Dtype::f64); }

 private:
  struct Array {
    Tensor values;
    std::int64_t row = 0;  ///< elements of a row that starts a new vector; 0 if rows do not
    std::string name;
  };
  std::string array(const Tensor& values, std::int64_t row) const;

  CFunctions functions_;
  std::string constants_, kernels_, own_;
  std::set<Dtype> floats_;
  std::map<std::string, std::string> names_;  ///< by text or kind: the name that was given
  std::vector<Array> arrays_;
  bool shared_ = false;
};

}  // namespace ferrite::exchange::detail
