#pragma once
/// Constants of spectral features: triangles on the mel scale and cosines, to be multiplied with spectrograms.
/// Semantics are those of torchaudio.functional.melscale_fbanks and create_dct; docs/signal.md computes MFCCs with
/// them.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The formula of the mel scale. `htk`: 2595 log10(1 + f / 700). `slaney`: linear up to 1000 Hz, 15 mel there,
/// logarithmic above (Auditory Toolbox).
enum class MelScale : std::uint8_t { htk, slaney };

/// Options of `mel_filter_bank`: the range of frequencies, the mel scale and the height of the triangles.
struct MelOptions {
  double lowest = 0;   ///< lowest frequency, in Hz
  double highest = 0;  ///< highest frequency, in Hz; 0: half the sample rate
  MelScale scale = MelScale::htk;
  bool unit_area = false;  ///< divides each triangle by half its width in Hz, so its area is 1; else its peak is 1
  Dtype dtype = Dtype::f32;
};

/// Returns triangles whose corners are equally spaced on the mel scale [n_frequencies, n_mels]: column m rises from 0
/// to 1 and falls to 0 again. Frequencies are those of rfft, 0..sample_rate / 2; powers [..., T, F] times this matrix
/// are powers in mel bands. Throws ValueError for counts below 1, a sample rate that is not positive, and unless 0 <=
/// lowest < highest; DtypeError for a dtype that is not a float.
Tensor mel_filter_bank(std::int64_t n_frequencies, std::int64_t n_mels, double sample_rate,
                       const MelOptions& options = {});

/// Returns the first `count` basis vectors of the discrete cosine transform II of n numbers [n, count]: cos(pi (i +
/// 1/2) k / n) times sqrt(2 / n), and sqrt(1 / n) for k = 0, so that columns are orthonormal; without `orthonormal` the
/// cosines times 2. Throws ValueError for n < 1 and unless 1 <= count <= n; DtypeError for a dtype that is not a float.
Tensor cosine_basis(std::int64_t n, std::int64_t count, bool orthonormal = true, Dtype dtype = Dtype::f32);

}  // namespace ferrite
