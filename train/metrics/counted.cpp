/// Elements of a batch that metrics count.
#include "ferrite/train/detail/counted.h"

namespace ferrite::train::detail {
namespace {

std::string shapes(const Tensor& prediction, const Tensor& target) {
  return prediction.spec().str() + " and " + target.spec().str();
}

}  // namespace

std::vector<bool> within_lengths(const Batch& batch) {
  const Tensor& y = batch.y();
  std::vector<bool> count(static_cast<std::size_t>(y.numel()), true);
  const Tensor lengths = batch.target_lengths();
  if (!lengths.defined() || y.numel() == 0) return count;
  const std::int64_t T = y.shape()[1], inner = y.numel() / y.shape()[0] / T;
  const std::vector<std::int64_t> of = lengths.to_vector<std::int64_t>();
  std::size_t at = 0;
  for (const std::int64_t length : of)
    for (std::int64_t t = 0; t < T; ++t)
      for (std::int64_t i = 0; i < inner; ++i) count[at++] = t < length;
  return count;
}

bool is_score(const Tensor& prediction, const Batch& batch) {
  const Shape &p = prediction.shape(), &y = batch.y().shape();
  if (p == y) return true;
  return p.rank() == y.rank() + 1 && p[-1] == 1 && p.numel() == y.numel();
}

Targets targets_of(const char* who, const Tensor& prediction, const Batch& batch, std::int64_t ignore_index,
                   bool scores) {
  const Tensor& y = batch.y();
  const bool score = scores && is_score(prediction, batch);
  if (y.dtype() != Dtype::boolean && !is_integer(y.dtype()) && !score)
    throw DtypeError(std::string(who) + ": targets must be integers, got " + y.spec().str());
  std::int64_t C = 2;
  if (!score) {
    Shape wanted = y.shape();
    const bool classes = prediction.rank() == y.rank() + 1;
    if (classes) wanted.push_back(C = prediction.shape()[-1]);
    if (!classes || prediction.shape() != wanted)
      throw ShapeError(std::string(who) + ": predictions must be [..., C] for targets [...], got " +
                       shapes(prediction, y));
  }
  Targets out{cast(y, Dtype::i64).to_vector<std::int64_t>(), within_lengths(batch)};
  if (is_float(y.dtype())) {
    const std::vector<double> numbers = cast(y, Dtype::f64).to_vector<double>();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (out.count[i] && static_cast<double>(out.classes[i]) != numbers[i])
        throw ShapeError(std::string(who) + ": a target of " + reshape(y, {-1})[i].str() + " is no class");
  }
  for (std::size_t i = 0; i < out.classes.size(); ++i) {
    const std::int64_t c = out.classes[i];
    if (c == ignore_index) out.count[i] = false;
    if (out.count[i] && (c < 0 || c >= C))
      throw ShapeError(std::string(who) + ": class " + std::to_string(c) + " lies outside 0.." + std::to_string(C - 1));
  }
  return out;
}

std::vector<std::int64_t> predicted_classes(const Tensor& prediction, const Batch& batch) {
  const bool score = is_score(prediction, batch);
  const Tensor classes = score ? cast(gt(prediction, 0), Dtype::i64) : argmax(prediction, -1);
  if (!is_float(prediction.dtype()) || prediction.numel() == 0) return classes.to_vector<std::int64_t>();
  const Tensor largest = score ? prediction : amax(prediction, {-1});  // NaN where one is NaN
  return where(eq(largest, largest), classes, -1).to_vector<std::int64_t>();
}

Numbers numbers_of(const char* who, const Tensor& prediction, const Batch& batch) {
  const Tensor& y = batch.y();
  if (!is_score(prediction, batch))
    throw ShapeError(std::string(who) + ": predictions and targets must have one shape, got " + shapes(prediction, y));
  return {cast(prediction, Dtype::f64).to_vector<double>(), cast(y, Dtype::f64).to_vector<double>(),
          within_lengths(batch)};
}

void check_state(const std::string& who, const std::vector<double>& state, std::size_t n) {
  if (state.size() != n)
    throw ValueError("metric " + who + ": a state of " + std::to_string(state.size()) + " numbers, it has " +
                     std::to_string(n));
}

}  // namespace ferrite::train::detail
