/// Losses by name, and the weights and sums of losses.
#include <algorithm>
#include <array>
#include <limits>

#include "ferrite/io/suggest.h"
#include "ferrite/nn/loss.h"
#include "ferrite/train/detail/train_step.h"

namespace ferrite::train {
namespace {

const std::int64_t kIgnored = nn::ClassLossOptions{}.ignore_index;

/// Returns a prediction in the shape of the target, without a last axis of 1 that the target lacks.
Tensor like_target(const Tensor& prediction, const Tensor& target) {
  const Shape &p = prediction.shape(), &t = target.shape();
  const bool one = p.rank() == t.rank() + 1 && p[-1] == 1 && p.numel() == t.numel();
  return one ? reshape(prediction, t) : prediction;
}

/// Returns the targets of a float loss, which may be classes 0 and 1, in the dtype of the prediction.
Tensor as_numbers(const Tensor& target, Dtype dtype) { return target.dtype() == dtype ? target : cast(target, dtype); }

/// Returns the number of losses that count: all, or those of losses [B, T, ...] within the lengths, i64 [B].
Tensor number_within(const Shape& losses, const Tensor& lengths) {
  if (!lengths.defined()) return full({}, static_cast<double>(losses.numel()), Dtype::f64);
  if (losses.rank() < 2) throw ShapeError("loss: lengths belong to losses [B, T, ...], got " + losses.str());
  const std::int64_t steps = losses[0] * losses[1];
  const double each = steps > 0 ? static_cast<double>(losses.numel() / steps) : 0;
  return sum(cast(nn::length_mask(lengths, losses[1]), Dtype::f64)) * each;
}

using Reduction = nn::Reduction;

/// The axis of the classes in logits: with three axes or more both the second and the last may fit the targets.
enum class Classes : std::uint8_t { only, second, last };

template <Classes classes>
Tensor cross_entropy_of(const Tensor& logits, const Batch& b, Reduction reduction) {
  if (classes == Classes::only && logits.rank() > 2)
    throw ValueError("loss: 'cross_entropy' takes logits [B, C], got " + logits.shape().str() +
                     "; name it 'cross_entropy_classes_last' for [B, ..., C], as sequences have them, or "
                     "'cross_entropy_classes_second' for [B, C, ...], as images have them");
  return nn::cross_entropy(
      logits, b.y(), {.classes_last = classes == Classes::last, .reduction = reduction, .lengths = b.target_lengths()});
}

template <class F>
Tensor of_numbers(const Tensor& prediction, const Batch& b, Reduction reduction, F loss) {
  return loss(like_target(prediction, b.y()), as_numbers(b.y(), prediction.dtype()),
              nn::LossOptions{.reduction = reduction, .lengths = b.target_lengths()});
}

}  // namespace

struct detail::NamedLoss {
  std::string_view name;
  Tensor (*loss)(const Tensor& prediction, const Batch& batch, Reduction reduction);
  bool of_classes = false;
  bool classes_second = false;

