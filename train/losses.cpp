/// Losses by name.
#include <algorithm>
#include <array>

#include "ferrite/io/suggest.h"
#include "ferrite/nn/loss.h"
#include "ferrite/train/detail/mean.h"

namespace ferrite::train {
namespace {

const std::int64_t kIgnored = nn::ClassLossOptions{}.ignore_index;

/// Whether a prediction has one score for each element of the target and a last axis of 1 that the target lacks.
Tensor like_target(const Tensor& prediction, const Tensor& target) {
  const Shape &p = prediction.shape(), &t = target.shape();
  const bool one = p.rank() == t.rank() + 1 && p[-1] == 1 && p.numel() == t.numel();
  return one ? reshape(prediction, t) : prediction;
}

/// Targets of a float loss, which may be classes 0 and 1.
Tensor as_numbers(const Tensor& target, Dtype dtype) { return target.dtype() == dtype ? target : cast(target, dtype); }

/// How many losses of a shape count: those within the lengths, i64 [B], if defined, of losses [B, T, ...].
Tensor number_within(const Shape& losses, const Tensor& lengths) {
  if (!lengths.defined()) return full({}, static_cast<double>(losses.numel()), Dtype::f64);
  if (losses.rank() < 2) throw ShapeError("loss: lengths belong to losses [B, T, ...], got " + losses.str());
  const std::int64_t steps = losses[0] * losses[1];
  const double each = steps > 0 ? static_cast<double>(losses.numel() / steps) : 0;
  return sum(cast(nn::length_mask(lengths, losses[1]), Dtype::f64)) * each;
}

using Reduction = nn::Reduction;

Tensor cross_entropy_of(const Tensor& logits, const Batch& b, Reduction reduction) {
  // Classes come last, but for images [B, C, H, W] whose targets are [B, H, W].
  const bool last = logits.rank() != 4 || b.y().rank() != 3;
  return nn::cross_entropy(
      logits, b.y(),
      {.classes_last = last && logits.rank() > 2, .reduction = reduction, .lengths = b.target_lengths()});
}

/// Targets of class -100 do not count; targets that are probabilities have the shape of the logits.
Tensor number_of_classes(const Tensor& logits, const Batch& b) {
  const Tensor &target = b.y(), lengths = b.target_lengths();
  if (is_float(target.dtype())) {
    Shape losses = target.shape();
    losses.erase(losses.rank() > 2 ? losses.rank() - 1 : losses.rank() > 1 ? 1 : 0);
    return number_within(losses, lengths);
  }
  (void)logits;
  Tensor counts = ne(target, kIgnored);
  if (lengths.defined()) {
    if (target.rank() < 2) return number_within(target.shape(), lengths);  // throws
    Tensor within = nn::length_mask(lengths, target.shape()[1]);
    while (within.rank() < target.rank()) within = unsqueeze(within, -1);
    counts = counts && within;
  }
  return sum(cast(counts, Dtype::f64));
}

template <class F>
Tensor of_numbers(const Tensor& prediction, const Batch& b, Reduction reduction, F loss) {
  return loss(like_target(prediction, b.y()), as_numbers(b.y(), prediction.dtype()),
              nn::LossOptions{.reduction = reduction, .lengths = b.target_lengths()});
}
Tensor number_of_numbers(const Tensor&, const Batch& b) { return number_within(b.y().shape(), b.target_lengths()); }

struct Entry {
  std::string_view name;
  Tensor (*loss)(const Tensor&, const Batch&, Reduction);
  Tensor (*number)(const Tensor&, const Batch&) = number_of_numbers;
};

constexpr std::array<Entry, 6> kLosses{
    {{"cross_entropy", cross_entropy_of, number_of_classes},
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

/// Steps of a batch's targets within their lengths.
double steps_within(const Tensor& lengths, std::int64_t T) {
  double n = 0;
  for (const std::int64_t length : lengths.to_vector<std::int64_t>()) n += static_cast<double>(std::min(length, T));
  return n;
}

}  // namespace

double Loss::weight(const Batch& batch) const {
  if (!has_weight()) throw ValueError("loss: a function that gives a LossSum has a count in place of a weight");
  if (!named_ || batch.fields.size() < 2) return static_cast<double>(batch.size());
  const Tensor &y = batch.y(), lengths = batch.target_lengths();
  const std::int64_t rows = y.shape()[0], T = y.rank() > 1 ? y.shape()[1] : 1;
  const double units = lengths.defined() ? steps_within(lengths, T) : static_cast<double>(rows);
  if (!ignores_classes_ || !is_integer(y.dtype()) || y.numel() == 0) return units;
  // A unit may hold several targets, as an image does: what is ignored is a part of it.
  const std::int64_t of_row = y.numel() / rows, inner = lengths.defined() ? of_row / T : of_row;
  const std::vector<std::int64_t> classes = cast(y, Dtype::i64).to_vector<std::int64_t>();
  const std::vector<std::int64_t> of =
      lengths.defined() ? lengths.to_vector<std::int64_t>() : std::vector<std::int64_t>{};
  std::int64_t ignored = 0;
  for (std::int64_t i = 0; i < y.numel(); ++i)
    if (classes[static_cast<std::size_t>(i)] == kIgnored &&
        (of.empty() || i % of_row / inner < of[static_cast<std::size_t>(i / of_row)]))
      ++ignored;
  return units - static_cast<double>(ignored) / static_cast<double>(inner);
}

Loss::Loss(std::string_view name) : captures_nothing_(true) {
  named_ = true;
  ignores_classes_ = name == "cross_entropy";
  for (const Entry& e : kLosses) {
    if (e.name != name) continue;
    mean_ = [&e](const Tensor& p, const Batch& b) { return e.loss(p, b, Reduction::mean); };
    sum_ = [&e](const Tensor& p, const Batch& b) { return LossSum(e.loss(p, b, Reduction::sum), e.number(p, b)); };
    return;
  }
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

Tensor Loss::operator()(const Tensor& prediction, const Batch& batch) const {
  if (mean_) return mean_(prediction, batch);
  const LossSum s = sum_(prediction, batch);
  return detail::mean_of(s.sum, s.count);
}

LossSum Loss::sum(const Tensor& prediction, const Batch& batch) const {
  if (!sum_) throw ValueError("loss: this function gives a mean, not a LossSum");
  return sum_(prediction, batch);
}

namespace detail {

Tensor mean_of(const Tensor& sum, const Tensor& count) {
  for (const Tensor* t : {&sum, &count})
    if (!t->defined() || t->numel() != 1)
      throw ShapeError("loss: sum and count must hold one element, got " +
                       (t->defined() ? t->spec().str() : std::string("an undefined tensor")));
  return reshape(sum, {}) / cast(reshape(detach(count), {}), sum.dtype());
}

}  // namespace detail

}  // namespace ferrite::train
