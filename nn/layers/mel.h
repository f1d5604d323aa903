#pragma once
/// Mel bands of spectra as a layer.
#include "ferrite/nn/layer_of.h"
#include "ferrite/tensor/mel.h"

namespace ferrite::nn {

/// Options of MelBands: numbers of frequencies and bands, their range in Hz, the mel scale, and the form of the result.
struct MelBandsOptions {
  std::int64_t n_frequencies = 0;  ///< F, frequencies of a channel, from 0 to sample_rate / 2; the builder infers it
  std::int64_t n_mels = 0;         ///< M, bands of each channel
  double sample_rate = 0;          ///< samples per second, in Hz
  double lowest = 0;               ///< lower end of the bands, in Hz
  double highest = 0;              ///< upper end of the bands, in Hz; 0: half the sample rate
  MelScale scale = MelScale::htk;  ///< formula of the mel scale
  bool unit_area = false;          ///< divides each triangle by half its width in Hz, so that its area is 1
  double log_offset = 0;           ///< if above 0, returns ln(y + log_offset) instead of y
  std::int64_t channels = 1;       ///< C; the frequencies of one channel follow those of another, as `Stft` gives them
};

/// Computes power in bands that are equally wide on the mel scale: x [..., C F] -> y [..., C M], y = x fb for each
/// channel, or ln(x fb + log_offset). As torchaudio.transforms.MelScale; the buffer `fb` [F, M] is that of
/// mel_filter_bank (tensor/mel.h), f32 or f64. Streams: a step depends on that step alone.
///
///   const auto features = dsl::sequence(1)
///                             .stft(400, {.hop_length = 160, .spectrum = nn::Spectrum::power, .center = false})
///                             .mel_bands(40, 16000, {.log_offset = 1e-6}).build(/*seed=*/0);
///
/// Throws ShapeError for another last extent, DtypeError unless x has the dtype of `fb`.
class MelBands final : public LayerOf<MelBands, MelBandsOptions> {
 public:
  static constexpr auto name = "mel_bands";
  /// Throws ValueError for counts below 1, a sample rate that is not positive, unless 0 <= lowest < highest, and for a
  /// log_offset that is negative or not finite.
  explicit MelBands(const MelBandsOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().channels * options().n_frequencies, fb.dtype()}; }

  Buffer fb;  ///< filter bank, [F, M]
};

extern template class LayerOf<MelBands, MelBandsOptions>;

}  // namespace ferrite::nn
