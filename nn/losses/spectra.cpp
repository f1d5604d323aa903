/// Losses of audio signals by their spectrograms.
#include <limits>

#include "ferrite/nn/losses/audio.h"
#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/signal.h"

namespace ferrite::nn {
namespace {

/// Signals in rows [N, T].
Tensor in_rows(const Tensor& x, int axis) {
  const std::int64_t T = x.shape()[axis];
  Shape order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return reshape(permute(x, order), {T == 0 ? 0 : x.numel() / T, T});
}

Tensor magnitudes(const Tensor& rows, const StftResolution& r, double epsilon) {
  const Tensor window = hann_window(r.win_length, {.dtype = rows.dtype()});
  const Tensor s = stft(rows, r.n_fft, window, {.hop_length = r.hop_length, .win_length = r.win_length});
  return sqrt(clamp(sum(square(s), {-1}), epsilon, std::numeric_limits<double>::infinity()));
}

}  // namespace

Tensor multi_resolution_stft_loss(const Tensor& prediction, const Tensor& target,
                                  const StftLossParameters& parameters) {
  constexpr std::string_view where = "multi_resolution_stft_loss";
  const StftLossParameters& p = parameters;
  if (p.resolutions.empty()) throw ValueError(std::string(where) + ": no resolutions are given");
  for (const StftResolution& r : p.resolutions)
    if (r.n_fft < 1 || r.hop_length < 1 || r.win_length < 1)
      throw ValueError(std::string(where) + ": lengths of a resolution must be at least 1, got " +
                       Shape{r.n_fft, r.hop_length, r.win_length}.str());
  ferrite::detail::check_not_negative(std::string(where) + ": weights", {p.convergence, p.log_magnitude, p.magnitude});
  detail::check_positive(where, "epsilon", p.epsilon);
  detail::check_float(where, "the prediction", prediction);
  detail::check_same(where, prediction, target);
  const int axis = axis_of(p.axis, target.rank(), where);
  const Tensor x = in_rows(prediction, axis), y = in_rows(target, axis);
  Tensor total = zeros({}, target.dtype());
  for (const StftResolution& r : p.resolutions) {
    const Tensor a = magnitudes(x, r, p.epsilon), b = magnitudes(y, r, p.epsilon);
    if (p.convergence != 0) total = total + p.convergence * sqrt(sum(square(b - a)) / sum(square(b)));
    if (p.log_magnitude != 0) total = total + p.log_magnitude * mean(abs(log(a) - log(b)));
    if (p.magnitude != 0) total = total + p.magnitude * mean(abs(a - b));
  }
  return total / static_cast<double>(p.resolutions.size());
}

}  // namespace ferrite::nn
