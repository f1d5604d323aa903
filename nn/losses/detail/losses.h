#pragma once
/// Shared parts of the losses: checks of operands, masks, reductions, and the record of an elementwise loss.
#include <span>
#include <string>
#include <string_view>

#include "ferrite/nn/losses/reduction.h"
#include "ferrite/tensor/define.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

/// The divisor of the mean of weighted losses: the sum of the weights, or the number of elements.
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

/// The elements that count among losses of a shape.
struct Counted {
  Tensor valid;     ///< bool, by mask and lengths, of the losses' rank; undefined: all count
  Tensor weighted;  ///< bool, of the losses' shape: true where the weight is not 0; undefined: everywhere

  /// Returns the same elements for operands with a further axis, or with further axes at the end.
  Counted with_axis(int axis) const;
  Counted with_rank(int rank) const;
};
/// Returns the elements that count. Throws ShapeError and DtypeError for a weight, a mask or lengths that do not fit
/// the losses.
Counted counted(std::string_view where, const Spec& losses, const LossOptions& options);
/// Returns an operand in which no NaN or infinity of an element that does not count reaches a gradient: padding is
/// replaced by a number for which every loss is finite, and no gradient passes to an element of weight 0 (its loss
/// stays, since the gradient of the weight is made of it). Returns x itself without a mask and a weight.
Tensor without(const Counted& elements, const Tensor& x);
/// Like `without` above, and also replaces elements of weight 0 outside low..high, which a check would reject.
Tensor without(const Counted& elements, const Tensor& x, double low, double high);
/// Throws ShapeError for an element_weight of shape [C] that does not fit the losses, and points to class_weight.
void check_no_class_weight(std::string_view where, const Tensor& element_weight, const Shape& losses, std::int64_t C);
/// Reduces losses to one result. `share` is the factor that each element's loss already contains; undefined: 1.
Tensor reduced(const Tensor& losses, const Counted& elements, const LossOptions& options,
               WeightedMean by = WeightedMean::by_weights, const Tensor& share = {});

/// The slope of binary cross-entropy at probability 0 or 1, as in PyTorch's gradient: 1e12.
inline constexpr double kSlopeOfCertainty = 1 / static_cast<double>(1e-12F);
/// Returns ln p, at least -100, with the slope `kSlopeOfCertainty` at 0.
Tensor bounded_log(const Tensor& p);

/// The record of an elementwise loss, whose `of` computes it in operations.
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

/// Computes an elementwise loss of operands whose shapes agree, masked and reduced.
template <class Loss>
Tensor element_loss(std::span<const Tensor> operands, const AttributesOf<Loss>& a, const LossOptions& options,
                    WeightedMean by = WeightedMean::by_weights) {
  const Counted elements = counted(Loss::name, operands[0].spec(), options);
  Tensors in;
  for (const Tensor& x : operands) in.push_back(without(elements, x));
  return reduced(composed<ElementLoss<Loss>>(OperandList(in), a), elements, options, by);
}

/// Computes an elementwise loss of a prediction and its target. Throws ShapeError or DtypeError if they differ.
template <class Loss>
Tensor pair_loss(const Tensor& prediction, const Tensor& target, const LossOptions& options,
                 const AttributesOf<Loss>& a = {}, WeightedMean by = WeightedMean::by_weights) {
  check_float(Loss::name, "the prediction", prediction);
  check_same(Loss::name, prediction, target);
  const Tensor operands[] = {prediction, target};
  return element_loss<Loss>(operands, a, options, by);
}

/// Lists the composites of each file of losses.
using Records = std::span<const Primitive* const>;
Records reduction_records();
Records regression_records();
Records classification_records();
Records ranking_records();
Records audio_records();
/// Lists the losses over alignments: operations with their own gradients.
Records sequence_records();

}  // namespace ferrite::nn::detail