  /// Returns the shape of the losses of a batch; targets that are probabilities of classes have an axis more.
  Shape losses(const Batch& batch) const {
    Shape shape = batch.y().shape();
    if (of_classes && is_float(batch.y().dtype()))
      shape.erase(classes_second && shape.rank() > 1 ? 1 : shape.rank() - 1);
    return shape;
  }
  /// Returns the number of losses that count, f64: those within the lengths whose class is not ignored.
  Tensor number(const Batch& batch) const {
    const Tensor &target = batch.y(), lengths = batch.target_lengths();
    if (!of_classes || is_float(target.dtype()) || (lengths.defined() && target.rank() < 2))
      return number_within(losses(batch), lengths);
    Tensor counts = ne(target, kIgnored);
    if (lengths.defined()) {
      Tensor within = nn::length_mask(lengths, target.shape()[1]);
      while (within.rank() < target.rank()) within = unsqueeze(within, -1);
      counts = counts && within;
    }
    return sum(cast(counts, Dtype::f64));
  }
};

namespace {

constexpr std::array<detail::NamedLoss, 8> kLosses{
    {{"cross_entropy", cross_entropy_of<Classes::only>, true},
     {"cross_entropy_classes_last", cross_entropy_of<Classes::last>, true},
     {"cross_entropy_classes_second", cross_entropy_of<Classes::second>, true, true},
     {"bce_with_logits",
      [](const Tensor& p, const Batch& b, Reduction r) {
        return of_numbers(p, b, r, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) {
          return nn::bce_with_logits(x, y, nn::BceParameters{}, o);
        });
      }},
     {"mse",
      [](const Tensor& p, const Batch& b, Reduction r) {
        return of_numbers(
            p, b, r, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) { return nn::mse_loss(x, y, o); });
      }},
     {"l1",
      [](const Tensor& p, const Batch& b, Reduction r) {
        return of_numbers(
            p, b, r, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) { return nn::l1_loss(x, y, o); });
      }},
     {"huber",
      [](const Tensor& p, const Batch& b, Reduction r) {
        return of_numbers(p, b, r, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) {
          return nn::huber_loss(x, y, 1, o);
        });
      }},
     {"smooth_l1", [](const Tensor& p, const Batch& b, Reduction r) {
        return of_numbers(p, b, r, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) {
          return nn::smooth_l1_loss(x, y, 1, o);
        });
      }}}};

}  // namespace

Loss::Loss(std::string_view name) : captures_nothing_(true) {
  for (const detail::NamedLoss& l : kLosses)
    if (l.name == name) named_ = &l;
  if (named_) return;
  std::array<std::string_view, kLosses.size()> names{};
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = kLosses[i].name;
    list += (i ? ", " : "") + std::string(names[i]);
  }
  const std::string_view near = io::detail::nearest(name, names);
  throw ValueError("loss: there is no '" + std::string(name) + "'; " +
                   (near.empty() ? "there are " + list : "did you mean '" + std::string(near) + "'?"));
}

std::string Loss::name() const { return named_ ? std::string(named_->name) : defined() ? "a function" : "none"; }

double Loss::weight(const Batch& batch) const {
  if (!has_weight()) throw ValueError("loss: a function that gives a LossSum has a count in place of a weight");
  if (!named_ || batch.fields.size() < 2) return static_cast<double>(batch.size());
  // A unit, as an image, may hold several losses: if some of them do not count, only a part of the unit counts.
  const Shape losses = named_->losses(batch);
  const std::int64_t units = batch.target_lengths().defined() ? losses[0] * losses[1] : losses[0];
  return named_->number(batch).item<double>() * static_cast<double>(units) / static_cast<double>(losses.numel());
}

Tensor Loss::operator()(const Tensor& prediction, const Batch& batch) const {
  if (named_) return named_->loss(prediction, batch, Reduction::mean);
  if (mean_) return mean_(prediction, batch);
  const LossSum s = sum_(prediction, batch);
  return detail::mean_of(s.sum, s.count);
}

LossSum Loss::sum(const Tensor& prediction, const Batch& batch) const {
  if (named_) return {named_->loss(prediction, batch, Reduction::sum), named_->number(batch)};
  if (!sum_) throw ValueError("loss: this function gives a mean, not a LossSum");
  return sum_(prediction, batch);
}

namespace detail {

Tensor mean_of(const Tensor& sum, const Tensor& count) {
  for (const Tensor* t : {&sum, &count})
    if (!t->defined() || t->numel() != 1)
      throw ShapeError("loss: sum and count must hold one element, got " +
                       (t->defined() ? t->spec().str() : std::string("an undefined tensor")));
  const Tensor number = checked(cast(reshape(detach(count), {}), Dtype::f64), 0.0, std::numeric_limits<double>::max(),
                                "loss: the count of losses");
  return reshape(sum, {}) / cast(number, sum.dtype());
}

}  // namespace detail

}  // namespace ferrite::train
