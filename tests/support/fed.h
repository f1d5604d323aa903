#pragma once
// Streams fed step by step and compared row by row, since in a step only some rows may get an output.
#include <algorithm>
#include <span>
#include <vector>

#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

namespace support {

using namespace ferrite;

/// The outputs of each row of a stream, [U, N].
using RowOutputs = std::vector<Tensor>;

/// Returns the number of output steps after `inputs` steps of input.
inline std::int64_t outputs_of(const nn::Stream& stream, std::int64_t inputs) {
  return inputs <= stream.delay() ? 0 : (inputs - 1 - stream.delay()) / stream.stride() + 1;
}

/// Calls a function without doing anything around it.
struct Plainly {
  template <class F>
  void operator()(const F& f) const {
    f();
  }
};

template <class In, class Out, class Around>
RowOutputs fed_as(nn::Stream& stream, const Tensor& x, std::int64_t width, const Around& around) {
  const std::int64_t B = x.shape()[0];
  constexpr Out kUntouched = 1234;
  std::vector<std::vector<Out>> rows(static_cast<std::size_t>(B));
  for (std::int64_t t = 0; t < x.shape()[1]; ++t) {
    const std::vector<In> in = contiguous(select(x, 1, t)).template to_vector<In>();
    std::vector<Out> out(static_cast<std::size_t>(B * width), kUntouched);
    bool any = false;
    around([&] { any = stream.feed(std::span<const In>(in), std::span<Out>(out)); });
    bool some = false;
    for (std::int64_t b = 0; b < B; ++b) {
      const auto begin = out.begin() + b * width, end = begin + width;
      if (stream.gave(b))
        rows[static_cast<std::size_t>(b)].insert(rows[static_cast<std::size_t>(b)].end(), begin, end);
      else
        BOOST_TEST(std::count(begin, end, kUntouched) == width, "a row that got nothing was written");
      some |= stream.gave(b);
    }
    BOOST_TEST(any == some);
  }
  RowOutputs all;
  for (const std::vector<Out>& row : rows)
    all.push_back(Tensor::from(row, {static_cast<std::int64_t>(row.size()) / width, width}));
  return all;
}

/// Feeds x [B, T, D] or tokens [B, T] to a stream whose outputs have the type of y's rows; each call runs in
/// around(call).
template <class Around = Plainly>
RowOutputs fed(nn::Stream& stream, const Tensor& x, const Spec& y, const Around& around = {}) {
  const std::int64_t N = y.shape[-1];
  if (x.dtype() == Dtype::i64)
    return y.dtype == Dtype::f64 ? fed_as<std::int64_t, double>(stream, x, N, around)
                                 : fed_as<std::int64_t, float>(stream, x, N, around);
  return y.dtype == Dtype::f64 ? fed_as<double, double>(stream, x, N, around)
                               : fed_as<float, float>(stream, x, N, around);
}

template <class Out, class Around>
RowOutputs finished_as(nn::Stream& stream, std::int64_t width, const Around& around) {
  const std::int64_t B = stream.batch();
  std::vector<std::vector<Out>> rows(static_cast<std::size_t>(B));
  bool any = true;
  while (any) {
    std::vector<Out> out(static_cast<std::size_t>(B * width));
    around([&] { any = stream.finish(std::span<Out>(out)); });
    for (std::int64_t b = 0; b < B; ++b) {
      BOOST_TEST((any || !stream.gave(b)));
      const auto begin = out.begin() + b * width;
      if (stream.gave(b))
        rows[static_cast<std::size_t>(b)].insert(rows[static_cast<std::size_t>(b)].end(), begin, begin + width);
    }
  }
  RowOutputs all;
  for (const std::vector<Out>& row : rows)
    all.push_back(Tensor::from(row, {static_cast<std::int64_t>(row.size()) / width, width}));
  return all;
}

/// Returns the outputs of a stream when its inputs end.
template <class Around = Plainly>
RowOutputs finished(nn::Stream& stream, const Spec& y, const Around& around = {}) {
  return y.dtype == Dtype::f64 ? finished_as<double>(stream, y.shape[-1], around)
                               : finished_as<float>(stream, y.shape[-1], around);
}
/// Returns whether `got` are the last outputs of y [T', N], those that come only when the inputs end.
inline bool gave_the_rest(const nn::Stream& stream, const Tensor& got, const Tensor& y, std::int64_t inputs) {
  const Tensor wanted = slice(y, 0, outputs_of(stream, inputs), y.shape()[0]);
  return got.shape() == wanted.shape() && identical(got, contiguous(wanted));
}

/// Returns whether row b has the outputs for inputs from..to - 1, as part of y [B, T', N].
inline bool gave_row(const nn::Stream& stream, const RowOutputs& rows, const Tensor& y, std::int64_t b,
                     std::int64_t from, std::int64_t to) {
  const Tensor wanted = slice(select(y, 0, b), 0, outputs_of(stream, from), outputs_of(stream, to));
  const Tensor& got = rows[static_cast<std::size_t>(b)];
  return got.shape() == wanted.shape() && identical(got, contiguous(wanted));
}
inline bool gave(const nn::Stream& stream, const RowOutputs& rows, const Tensor& y, std::int64_t from,
                 std::int64_t to) {
  bool all = true;
  for (std::int64_t b = 0; b < y.shape()[0]; ++b) all = all && gave_row(stream, rows, y, b, from, to);
  return all;
}

/// Returns whether a stream gives the whole output when it is fed x and then finished.
inline bool gives_whole(ferrite::nn::Stream& stream, const ferrite::Tensor& x, const ferrite::Tensor& whole) {
  RowOutputs rows = fed(stream, x, whole.spec());
  const RowOutputs last = finished(stream, whole.spec());
  bool all = true;
  for (std::size_t b = 0; b < rows.size(); ++b)
    all = all && identical(concat({rows[b], last[b]}, 0), contiguous(select(whole, 0, static_cast<std::int64_t>(b))));
  return all;
}

}  // namespace support
