#pragma once
/// Losses of batches: by name, as a mean, or as a sum and of how many; and forward passes, which give one.
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/ops.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// A sum of losses, and of how many. The loss of a batch is sum / count; of a batch in parts it is the sum of all sums
/// divided by the sum of all counts, however unequal the counts are. What is added to a mean, such as a penalty on
/// weights, is added to the sum `count` times.
struct LossSum {
  /// `sum_of_losses` has one element, f32 or f64; the count is a number, or a tensor of one element: the sum of a mask.
  /// Training and evaluation throw ValueError for a count that is negative, infinite or NaN.
  LossSum(Tensor sum_of_losses, double number) : sum(std::move(sum_of_losses)), count(full({}, number, Dtype::f64)) {}
  LossSum(Tensor sum_of_losses, Tensor number) : sum(std::move(sum_of_losses)), count(std::move(number)) {}

  Tensor sum;
  Tensor count;
};

namespace detail {

struct NamedLoss;

template <class F, class R>
concept OfTarget = std::is_invocable_r_v<R, const F&, const Tensor&, const Tensor&>;
template <class F, class R>
concept LossFunction = OfTarget<F, R> || std::is_invocable_r_v<R, const F&, const Tensor&, const Batch&>;

/// A function of (prediction, target), or of (prediction, batch), as one of the latter.
template <class R, LossFunction<R> F>
std::function<R(const Tensor&, const Batch&)> of_batch(F f) {
  if constexpr (OfTarget<F, R>) {
    return [f = std::move(f)](const Tensor& prediction, const Batch& batch) { return f(prediction, batch.y()); };
  } else {
    return f;
  }
}

}  // namespace detail

/// A loss of a prediction and a batch: by name, or a function of (prediction, target) or (prediction, batch) that gives
/// a mean, rank 0, or a LossSum.
///
/// Names: "cross_entropy" (logits [B, C], integer targets [B]), for logits with more axes
/// "cross_entropy_classes_last" ([B, ..., C], as sequences have them) or "cross_entropy_classes_second" ([B, C, ...],
/// as images have them); "bce_with_logits", "mse", "l1", "huber", "smooth_l1". The lengths of padded sequences are kept
/// (Batch::target_lengths).
///
/// Training on several ranks (FitOptions::parallel) takes names and functions that give a LossSum.
class Loss {
 public:
  Loss() = default;
  /// Throws ValueError for a name that there is not, saying which may be meant.
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

  bool defined() const { return named_ || mean_ || sum_; }
  /// Its name; "a function" for one of the user's, "none" where it is not defined.
  std::string name() const;
  /// How much a batch counts in means over several: the mean that the loss is has so many terms, in units of an example
  /// or, of padded targets, of a step. Of a name: steps behind the lengths and targets that a cross entropy ignores do
  /// not count. Of a function that gives a mean: the size of the batch. Throws ValueError for a function that gives a
  /// LossSum: its count says it.
  double weight(const Batch& batch) const;
  /// Whether it is a name or a function without captures, so that it is the same in every call.
  bool captures_nothing() const { return captures_nothing_; }
  /// Whether `weight` tells how much a batch counts: not of a function that gives a LossSum.
  bool has_weight() const { return named_ || mean_; }
  /// Whether it gives sums: a name, or a function that gives a LossSum.
  bool gives_sums() const { return named_ || sum_; }
  /// The mean loss, rank 0 unless a function gave something else.
  Tensor operator()(const Tensor& prediction, const Batch& batch) const;
  /// Throws ValueError unless it gives sums.
  LossSum sum(const Tensor& prediction, const Batch& batch) const;

 private:
  const detail::NamedLoss* named_ = nullptr;  ///< one of three: this, a function that gives a mean, one that gives sums
  std::function<Tensor(const Tensor&, const Batch&)> mean_;
  std::function<LossSum(const Tensor&, const Batch&)> sum_;
  bool captures_nothing_ = false;
};

/// What a step of a model gives: its loss, one float, and what metrics look at, where there are any.
struct StepOutput {
  Tensor loss;
  Tensor prediction{};
  /// Defined: `loss` is the sum of so many losses, one element, as LossSum has it. Undefined: `loss` is the mean.
  Tensor count{};
};
/// The forward pass of a model on a batch. `fit` differentiates the loss and updates the parameters.
using Forward = std::function<StepOutput(const Batch&)>;

}  // namespace ferrite::train
