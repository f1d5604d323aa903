/// Sources of errors, and checks that throw them.
#include "ferrite/tensor/error.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite {

/// The layer that an error names, and the message with it.
struct Error::Located {
  std::string layer, text;
};

const char* Error::what() const noexcept { return located_ ? located_->text.c_str() : std::runtime_error::what(); }

std::string_view Error::layer() const noexcept {
  return located_ ? std::string_view(located_->layer) : std::string_view();
}

void Error::set_layer(std::string_view path) noexcept {
  if (path.empty() || located_) return;
  try {
    const std::string layer(path);
    located_ = std::make_shared<const Located>(Located{layer, "in " + layer + ": " + std::runtime_error::what()});
  } catch (const std::bad_alloc&) {
  }
}

namespace detail {

void check_not_negative(std::string_view what, std::initializer_list<double> values) {
  if (std::all_of(values.begin(), values.end(), [](double x) { return x >= 0 && !std::isinf(x); })) return;
  std::string got;
  for (const double x : values) got += (got.empty() ? "" : " and ") + Scalar(x).str();
  throw ValueError(std::string(what) + " must be finite and must not be negative, got " + got);
}

void throw_value_error(const char* message) { throw ValueError(message); }
void throw_bad_alloc() { throw std::bad_alloc(); }

}  // namespace detail
}  // namespace ferrite
