#pragma once
/// Sequences of tokens that a model writes: each token it draws is its next input.
#include <cstdint>
#include <optional>

#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/sampling.h"

namespace ferrite::nn {

struct GenerateOptions {
  std::int64_t length = 100;           ///< so many tokens at most
  std::optional<std::int64_t> stop{};  ///< the token that ends a sequence; it is not part of it
  SamplingOptions sampling{};          ///< temperature, top-k, top-p
  std::uint64_t seed = 0;              ///< equal seeds draw equal tokens
  std::uint64_t sequence = 0;          ///< which of several sequences of one seed: each has draws of its own
  std::uint64_t drawn = 0;             ///< how many tokens earlier calls have drawn, of a sequence that goes on
};

/// Gives the prompt, i64 [P], to a stream of one row whose model tells the logits of the next token, draws a token from
/// them (`sample_logits`), gives it to the stream, and so on: the tokens that were drawn, i64 [n]. The stream goes on
/// from where it stands, and its last token has not been given to it: a later call that begins with that token goes on,
/// with the draws of one long call where `drawn` counts the tokens so far. Token n of a call is drawn with
/// RandomKey{seed, sequence, drawn + n}.
///
///   nn::Stream stream = net.stream();
///   const Tensor name = nn::generate(stream, Tensor::from<std::int64_t>({kBegin}), {.length = 20, .stop = kEnd});
///
/// Throws ShapeError for a prompt of another rank or without tokens, DtypeError for one of another dtype, ValueError
/// for a stream of several rows, a model that does not tell what it gives before its first step, and a length below 0;
/// else as Stream::step and sample_logits.
Tensor generate(Stream& stream, const Tensor& prompt, const GenerateOptions& options = {});

}  // namespace ferrite::nn
