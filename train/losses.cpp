/// Losses by name.
#include <array>

#include "ferrite/io/suggest.h"
#include "ferrite/nn/loss.h"
#include "ferrite/train/fit.h"

namespace ferrite::train {
namespace {

/// Whether a prediction has one score for each element of the target and a last axis of 1 that the target lacks.
Tensor like_target(const Tensor& prediction, const Tensor& target) {
  const Shape &p = prediction.shape(), &t = target.shape();
  const bool one = p.rank() == t.rank() + 1 && p[-1] == 1 && p.numel() == t.numel();
  return one ? reshape(prediction, t) : prediction;
}

/// Targets of a float loss, which may be classes 0 and 1.
Tensor as_numbers(const Tensor& target, Dtype dtype) { return target.dtype() == dtype ? target : cast(target, dtype); }

Tensor cross_entropy_of(const Tensor& logits, const Batch& b) {
  // Classes come last, but for images [B, C, H, W] whose targets are [B, H, W].
  const bool last = logits.rank() != 4 || b.y().rank() != 3;
  return nn::cross_entropy(logits, b.y(), {.classes_last = last && logits.rank() > 2, .lengths = b.target_lengths()});
}

template <class F>
Tensor of_numbers(const Tensor& prediction, const Batch& b, F loss) {
  return loss(like_target(prediction, b.y()), as_numbers(b.y(), prediction.dtype()),
              nn::LossOptions{.lengths = b.target_lengths()});
}

struct Entry {
  std::string_view name;
  Tensor (*loss)(const Tensor&, const Batch&);
};

constexpr std::array<Entry, 6> kLosses{
    {{"cross_entropy", cross_entropy_of},
     {"bce_with_logits",
      [](const Tensor& p, const Batch& b) {
        return of_numbers(p, b, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) {
          return nn::bce_with_logits(x, y, nn::BceParameters{}, o);
        });
      }},
     {"mse",
      [](const Tensor& p, const Batch& b) {
        return of_numbers(
            p, b, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) { return nn::mse_loss(x, y, o); });
      }},
     {"l1",
      [](const Tensor& p, const Batch& b) {
        return of_numbers(
            p, b, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) { return nn::l1_loss(x, y, o); });
      }},
     {"huber",
      [](const Tensor& p, const Batch& b) {
        return of_numbers(p, b, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) {
          return nn::huber_loss(x, y, 1, o);
        });
      }},
     {"smooth_l1", [](const Tensor& p, const Batch& b) {
        return of_numbers(p, b, [](const Tensor& x, const Tensor& y, const nn::LossOptions& o) {
          return nn::smooth_l1_loss(x, y, 1, o);
        });
      }}}};

}  // namespace

Loss::Loss(std::string_view name) : captures_nothing_(true) {
  for (const Entry& e : kLosses)
    if (e.name == name) f_ = e.loss;
  if (f_) return;
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

}  // namespace ferrite::train
