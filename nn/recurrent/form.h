#pragma once
/// How recurrent layers are run.
#include "ferrite/tensor/attrs.h"

namespace ferrite::nn {

namespace detail {
/// What runs a layer's steps as a scan (nn/recurrent/detail/recurrent_layers.h).
struct ScanForm;
extern const ScanForm scan_form;
}  // namespace detail

/// How a recurrent layer is run; all forms give the same values, and gradients within rounding. What runs scans is in
/// the programs that name `Form::scan` or a zoneout, and in no other.
class Form {
 public:
  static const Form fused;     ///< one operation for all steps of a layer and direction (steps.h: gru_sequence)
  static const Form unrolled;  ///< step by step in operations: the definition
  /// One step in operations, traced once and stepped through (compile/scan.h): what any cell can have.
  static const Form scan;

  constexpr bool operator==(const Form&) const = default;
  /// What runs the scans of this form; null of the others.
  constexpr const detail::ScanForm* scans() const { return scans_; }

 private:
  friend class Zoneout;
  constexpr Form(bool is_fused, const detail::ScanForm* scans) : is_fused_(is_fused), scans_(scans) {}

  bool is_fused_;
  const detail::ScanForm* scans_;
};
inline constexpr Form Form::fused(true, nullptr);
inline constexpr Form Form::unrolled(false, nullptr);
inline constexpr Form Form::scan(false, &detail::scan_form);

/// The probability with which a unit of a state stays what it was: a number, 0 where none is given.
class Zoneout {
 public:
  constexpr Zoneout() = default;
  constexpr Zoneout(double probability) : probability_(probability), form_(Form::scan) {}
  constexpr operator double() const { return probability_; }
  /// How a layer with it is run in place of fused.
  constexpr const Form& form() const { return form_; }

 private:
  double probability_ = 0;
  Form form_ = Form::fused;
};

}  // namespace ferrite::nn

namespace ferrite::detail {
template <>
struct AttrMember<nn::Zoneout> {
  using Stored = double;
  static constexpr bool optional = false;
};
}  // namespace ferrite::detail
