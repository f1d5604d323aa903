/// Keeps the parts of a frozen file.
#include "ferrite/exchange/freeze/c_module.h"

#include <cstring>

#include "ferrite/exchange/freeze/c_kernels.h"
#include "ferrite/exchange/freeze/c_text.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {

std::string CModule::constant(const Tensor& values, std::string_view what) {
  if (const std::string known = array(values, 0); !known.empty()) return known;
  const std::string name = "nf_c" + std::to_string(arrays_.size());
  if (is_float(values.dtype())) has(values.dtype());
  constants_ += "/* " + c_comment(what) + " " + values.shape().str() + " */\n" + c_array(name, values);
  arrays_.push_back({contiguous(values), 0, name});
  return name;
}

std::string CModule::rows(const Tensor& values, std::int64_t row, const std::string& behind, std::string_view what) {
  std::string name = behind.empty() ? array(values, row) : "";  // another one may be read less far
  if (name.empty()) {
    name = "nf_c" + std::to_string(arrays_.size());
    has(values.dtype());
    constants_ += "/* " + c_comment(what) + " " + values.shape().str() + " */\n" + c_rows(name, values, row, behind);
    arrays_.push_back({contiguous(values), row, name});
  }
  return "(const " + std::string(c_type(values.dtype())) + " *)" + name;
}

/// Returns the name of an array that has these elements already; "" if there is none.
std::string CModule::array(const Tensor& values, std::int64_t row) const {
  const Tensor dense = contiguous(values);
  const auto bytes = static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()));
  for (const Array& a : arrays_)
    if (a.row == row && a.values.dtype() == dense.dtype() && a.values.numel() == dense.numel() &&
        std::memcmp(a.values.raw(), dense.raw(), bytes) == 0)
      return a.name;
  return "";
}

std::string CModule::kernel(std::string_view name, Dtype dtype) {
  has(dtype);
  const std::string c_name = "nf_" + std::string(name) + (dtype == Dtype::f64 ? "_d" : "_f");
  if (names_.contains(c_name)) return c_name;
  if (name == "rows") kernel("tile", dtype);
  if (name == "windows") kernel("window_tile", dtype);
  names_[c_name] = c_name;
  kernels_ += c_kernel(name, dtype);
  return c_name;
}

std::string CModule::function(const Primitive& op, Dtype dtype) {
  has(dtype);
  return functions_.name_of(op, dtype);
}

std::string CModule::define(std::string_view name, const std::string& text) {
  const auto known = names_.find(text);
  if (known != names_.end()) return known->second;
  std::string own = "nf_" + std::string(name);
  for (int i = 2; own_.find(own + "(") != std::string::npos; ++i)
    own = "nf_" + std::string(name) + "_" + std::to_string(i);
  own_ += "\n" + replaced(text, "$name", own);
  names_[text] = own;
  return own;
}

std::string CModule::functions() const {
  const bool doubles = floats_.contains(Dtype::f64), floats = floats_.contains(Dtype::f32) || !doubles;
  return c_vectors(floats, doubles || functions_.uses_doubles()) + c_words() + functions_.text() + kernels_ + own_;
}

}  // namespace ferrite::exchange::detail
