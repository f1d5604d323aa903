#pragma once
/// How options that are neither numbers nor texts nor shapes are given in Python.
#include "casters.h"
#include "ferrite/tensor/convolution.h"

namespace nanobind::detail {

/// Padding of a convolution: numbers, or "same", "valid" or "causal".
template <>
struct type_caster<ferrite::ConvolutionPadding> : late_caster<ferrite::ConvolutionPadding> {
  static constexpr auto Name = io_name("str | int | collections.abc.Sequence[int]", "str | tuple[int, ...]");
  using Padding = ferrite::ConvolutionPadding;
  static constexpr std::pair<Padding::Rule, const char*> kRules[] = {
      {Padding::same, "same"}, {Padding::valid, "valid"}, {Padding::causal, "causal"}};
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::string> text;
    if (PyUnicode_Check(src.ptr())) {
      if (!text.from_python(src, flags, cleanup)) return false;
      return keep([&] {
        for (const auto& [rule, name] : kRules)
          if (text.value == name) return Padding(rule);
        throw ferrite::ValueError("padding: unknown value \"" + text.value +
                                  "\"; known are same, valid, causal and numbers");
      });
    }
    make_caster<ferrite::Shape> numbers;
    if (!numbers.from_python(src, flags, cleanup)) return false;
    return keep([&] { return Padding(numbers.checked()); });
  }
  static handle from_cpp(const Padding& p, rv_policy policy, cleanup_list* cleanup) noexcept {
    for (const auto& [rule, name] : kRules)
      if (p.rule == rule) return PyUnicode_FromString(name);
    return make_caster<ferrite::Shape>::from_cpp(p.amounts, policy, cleanup);
  }
};

}  // namespace nanobind::detail
