/// Mel bands of spectra as a layer.
#include "ferrite/nn/layers/mel.h"

#include <cmath>

#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

/// The options as a summary prints them.
struct MelFields {
  std::int64_t n_frequencies = 0, n_mels = 0;
  double sample_rate = 0, lowest = 0, highest = 0;
  Label scale = "htk";
  bool unit_area = false;
  double log_offset = 0;
  std::int64_t channels = 1;
  static constexpr auto fields = attr_list(
      attr("n_frequencies", &MelFields::n_frequencies), attr("n_mels", &MelFields::n_mels),
      attr("sample_rate", &MelFields::sample_rate), attr("lowest", &MelFields::lowest),
      attr("highest", &MelFields::highest), attr("scale", &MelFields::scale), attr("unit_area", &MelFields::unit_area),
      attr("log_offset", &MelFields::log_offset), attr("channels", &MelFields::channels));
};

}  // namespace

MelBands::MelBands(const MelBandsOptions& o, const Init& init) : LayerOf(o, init) {
  if (o.channels < 1) throw ValueError("mel_bands: there must be channels, got " + std::to_string(o.channels));
  if (!(o.log_offset >= 0 && std::isfinite(o.log_offset)))
    throw ValueError("mel_bands: log_offset must be finite and not negative, got " + Scalar(o.log_offset).str());
  fb = buffer(
      "fb",
      mel_filter_bank(
          o.n_frequencies, o.n_mels, o.sample_rate,
          {.lowest = o.lowest, .highest = o.highest, .scale = o.scale, .unit_area = o.unit_area, .dtype = init.dtype}));
}

std::string MelBands::summary() const {
  const MelBandsOptions& o = options();
  return detail::summary_of(name, {},
                            Attrs(MelFields{o.n_frequencies, o.n_mels, o.sample_rate, o.lowest, o.highest,
                                            o.scale == MelScale::htk ? Label("htk") : Label("slaney"), o.unit_area,
                                            o.log_offset, o.channels}),
                            Attrs(MelFields{}));
}

Tensor MelBands::forward(const Tensor& x, const Context&) const {
  const MelBandsOptions& o = options();
  if (x.rank() < 1 || x.shape()[-1] != o.channels * o.n_frequencies)
    throw ShapeError("mel_bands: expects " + std::to_string(o.channels) + " times " + std::to_string(o.n_frequencies) +
                     " frequencies, got " + x.shape().str());
  if (x.dtype() != fb.dtype())
    throw DtypeError("mel_bands: the filters are " + std::string(name_of(fb.dtype())) + ", got " + x.spec().str() +
                     "; cast the input");
  Shape split = x.shape(), joined = x.shape();
  split[split.rank() - 1] = o.channels;
  split.push_back(o.n_frequencies);
  joined[joined.rank() - 1] = o.channels * o.n_mels;
  const Tensor y = reshape(matmul(reshape(x, split), fb), joined);
  return o.log_offset > 0 ? log(y + o.log_offset) : y;
}

template class LayerOf<MelBands, MelBandsOptions>;

}  // namespace ferrite::nn
