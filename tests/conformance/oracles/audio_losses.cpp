// Oracles and samples of nn/losses/audio.cpp.
#include <utility>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops.h"

namespace oracles::audio_losses {
namespace {

struct AudioLossAttrs {
  int axis = 1;
  double pre_emphasis = 0, epsilon = 1e-8;
  static constexpr auto fields =
      attr_list(attr("axis", &AudioLossAttrs::axis), attr("pre_emphasis", &AudioLossAttrs::pre_emphasis),
                attr("epsilon", &AudioLossAttrs::epsilon));
};

/// Walks over signals [outer, time, inner] in loops: calls f(sum of errors, of their squares, of squares of the target,
/// T).
template <class F>
void each_signal(std::span<const Dense> in, Dense& out, const AudioLossAttrs& a, F&& f) {
  const std::int64_t T = in[0].shape[a.axis];
  for_each_index(out.shape, [&](const Shape& i) {
    Shape at = i;
    at.insert(a.axis, 0);
    double total = 0, squares = 0, power = 0, last_error = 0, last = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      at[a.axis] = t;
      const double error = in[1].at(at) - in[0].at(at), target = in[1].at(at);
      const double e = error - a.pre_emphasis * last_error, y = target - a.pre_emphasis * last;
      total += e, squares += e * e, power += y * y;
      last_error = error, last = target;
    }
    out.at(i) = f(total, squares, power, static_cast<double>(T));
  });
}

std::vector<Sample> audio_samples() {
  std::vector<Sample> list;
  for (const auto& [shape, axis] :
       {std::pair{Shape{2, 7}, 1}, {Shape{2, 5, 2}, 1}, {Shape{2, 2, 6}, 2}, {Shape{4}, 0}, {Shape{0, 3}, 1}})
    for (const double emphasis : {0.0, 0.85})
      list.push_back({.inputs = {{shape}, {shape}}, .attrs = AudioLossAttrs{axis, emphasis, 0.5}, .range = {-1, 1}});
  return list;
}

struct EsrLoss {
  using Attributes = AudioLossAttrs;
  static constexpr auto name = "esr_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_signal(in, out[0], a,
                [&](double, double squares, double power, double) { return squares / (power + a.epsilon); });
  }
  static std::vector<Sample> samples() { return audio_samples(); }
};

struct DcLoss {
  using Attributes = AudioLossAttrs;
  static constexpr auto name = "dc_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_signal(in, out[0], a, [&](double total, double, double power, double T) {
      return total / T * (total / T) / (power / T + a.epsilon);
    });
  }
  static std::vector<Sample> samples() { return audio_samples(); }
};

const Added added = add<EsrLoss, DcLoss>();

}  // namespace
}  // namespace oracles::audio_losses
