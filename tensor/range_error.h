#pragma once
/// The error of an element outside its range.
#include <string>
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite {

/// An element that `checked` found outside its range.
class RangeError : public ValueError {
 public:
  /// `who`: as `checked` was told; it lives as long as the process.
  RangeError(const std::string& message, std::string_view who) : ValueError(message), who_(who) {}
  std::string_view who() const noexcept { return who_; }

 private:
  std::string_view who_;
};

}  // namespace ferrite
