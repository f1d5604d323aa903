/// Losses of audio signals.
#include "ferrite/nn/losses/audio.h"

#include "ferrite/nn/losses/detail/losses.h"
#include "ferrite/tensor/ops.h"

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

/// Error and target behind the filter.
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
      "sum of (target - prediction)^2 / (sum of target^2 + epsilon) over time, both behind x[t] - c x[t - 1]";
  static Tensor parts(Inputs in, const Attributes& a) {
    const Filtered x(in, a);
    return sum(square(x.error), {a.axis}) / (sum(square(x.target), {a.axis}) + a.epsilon);
  }
};

struct DcLoss {
  using Attributes = AudioLossAttrs;
  static constexpr auto name = "dc_loss", onnx = "";
  static constexpr auto summary =
      "(mean of target - prediction)^2 / (mean of target^2 + epsilon) over time, both behind x[t] - c x[t - 1]";
  /// A third operand: how many steps count, [B, 1, ...].
  static Tensor parts(Inputs in, const Attributes& a) {
    const Filtered x(in, a);
    const Tensor error = sum(x.error, {a.axis}), power = sum(square(x.target), {a.axis});
    if (in.size() > 2) return square(error / in[2]) / (power / in[2] + a.epsilon);
    const auto T = static_cast<double>(in[0].shape()[a.axis]);
    return square(error / T) / (power / T + a.epsilon);
  }
};

/// Signals with what lies beyond their lengths as 0.
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
  /// Which losses count; signals of others reach no gradient.
  Counted counted_losses(std::string_view where) {
    const Counted all = counted(where, {shape, x.dtype()}, losses);
    const Counted every = all.with_axis(attrs.axis);
    x = without(every, x), y = without(every, y);
    return all;
  }

  Tensor x, y, counts;
  LossOptions losses;
  AudioLossAttrs attrs{};
  Shape shape;  ///< of the losses
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

}  // namespace ferrite::nn
