#pragma once
/// The operand of an arithmetic operator: a tensor, a parameter or a number.
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite {

/// The operand of an arithmetic operation: a tensor, of which it keeps the address, a variable, whose value it reads
/// when it is made, or a literal number. Must not outlive the call that takes it.
class Operand {
 public:
  Operand() = default;
  Operand(const Tensor& t) : tensor_(&t) {}
  Operand(const Variable& c) : read_(c.value()), tensor_(&read_) {}
  Operand(Scalar s) : scalar_(s) {}
  template <class T>
  requires std::integral<T> || std::floating_point<T> Operand(T v) : scalar_(v) {}
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  /// Returns whether this is a literal, which `scalar` returns; otherwise `tensor` returns the tensor.
  bool is_literal() const { return tensor_ == nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  Scalar scalar() const { return scalar_; }

 private:
  Tensor read_;
  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
};

}  // namespace ferrite
