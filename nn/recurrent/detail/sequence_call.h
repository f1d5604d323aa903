#pragma once
/// One application of a sequence, with its operands as kernels read them.
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/sequence_operands.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::nn::detail {

using ferrite::detail::RowMajor;
using ferrite::detail::Writer;

template <class T>
Rows<const T*> rows_of(const Tensor& x, const SequenceAxes& axes) {
  return {x.data<T>(), x.strides()[axes.time], x.strides()[axes.batch()]};
}
template <class T>
Rows<T*> writable_rows(Tensor& x, const SequenceAxes& axes) {
  return {Writer::data<T>(x), x.strides()[axes.time], x.strides()[axes.batch()]};
}

/// Holds the operands of one application, row-major, as long as its kernel runs. Each pass brings the weights into the
/// form that its kernel reads.
template <class T>
class SequenceCall {
 public:
  SequenceCall(const GatedCell& cell, Inputs in, const SequenceParts& o, const SequenceOrder& order);
  const RecurrentWeights<RowMajor>& weights() const { return weights_; }
  const Recurrence<T>* operator->() const { return &r_; }
  /// The recurrence, from now on with these weights.
  const Recurrence<T>& with(const KernelWeights<T>& w) {
    r_.w = w;
    return r_;
  }

 private:
  RecurrentWeights<RowMajor> weights_;
  RowMajor h0_, c0_, lengths_, resets_;
  Tensor x_;  ///< a copy, where the features of x are not contiguous
  Recurrence<T> r_;
};
extern template class SequenceCall<float>;
extern template class SequenceCall<double>;

/// Computes y, the last states and, where `saved` is given, what the gradient reads.
template <class T>
void run_forward(SequenceCall<T>& call, const SequenceOrder& order, Tensor& y, Tensor& h, Tensor* c, Tensor* saved);

}  // namespace ferrite::nn::detail
