/// Generation of tokens: steps of a stream and draws, in turn.
#include "ferrite/nn/stream/generate.h"

#include <vector>

namespace ferrite::nn {
namespace {

template <class T>
Tensor written_by(Stream& stream, const std::vector<std::int64_t>& prompt, const GenerateOptions& o) {
  const std::int64_t C = stream.result().width;
  std::vector<T> logits(static_cast<std::size_t>(C));
  std::vector<std::int64_t> written;
  for (const std::int64_t token : prompt) stream.step(std::span(&token, 1), std::span<T>(logits));
  while (std::ssize(written) < o.length) {
    if (!written.empty()) stream.step(std::span<const std::int64_t>(&written.back(), 1), std::span<T>(logits));
    const RandomKey key{o.seed, o.sequence, o.drawn + written.size()};
    const Tensor drawn = sample_logits(Tensor::from(logits), key, o.sampling);
    const auto token = drawn.item<std::int64_t>();
    if (token == o.stop) break;
    written.push_back(token);
  }
  return Tensor::from(written);
}

}  // namespace

Tensor generate(Stream& stream, const Tensor& prompt, const GenerateOptions& o) {
  if (prompt.dtype() != Dtype::i64) throw DtypeError("generate: the prompt must be i64, got " + prompt.spec().str());
  if (prompt.rank() != 1 || prompt.numel() == 0)
    throw ShapeError("generate: the prompt must be [P] with at least one token, got " + prompt.shape().str());
  if (o.length < 0) throw ValueError("generate: length must be at least 0, got " + std::to_string(o.length));
  if (stream.batch() != 1)
    throw ValueError("generate: the stream must have one row, it has " + std::to_string(stream.batch()));
  const StepRows result = stream.result();
  if (result.width == 0)
    throw ValueError("generate: the model does not say what it gives before its first step; make one");
  const std::vector<std::int64_t> tokens = prompt.to_vector<std::int64_t>();
  return result.dtype == Dtype::f64 ? written_by<double>(stream, tokens, o) : written_by<float>(stream, tokens, o);
}

}  // namespace ferrite::nn
