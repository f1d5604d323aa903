/// Losses of audio signals: of their samples, and of their spectrograms.
#include "ferrite/nn/losses/audio.h"

#include <limits>

#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/signal.h"

// ---- samples -------------------------------------------------------------------------------------------

namespace ferrite::nn {
namespace detail {
namespace {

struct AudioLossAttrs {
  int axis = 1;
  double pre_emphasis = 0, epsilon = 1e-8;
  static constexpr auto fields =
      attr_list(attr("axis", &AudioLossAttrs::axis), attr("pre_emphasis", &AudioLossAttrs::pre_emphasis),
                attr("epsilon", &AudioLossAttrs::epsilon));
};

/// Error and target after the pre-emphasis filter.
struct Filtered {
  Filtered(Inputs in, const AudioLossAttrs& a) : error(filter(in[1] - in[0], a)), target(filter(in[1], a)) {}
  Tensor error, target;

 private:
  static Tensor filter(const Tensor& x, const AudioLossAttrs& a) {
    if (a.pre_emphasis == 0 || x.shape()[a.axis] == 0) return x;
    Shape before = Shape::filled(x.rank(), 0);
    before[a.axis] = 1;
    return x - a.pre_emphasis * pad(slice(x, a.axis, 0, -1), before, Shape::filled(x.rank(), 0));
  }
};

struct EsrLoss {
  using Attributes = AudioLossAttrs;
  static constexpr auto name = "esr_loss", onnx = "";
  static constexpr auto summary =
      "sum of (target - prediction)^2 / (sum of target^2 + epsilon) over time, both after the filter x[t] - c x[t - 1]";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Filtered x(in, a);
    return sum(square(x.error), {a.axis}) / (sum(square(x.target), {a.axis}) + a.epsilon);
  }
};

struct DcLoss {
  using Attributes = AudioLossAttrs;
  static constexpr auto name = "dc_loss", onnx = "";
  static constexpr auto summary =
      "(mean of target - prediction)^2 / (mean of target^2 + epsilon) over time, both after the filter x[t] - c x[t - "
      "1]";
  /// Takes an optional third operand: the number of steps that count, [B, 1, ...].
  static Tensor parts(Inputs in, const Attributes& a) {
    const Filtered x(in, a);
    const Tensor error = sum(x.error, {a.axis}), power = sum(square(x.target), {a.axis});
    if (in.size() > 2) return square(error / in[2]) / (power / in[2] + a.epsilon);
    const auto T = static_cast<double>(in[0].shape()[a.axis]);
    return square(error / T) / (power / T + a.epsilon);
  }
};

/// Signals in which samples beyond their lengths are 0.
struct Signals {
  Signals(std::string_view where, const Tensor& prediction, const Tensor& target, const AudioLossParameters& p,
          const LossOptions& options)
      : x(prediction), y(target), losses(options) {
    check_finite(where, "pre_emphasis", p.pre_emphasis);
    check_not_negative(std::string(where) + ": epsilon", {p.epsilon});
    check_float(where, "the prediction", prediction);
    check_same(where, prediction, target);
    if (target.rank() == 0) throw_shape(where, "expects signals [..., T, ...], got []");
    const int axis = axis_of(p.axis, target.rank(), where);
    attrs = {axis, p.pre_emphasis, p.epsilon};
    shape = target.shape();
    shape.erase(axis);
    if (!options.lengths.defined()) return;
    if (axis != 1) throw_shape(where, "lengths need time as axis 1, got axis " + std::to_string(axis));
    const Tensor within = counted(where, target.spec(), {.lengths = options.lengths}).valid;
    x = ferrite::where(within, x, 0.0), y = ferrite::where(within, y, 0.0);
    Shape rows = Shape::filled(shape.rank(), 1);
    rows[0] = -1;
    counts = reshape(cast(maximum(options.lengths, 1), target.dtype()), rows);
    losses.lengths = Tensor();
  }
  /// Returns the losses that count, and replaces the other signals, so that they reach no gradient.
  Counted counted_losses(std::string_view where) {
    const Counted all = counted(where, {shape, x.dtype()}, losses);
    const Counted every = all.with_axis(attrs.axis);
    x = without(every, x), y = without(every, y);
    return all;
  }

  Tensor x, y, counts;
  LossOptions losses;
  AudioLossAttrs attrs{};
  Shape shape;  ///< shape of the losses
};

}  // namespace

Records audio_records() {
  static constexpr const Primitive* list[] = {&composite<EsrLoss>, &composite<DcLoss>};
  return list;
}

}  // namespace detail

Tensor esr_loss(const Tensor& prediction, const Tensor& target, const AudioLossParameters& parameters,
                const LossOptions& options) {
  detail::Signals s("esr_loss", prediction, target, parameters, options);
  const detail::Counted counts = s.counted_losses("esr_loss");
  return detail::reduced(detail::composed<detail::EsrLoss>({{&s.x, &s.y}}, s.attrs), counts, s.losses);
}

Tensor dc_loss(const Tensor& prediction, const Tensor& target, const AudioLossParameters& parameters,
               const LossOptions& options) {
  detail::Signals s("dc_loss", prediction, target, parameters, options);
  const detail::Counted counts = s.counted_losses("dc_loss");
  const Tensor losses = s.counts.defined() ? detail::composed<detail::DcLoss>({{&s.x, &s.y, &s.counts}}, s.attrs)
                                           : detail::composed<detail::DcLoss>({{&s.x, &s.y}}, s.attrs);
  return detail::reduced(losses, counts, s.losses);
}

// ---- spectrograms --------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kWhere = "multi_resolution_stft_loss";

