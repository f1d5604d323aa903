#pragma once
/// The forms in which recurrent layers run: fused, as a scan, or unrolled.
#include "ferrite/tensor/attrs.h"

namespace ferrite::nn {

namespace detail {
/// The functions that run a layer's steps as a scan (nn/recurrent/detail/recurrent_layers.h).
struct ScanForm;
extern const ScanForm scan_form;
}  // namespace detail

/// The form in which a recurrent layer runs. All forms give the same values, and the same gradients within rounding.
/// Only programs that name `Form::scan` or a zoneout link the code that runs scans.
class Form {
 public:
  static const Form fused;     ///< one operation for all steps of a layer and direction (steps.h: gru_sequence)
  static const Form unrolled;  ///< step by step in operations: the definition of the other forms
  /// One step in operations, traced once and run as a scan (compile/scan.h); available for every cell.
  static const Form scan;

  constexpr bool operator==(const Form&) const = default;
  /// Returns the functions that run scans for Form::scan, null for the other forms.
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

/// The zoneout of a state of a recurrent layer: the probability with which a unit keeps its value at a step while
/// training (see Recurrent); 0 by default. Converts from and to double.
class Zoneout {
 public:
  constexpr Zoneout() = default;
  constexpr Zoneout(double probability) : probability_(probability), form_(Form::scan) {}
  constexpr operator double() const { return probability_; }
  /// Returns the form in which a layer with this zoneout runs when it asks for Form::fused.
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
