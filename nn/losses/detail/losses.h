#pragma once
/// What the losses share: checks of their operands, masks, reductions, and the record of a loss of elements.
#include <span>
#include <string>
#include <string_view>

#include "ferrite/nn/losses/reduction.h"
#include "ferrite/tensor/define.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

/// What the mean of weighted losses is divided by.
enum class WeightedMean : std::uint8_t { by_weights, by_count };

/// Throws DtypeError unless x is f32 or f64.
void check_float(std::string_view where, std::string_view what, const Tensor& x);
/// Throws ShapeError and DtypeError unless two operands have the same shape and dtype.
void check_same(std::string_view where, const Tensor& a, const Tensor& b);
/// Throws ValueError unless a parameter is finite and positive.
void check_positive(std::string_view where, std::string_view what, double value);
/// Throws ValueError unless a parameter is finite.
void check_finite(std::string_view where, std::string_view what, double value);
/// Throws ValueError for a parameter outside low..high.
void check_within(std::string_view where, std::string_view what, double value, double low, double high);

/// Which elements of losses of a shape count.
struct Counted {
  Tensor valid;     ///< bool, by mask and lengths, of the losses' rank; undefined: all
  Tensor weighted;  ///< bool, of the losses' shape: where the weight is not 0; undefined: everywhere

  /// Of operands with a further axis, or with further axes at the end.
  Counted with_axis(int axis) const;
  Counted with_rank(int rank) const;
};
/// Throws ShapeError and DtypeError for a weight, a mask and lengths that do not fit losses of a shape and dtype.
Counted counted(std::string_view where, const Spec& losses, const LossOptions& options);
/// An operand of which neither NaN nor infinity of an element that does not count reaches a gradient: padding is
/// replaced by a number with which every loss is finite, and no gradient passes to an element of weight 0 (its loss, of
/// which the gradient of the weight is made, stays). x itself without a mask and a weight.
Tensor without(const Counted& elements, const Tensor& x);
/// The same, and elements of weight 0 outside low..high are replaced: those that a check would refuse.
Tensor without(const Counted& elements, const Tensor& x, double low, double high);
/// Throws ShapeError for a weight of elements that does not fit the losses and has an extent of C: it is one of
/// classes.
void check_no_class_weight(std::string_view where, const Tensor& element_weight, const Shape& losses, std::int64_t C);
/// Losses as one result. `share` is what an element's loss has been multiplied by already; undefined: 1.
Tensor reduced(const Tensor& losses, const Counted& elements, const LossOptions& options,
               WeightedMean by = WeightedMean::by_weights, const Tensor& share = {});

/// The slope of binary cross-entropy where a probability is 0 or 1, as PyTorch's gradient has it: 1e12.
inline constexpr double kSlopeOfCertainty = 1 / static_cast<double>(1e-12F);
/// Log of a probability, at least -100, with that slope at 0.
Tensor bounded_log(const Tensor& p);

/// The record of a loss of elements: `of` in operations.
///
///   struct HuberLoss {
///     using Attributes = HuberAttrs;
///     static constexpr auto name = "huber_loss", summary = "...";
///     static Tensor of(Inputs in, const HuberAttrs& a);
///   };
template <class Loss>
struct ElementLoss {
  using Attributes = AttributesOf<Loss>;
  static constexpr std::string_view name = Loss::name, onnx = "", summary = Loss::summary;

  static Tensor parts(Inputs in, const Attributes& a) { return Loss::of(in, a); }
};

/// A loss of elements of operands whose shapes agree, masked and reduced.
template <class Loss>
Tensor element_loss(std::span<const Tensor> operands, const AttributesOf<Loss>& a, const LossOptions& options,
                    WeightedMean by = WeightedMean::by_weights) {
  const Counted elements = counted(Loss::name, operands[0].spec(), options);
  Tensors in;
  for (const Tensor& x : operands) in.push_back(without(elements, x));
  return reduced(composed<ElementLoss<Loss>>(OperandList(in), a), elements, options, by);
}

/// The same of a prediction and its target.
template <class Loss>
Tensor pair_loss(const Tensor& prediction, const Tensor& target, const LossOptions& options,
                 const AttributesOf<Loss>& a = {}, WeightedMean by = WeightedMean::by_weights) {
  check_float(Loss::name, "the prediction", prediction);
  check_same(Loss::name, prediction, target);
  const Tensor operands[] = {prediction, target};
  return element_loss<Loss>(operands, a, options, by);
}

/// The composites of the losses' files.
using Records = std::span<const Primitive* const>;
Records reduction_records();
Records regression_records();
Records classification_records();
Records ranking_records();
Records audio_records();
/// Losses over alignments: operations with gradients of their own.
Records sequence_records();

}  // namespace ferrite::nn::detail
