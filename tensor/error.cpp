#include "ferrite/tensor/error.h"

#include <algorithm>
#include <cmath>

namespace ferrite::detail {

void check_not_negative(std::string_view what, std::initializer_list<double> values) {
  if (std::all_of(values.begin(), values.end(), [](double x) { return x >= 0 && !std::isinf(x); })) return;
  std::string got;
  for (const double x : values) got += (got.empty() ? "" : " and ") + std::to_string(x);
  throw ValueError(std::string(what) + " must be finite and must not be negative, got " + got);
}

}  // namespace ferrite::detail
