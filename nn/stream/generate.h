#pragma once
/// Generation of token sequences with a model: each token that is drawn is its next input.
#include <cstdint>
#include <optional>

#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/sampling.h"

namespace ferrite::nn {

/// Options of `generate`: how many tokens, how each is drawn, and from which random numbers.
struct GenerateOptions {
  std::int64_t length = 100;           ///< maximum number of tokens
  std::optional<std::int64_t> stop{};  ///< the token that ends a sequence; it is not part of the result
  SamplingOptions sampling{};          ///< options of the draws: temperature, top-k, top-p
  std::uint64_t seed = 0;              ///< equal seeds draw equal tokens
  std::uint64_t sequence = 0;          ///< number of the sequence among those of one seed; each has different draws
  std::uint64_t drawn = 0;             ///< number of tokens that earlier calls have drawn, to continue a sequence
};

/// Generates tokens with a stream of one row whose model predicts the logits of the next token: feeds it the prompt,
/// i64 [P], draws a token from the logits (`sample_logits`), feeds it that token, and so on. Returns the tokens drawn,
/// i64 [n]. The stream continues from its present state, and the last token has not been fed to it: a later call whose
/// prompt is that token continues the sequence, with the draws of one long call if `drawn` counts the tokens so far.
/// Token n of a call is drawn with RandomKey{seed, sequence, drawn + n}.
///
///   nn::Stream stream = net.stream();
///   const Tensor name = nn::generate(stream, Tensor::from<std::int64_t>({kBegin}), {.length = 20, .stop = kEnd});
///
/// Throws ShapeError for a prompt of another rank or without tokens, DtypeError for one of another dtype, ValueError
/// for a stream of several rows, a model that does not know its result's width before its first step, and a length
/// below 0; also whatever Stream::step and sample_logits throw.
Tensor generate(Stream& stream, const Tensor& prompt, const GenerateOptions& options = {});

}  // namespace ferrite::nn
