#pragma once
/// Losses of batches: by name, as a mean, or as a sum with a count; and forward passes that return one.
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/ops.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// A sum of losses and their number. The loss of a batch is sum / count. For a batch in parts it is the sum of all sums
/// divided by the sum of all counts, however unequal the counts are. A term that would be added to a mean, such as a
/// penalty on weights, is added to the sum `count` times.
struct LossSum {
  /// Takes the sum, one element of f32 or f64, and the count: a number, or a tensor of one element, as the sum of a
  /// mask. Training and evaluation throw ValueError for a count that is negative, infinite or NaN.
  LossSum(Tensor sum_of_losses, double number) : sum(std::move(sum_of_losses)), count(full({}, number, Dtype::f64)) {}
  LossSum(Tensor sum_of_losses, Tensor number) : sum(std::move(sum_of_losses)), count(std::move(number)) {}

  Tensor sum;    ///< sum of the losses, one element
  Tensor count;  ///< number of the losses, one element
};

namespace detail {

struct NamedLoss;

template <class F, class R>
concept OfTarget = std::is_invocable_r_v<R, const F&, const Tensor&, const Tensor&>;
template <class F, class R>
concept LossFunction = OfTarget<F, R> || std::is_invocable_r_v<R, const F&, const Tensor&, const Batch&>;

/// Returns a function of (prediction, target) or (prediction, batch) as one of (prediction, batch).
template <class R, LossFunction<R> F>
std::function<R(const Tensor&, const Batch&)> of_batch(F f) {
  if constexpr (OfTarget<F, R>) {
    return [f = std::move(f)](const Tensor& prediction, const Batch& batch) { return f(prediction, batch.y()); };
  } else {
    return f;
  }
}

}  // namespace detail

/// A loss of a prediction and a batch: a name, or a function of (prediction, target) or (prediction, batch) that
/// returns a mean, rank 0, or a LossSum.
///
/// Names: "cross_entropy" (logits [B, C], integer targets [B]), for logits with more axes
/// "cross_entropy_classes_last" ([B, ..., C], as sequences have them) or "cross_entropy_classes_second" ([B, C, ...],
/// as images have them); "bce_with_logits", "mse", "l1", "huber", "smooth_l1". Padding of sequences does not count
/// (Batch::target_lengths).
///
/// Training on several ranks (FitOptions::parallel) takes names and functions that return a LossSum.
class Loss {
 public:
  Loss() = default;
  /// Makes a loss from its name. Throws ValueError for an unknown name, with a suggestion.
  Loss(const char* name) : Loss(std::string_view(name)) {}
  Loss(std::nullptr_t) = delete;
  Loss(const std::string& name) : Loss(std::string_view(name)) {}
  Loss(std::string_view name);
  template <class F>
  requires detail::LossFunction<F, Tensor> || detail::LossFunction<F, LossSum> Loss(F f)
      : captures_nothing_(std::is_empty_v<F>) {
    if constexpr (detail::LossFunction<F, Tensor>) {
      mean_ = detail::of_batch<Tensor>(std::move(f));
    } else {
      sum_ = detail::of_batch<LossSum>(std::move(f));
    }
  }

  /// Returns whether this is a loss at all: not a default-constructed one.
  bool defined() const { return named_ || mean_ || sum_; }
  /// Returns the name of the loss; "a function" for the user's, "none" if it is not defined.
  std::string name() const;
  /// Returns the weight of a batch in means over several batches: for a name, the number of examples, or of steps of
  /// padded targets, without steps after the lengths and targets that a cross entropy ignores; for a function that
  /// returns a mean, the size of the batch. Throws ValueError for a function that returns a LossSum, which has a count.
  double weight(const Batch& batch) const;
  /// Returns whether the loss is a name or a function without captures, and so the same in every call.
  bool captures_nothing() const { return captures_nothing_; }
  /// Returns whether `weight` may be called: true for names and for functions that return a mean, false for functions
  /// that return a LossSum.
  bool has_weight() const { return named_ || mean_; }
  /// Returns whether `sum` may be called: true for names and for functions that return a LossSum.
  bool gives_sums() const { return named_ || sum_; }
  /// Returns the mean loss, rank 0 unless a function returned something else.
  Tensor operator()(const Tensor& prediction, const Batch& batch) const;
  /// Returns the sum of the losses and their number. Throws ValueError for a function that returns a mean.
  LossSum sum(const Tensor& prediction, const Batch& batch) const;

 private:
  const detail::NamedLoss* named_ = nullptr;  ///< the loss is this one, or mean_, or sum_
  std::function<Tensor(const Tensor&, const Batch&)> mean_;
  std::function<LossSum(const Tensor&, const Batch&)> sum_;
  bool captures_nothing_ = false;
};

/// The result of a step of a model: its loss, one float, and the prediction, if metrics need it.
struct StepOutput {
  Tensor loss;          ///< mean of the losses, or their sum if `count` is defined
  Tensor prediction{};  ///< output of the model, for metrics; may be undefined without them
  /// Number of losses that `loss` is the sum of, one element, as in LossSum. Undefined: `loss` is the mean.
  Tensor count{};
};
/// The forward pass of a model on a batch. `fit` differentiates the loss and updates the parameters.
using Forward = std::function<StepOutput(const Batch&)>;

}  // namespace ferrite::train