/// Returns signals as rows [N, T].
Tensor in_rows(const Tensor& x, int axis) {
  const std::int64_t T = x.shape()[axis];
  Shape order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return reshape(permute(x, order), {T == 0 ? 0 : x.numel() / T, T});
}

/// Signals as rows [N, T], and their lengths [N], or undefined.
struct Rows {
  Tensor prediction, target, lengths;
};

/// Returns signals as rows, with 0 beyond their lengths. Throws ShapeError unless lengths [B] fit signals with time as
/// axis 1.
Rows with_lengths(const Tensor& prediction, const Tensor& target, int axis, const Tensor& lengths) {
  if (!lengths.defined()) return {in_rows(prediction, axis), in_rows(target, axis), {}};
  if (axis != 1) detail::throw_shape(kWhere, "lengths need time as axis 1, got axis " + std::to_string(axis));
  const Tensor within = detail::counted(kWhere, target.spec(), {.lengths = lengths}).valid;
  const Tensor x = in_rows(ferrite::where(within, prediction, 0.0), axis),
               y = in_rows(ferrite::where(within, target, 0.0), axis);
  const std::int64_t B = lengths.shape()[0], inner = B == 0 ? 0 : x.shape()[0] / B;
  return {x, y, reshape(expand(unsqueeze(lengths, 1), {B, inner}), {B * inner})};
}

/// Returns signals with reflections at 0 and at their own ends, [N, T + 2 side]; values further on are not used.
Tensor reflected(const Tensor& rows, const Tensor& lengths, std::int64_t side) {
  const std::int64_t N = rows.shape()[0], T = rows.shape()[1];
  if (T <= side)
    detail::throw_shape(kWhere,
                        "signals of " + std::to_string(T) + " samples have no reflection of " + std::to_string(side));
  const Tensor own = where(eq(lengths, 0), T, lengths);  // computed in full, and ignored later
  const Tensor ends = unsqueeze(checked(own, side + 1, T, {"multi_resolution_stft_loss: length"}), 1);
  const Tensor at = abs(arange(-side, T + side, 1, Dtype::i64));
  const Tensor back = where(lt(at, ends), at, 2 * (ends - 1) - at);
  return gather(rows, 1, expand(clamp(back, 0, T - 1), {N, T + 2 * side}));
}

/// Returns the magnitudes of the short-time Fourier transform, [N, F, frames].
Tensor magnitudes(const Tensor& rows, const Tensor& lengths, const StftResolution& r, double epsilon) {
  const Tensor window = hann_window(r.win_length, {.dtype = rows.dtype()});
  const bool own_ends = lengths.defined();
  const Tensor s = stft(own_ends ? reflected(rows, lengths, r.n_fft / 2) : rows, r.n_fft, window,
                        {.hop_length = r.hop_length, .win_length = r.win_length, .center = !own_ends});
  return sqrt(clamp(sum(square(s), {-1}), epsilon, std::numeric_limits<double>::infinity()));
}

/// Computes sums and means over the frames that count.
class Frames {
 public:
  /// Finds the frames that count among magnitudes of the given shape.
  Frames(const Tensor& lengths, const Shape& shape, const StftResolution& r) {
    if (!lengths.defined()) return;
    const Tensor frames =
        where(gt(lengths, 0), 1 + floor_divide(lengths + (r.n_fft / 2 * 2 - r.n_fft), r.hop_length), 0);
    counts_ = expand(unsqueeze(length_mask(frames, shape[2]), 1), shape);
  }
  Tensor sum(const Tensor& x) const { return ferrite::sum(counted(x)); }
  Tensor mean(const Tensor& x) const {
    return counts_.defined() ? sum(x) / ferrite::sum(cast(counts_, x.dtype())) : ferrite::mean(x);
  }

 private:
  Tensor counted(const Tensor& x) const { return counts_.defined() ? where(counts_, x, 0.0) : x; }

  Tensor counts_;
};

}  // namespace

Tensor multi_resolution_stft_loss(const Tensor& prediction, const Tensor& target,
                                  const StftLossParameters& parameters) {
  const StftLossParameters& p = parameters;
  if (p.resolutions.empty()) throw ValueError(std::string(kWhere) + ": no resolutions are given");
  for (const StftResolution& r : p.resolutions)
    if (r.n_fft < 1 || r.hop_length < 1 || r.win_length < 1)
      throw ValueError(std::string(kWhere) + ": lengths of a resolution must be at least 1, got " +
                       Shape{r.n_fft, r.hop_length, r.win_length}.str());
  ferrite::detail::check_not_negative(std::string(kWhere) + ": weights", {p.convergence, p.log_magnitude, p.magnitude});
  detail::check_positive(kWhere, "epsilon", p.epsilon);
  detail::check_float(kWhere, "the prediction", prediction);
  detail::check_same(kWhere, prediction, target);
  const int axis = axis_of(p.axis, target.rank(), kWhere);
  const Rows rows = with_lengths(prediction, target, axis, p.lengths);
  Tensor total = zeros({}, target.dtype());
  for (const StftResolution& r : p.resolutions) {
    const Tensor a = magnitudes(rows.prediction, rows.lengths, r, p.epsilon),
                 b = magnitudes(rows.target, rows.lengths, r, p.epsilon);
    const Frames frames(rows.lengths, a.shape(), r);
    if (p.convergence != 0) total = total + p.convergence * sqrt(frames.sum(square(b - a)) / frames.sum(square(b)));
    if (p.log_magnitude != 0) total = total + p.log_magnitude * frames.mean(abs(log(a) - log(b)));
    if (p.magnitude != 0) total = total + p.magnitude * frames.mean(abs(a - b));
  }
  return total / static_cast<double>(p.resolutions.size());
}

}  // namespace ferrite::nn
