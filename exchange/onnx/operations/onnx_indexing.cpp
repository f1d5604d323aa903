/// Lowers operations that replace and choose elements at indices: Scatter, GatherND, Compress, Unique and others.
#include <algorithm>
#include <numeric>
#include <optional>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite::onnx::detail {
namespace {

/// Returns positions in the flattened first axes of x for indices [..., n] of the axes from `first` on.
Tensor flat_places(const Call& call, const Tensor& x, const Tensor& index, int first) {
  const std::int64_t n = index.size(-1);
  if (n < 1 || first + n > x.rank()) call.refuse("indices " + index.shape().str() + " do not fit " + x.shape().str());
  Tensor places = zeros(Shape(std::span(index.shape().begin(), index.shape().end() - 1)), Dtype::i64);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t extent = x.size(first + static_cast<int>(i));
    const Tensor at = checked(cast(select(index, -1, i), Dtype::i64), -extent, extent - 1, "onnx: index");
    places = places * extent + where(lt(at, 0), at + extent, at);
  }
  return places;
}

Values gathered_slices(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& index = call.tensor(1);
  const auto batch = static_cast<int>(call.integer("batch_dims", 0));
  if (index.rank() < 1 || batch < 0 || batch >= index.rank() || batch > x.rank())
    call.refuse("batch_dims does not fit " + index.shape().str());
  Tensor places = flat_places(call, x, index, batch);
  const auto n = static_cast<int>(index.size(-1));
  std::int64_t rows = 1, inner = 1, batches = 1;
  for (int i = 0; i < batch; ++i) {
    if (index.size(i) != x.size(i))
      call.refuse("batches of " + index.shape().str() + " and " + x.shape().str() + " differ");
    batches *= x.size(i);
  }
  for (int i = batch; i < batch + n; ++i) rows *= x.size(i);
  for (int i = batch + n; i < x.rank(); ++i) inner *= x.size(i);
  std::vector<std::int64_t> extents(places.shape().begin(), places.shape().end());
  for (int i = batch + n; i < x.rank(); ++i) extents.push_back(x.size(i));
  if (batches > 0) places = reshape(places, {batches, places.numel() / batches});
  if (batch > 0) places = places + reshape(arange(0, batches, 1, Dtype::i64), {batches, 1}) * rows;
  const Tensor table = reshape(x, {batches * rows, inner});
  return {moved(reshape(index_select(table, 0, reshape(places, {places.numel()})), shape_of(extents)), call.type(0))};
}

/// Returns the function that combines an update with the element at its place; empty: the update replaces it.
std::optional<ScatterReduction> reduction_of(const Call& call) {
  const std::string name = call.text("reduction", "none");
  if (name == "none") return {};
  if (name == "add") return ScatterReduction::sum;
  if (name == "mul") return ScatterReduction::prod;
  if (name == "max") return ScatterReduction::amax;
  if (name == "min") return ScatterReduction::amin;
  call.refuse("reduction \"" + name + "\" is not supported");
}

Tensor scattered(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                 std::optional<ScatterReduction> how) {
  return how ? scatter_reduce(x, axis, index, source, *how) : scatter(x, axis, index, source);
}

Values scattered_elements(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = axis_of(call, call.integer("axis", 0), x.rank());
  const auto how = call.name() == "Scatter" ? std::nullopt : reduction_of(call);
  return {narrowed(scattered(x, axis, call.tensor(1), call.tensor(2), how), call.type(0))};
}

Values scattered_slices(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& index = call.tensor(1);
  if (index.rank() < 1) call.refuse("indices must have an axis");
  const Tensor places = flat_places(call, x, index, 0);
  const auto n = static_cast<int>(index.size(-1));
  std::int64_t rows = 1, inner = 1;
  for (int i = 0; i < n; ++i) rows *= x.size(i);
  for (int i = n; i < x.rank(); ++i) inner *= x.size(i);
  const std::int64_t m = places.numel();
  const Tensor source = reshape(call.tensor(2), {m, inner});
  const Tensor at = contiguous(expand(reshape(places, {m, 1}), {m, inner}));
  const Tensor y = scattered(reshape(x, {rows, inner}), 0, at, source, reduction_of(call));
  return {narrowed(reshape(y, x.shape()), call.type(0))};
}

Values compressed(const Call& call) {
  Tensor x = call.tensor(0);
  const auto keep = call.known_ints(1);
  int axis = 0;
  if (call.has_attribute("axis"))
    axis = axis_of(call, call.integer("axis"), x.rank());
  else
    x = reshape(x, {x.numel()});
  std::vector<std::int64_t> index;
  for (std::size_t i = 0; i < keep.size() && static_cast<std::int64_t>(i) < x.size(axis); ++i)
    if (keep[i]) index.push_back(static_cast<std::int64_t>(i));
  return {moved(index_select(x, axis, Tensor::from<std::int64_t>(index, {static_cast<std::int64_t>(index.size())})),
                call.type(0))};
}

