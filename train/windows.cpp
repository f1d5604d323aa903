/// Windows of series, parallel parts of a series, and splits of a series.
#include "ferrite/train/windows.h"

#include <algorithm>

#include "ferrite/train/split.h"

namespace ferrite::train {
namespace {

void check_at_least(const char* name, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw ValueError("windows: " + std::string(name) + " must be at least " + std::to_string(least) + ", got " +
                     std::to_string(value));
}

}  // namespace

Dataset windows(const Tensor& series, const WindowOptions& o) {
  if (series.rank() != 1 && series.rank() != 2)
    throw ShapeError("windows: the series must be [T] or [T, D], got " + series.shape().str());
  check_at_least("length", o.length, 1);
  check_at_least("step", o.step, 1);
  check_at_least("horizon", o.horizon, 0);
  check_at_least("delay", o.delay, 0);
  if (o.flat && o.every_step) throw ValueError("windows: flat is for targets after the last step, not at every step");
  Tensor targets = series;
  if (!o.targets.empty()) {
    if (series.rank() != 2) throw ShapeError("windows: targets are columns of [T, D], got " + series.shape().str());
    for (const std::int64_t c : o.targets)
      if (c < 0 || c >= series.shape()[1])
        throw ValueError("windows: there is no column " + std::to_string(c) + " in " + series.shape().str());
    targets = index_select(series, 1, Tensor::from(o.targets, {static_cast<std::int64_t>(o.targets.size())}));
  }
  const std::int64_t T = series.shape()[0], most = std::max({o.length, o.delay, o.horizon});
  if (most > T)
    return {0, [](std::int64_t) { return Tensors(); }, std::vector<Field>(o.horizon > 0 || o.every_step ? 2 : 1)};
  const std::int64_t begin = o.every_step ? o.delay + 1 : o.length + o.delay;
  const std::int64_t steps = o.every_step ? o.length : o.horizon;
  const std::int64_t reach = std::max(o.length, o.horizon > 0 || o.every_step ? begin + steps : 0);
  const std::int64_t n = T < reach ? 0 : (T - reach) / o.step + 1;
  const bool with_target = steps > 0;
  return {n,
          [=](std::int64_t i) {
            const std::int64_t at = i * o.step;
            Tensors e = {slice(series, 0, at, at + o.length)};
            if (!with_target) return e;
            const Tensor target = slice(targets, 0, at + begin, at + begin + steps);
            e.push_back(o.flat ? flatten(target, 0) : target);
            return e;
          },
          std::vector<Field>(with_target ? 2 : 1)};
}

Dataset side_by_side(const Tensor& series, std::int64_t rows, std::int64_t length) {
  if (series.rank() < 1) throw ShapeError("side_by_side: the series must be [T, ...], got rank 0");
  if (rows < 1 || length < 1)
    throw ValueError("side_by_side: rows and length must be at least 1, got " + std::to_string(rows) + " and " +
                     std::to_string(length));
  const std::int64_t of_row = (series.shape()[0] - 1) / rows, pieces = of_row / length;
  if (pieces < 1)
    throw ValueError("side_by_side: " + std::to_string(series.shape()[0]) + " steps are too few for " +
                     std::to_string(rows) + " rows of " + std::to_string(length) + " and a target");
  return {pieces * rows,
          [=](std::int64_t i) {
            const std::int64_t at = i % rows * of_row + i / rows * length;
            return Tensors{slice(series, 0, at, at + length), slice(series, 0, at + 1, at + 1 + length)};
          },
          std::vector<Field>(2)};
}

std::vector<Tensor> split_series(const Tensor& series, const std::vector<double>& shares) {
  if (series.rank() < 1) throw ShapeError("split_series: the series must be [T, ...], got rank 0");
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (const Dataset& part : split(Dataset({series}), shares, {.shuffle = false})) {
    parts.push_back(slice(series, 0, begin, begin + part.size()));
    begin += part.size();
  }
  return parts;
}

}  // namespace ferrite::train
