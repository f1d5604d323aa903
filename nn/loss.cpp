/// Losses, composed of operations, and accuracy.
#include "ferrite/nn/loss.h"

#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(losses);
    case Reduction::sum: return sum(losses);
    case Reduction::none: break;
  }
  return losses;
}

void check_same(const char* where, const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape())
    throw ShapeError(std::string(where) + ": shapes differ: " + a.shape().str() + " and " + b.shape().str());
}

void check_classes(const char* where, const Tensor& logits, const Tensor& targets) {
  if (!is_integer(targets.dtype()))
    throw DtypeError(std::string(where) + ": targets must be i64 or i32, got " + targets.spec().str());
  if (logits.rank() != 2 || targets.rank() != 1 || logits.shape()[0] != targets.shape()[0])
    throw ShapeError(std::string(where) + ": expects logits [B, C] and targets [B], got " + logits.shape().str() +
                     " and " + targets.shape().str());
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction) {
  check_classes("cross_entropy", logits, targets);
  const Tensor picked = gather(log_softmax(logits, 1), 1, unsqueeze(targets, 1), {"cross_entropy: target"});
  return reduced(-squeeze(picked, 1), reduction);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_same("mse_loss", prediction, target);
  return reduced(square(prediction - target), reduction);
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_same("l1_loss", prediction, target);
  return reduced(abs(prediction - target), reduction);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
  check_same("bce_with_logits", logits, target);
  return reduced(target * softplus(-logits) + (1 - target) * softplus(logits), reduction);
}

double accuracy(const Tensor& logits, const Tensor& targets) {
  check_classes("accuracy", logits, targets);
  const NewFrame frame;
  const Tensor classes = checked(cast(targets, Dtype::i64), 0, logits.shape()[1] - 1, {"accuracy: target"});
  return mean(cast(eq(argmax(logits, 1), classes), Dtype::f64)).item<double>();
}

}  // namespace ferrite::nn