/// Returns the distinct rows of a matrix [n, m] with their positions and counts.
Values distinct(const Call& call) {
  if (!call.known(0)) call.refuse("the shape of its result depends on data");
  const bool sorted = call.integer("sorted", 1) != 0;
  Tensor x = call.tensor(0);
  int axis = 0;
  if (call.has_attribute("axis"))
    axis = axis_of(call, call.integer("axis"), x.rank());
  else
    x = reshape(x, {x.numel()});
  const std::int64_t n = x.size(axis);
  const Tensor wide = cast(transpose(x, 0, axis), is_floating(call.type(0)) ? Dtype::f64 : Dtype::i64);
  const std::int64_t width = n > 0 ? wide.numel() / n : 0;
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::int64_t> first, counts, inverse(order.size());
  const auto find = [&](const auto& rows) {
    const auto row = [&](std::int64_t i) { return rows.begin() + i * width; };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return std::lexicographical_compare(row(a), row(a) + width, row(b), row(b) + width);
    });
    for (const std::int64_t i : order) {
      if (first.empty() || !std::equal(row(i), row(i) + width, row(first.back()))) {
        first.push_back(i);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(first.size()) - 1;
    }
  };
  if (is_floating(call.type(0)))
    find(wide.to_vector<double>());
  else
    find(wide.to_vector<std::int64_t>());
  if (!sorted) {  // in the order in which they first occur
    std::vector<std::size_t> by(first.size());
    std::iota(by.begin(), by.end(), std::size_t{0});
    std::sort(by.begin(), by.end(), [&](std::size_t a, std::size_t b) { return first[a] < first[b]; });
    std::vector<std::int64_t> firsts, numbers, place(first.size());
    for (std::size_t i = 0; i < by.size(); ++i) {
      firsts.push_back(first[by[i]]);
      numbers.push_back(counts[by[i]]);
      place[by[i]] = static_cast<std::int64_t>(i);
    }
    for (auto& i : inverse) i = place[static_cast<std::size_t>(i)];
    first = firsts;
    counts = numbers;
  }
  const Value places = known_integers(first);
  return {moved(index_select(x, axis, places.tensor), call.type(0)), places, known_integers(inverse),
          known_integers(counts)};
}

Values reverse_sequence(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int batch = axis_of(call, call.integer("batch_axis", 1), x.rank());
  const int time = axis_of(call, call.integer("time_axis", 0), x.rank());
  if (batch == time) call.refuse("its axes are the same");
  const std::int64_t steps = x.size(time);
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.rank()), 1), across(along);
  along[static_cast<std::size_t>(time)] = steps;
  across[static_cast<std::size_t>(batch)] = x.size(batch);
  const Tensor t = reshape(arange(Scalar(0), Scalar(steps), Scalar(1), Dtype::i64), shape_of(along));
  const Tensor length = reshape(cast(call.tensor(1), Dtype::i64), shape_of(across));
  const Tensor index = where(lt(t, length), length - 1 - t, t + zeros_like(length));
  return {moved(gather(x, time, contiguous(expand(index, x.shape()))), call.type(0))};
}

/// Lowers TensorScatter: writes an update into a cache at a separate place in each row of the batch.
Values tensor_scatter(const Call& call) {
  const Tensor& cache = call.tensor(0);
  const Tensor& update = call.tensor(1);
  const int axis = axis_of(call, call.integer("axis", -2), cache.rank());
  const std::string mode = call.text("mode", "linear");
  if (mode != "linear" && mode != "circular") call.refuse("mode \"" + mode + "\" is neither linear nor circular");
  if (axis == 0) call.refuse("axis 0 is the batch");
  const std::int64_t steps = update.size(axis), most = cache.size(axis);
  std::vector<std::int64_t> along(static_cast<std::size_t>(cache.rank()), 1), across(along);
  along[static_cast<std::size_t>(axis)] = steps;
  across[0] = cache.size(0);
  Tensor place = reshape(arange(0, steps, 1, Dtype::i64), shape_of(along));
  if (call.has(2)) place = place + reshape(cast(call.tensor(2), Dtype::i64), shape_of(across));
  place = mode == "circular" ? remainder(place, most) : checked(place, 0, most - 1, "onnx: write index");
  return {moved(scatter(cache, axis, contiguous(expand(place, update.shape())), update), call.type(0))};
}

constexpr Operation kOperations[] = {
    {.name = "GatherND", .lower = gathered_slices},
    {.name = "Scatter", .lower = scattered_elements},
    {.name = "ScatterElements", .lower = scattered_elements},
    {.name = "ScatterND", .lower = scattered_slices},
    {.name = "Compress", .lower = compressed, .static_inputs = 2},
    {.name = "Unique", .lower = distinct},
    {.name = "ReverseSequence", .lower = reverse_sequence},
    {.name = "TensorScatter", .lower = tensor_scatter},
};

}  // namespace

Operations indexing_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
