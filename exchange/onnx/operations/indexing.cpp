/// Operations that read and replace elements at indices: Gather, Scatter, TopK, NonZero, Unique and their like.
#include <algorithm>
#include <numeric>
#include <optional>

#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite::onnx::detail {
namespace {

Values gathered(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& index = call.tensor(1);
  const int axis = axis_of(call, call.integer("axis", 0), x.rank());
  std::vector<std::int64_t> extents;
  for (int i = 0; i < axis; ++i) extents.push_back(x.size(i));
  for (int i = 0; i < index.rank(); ++i) extents.push_back(index.size(i));
  for (int i = axis + 1; i < x.rank(); ++i) extents.push_back(x.size(i));
  if (extents.size() > static_cast<std::size_t>(Shape::kMaxRank)) call.refuse("more than 8 axes are not supported");
  return {moved(reshape(index_select(x, axis, reshape(index, {index.numel()})), shape_of(extents)), call.type(0))};
}

Values gathered_elements(const Call& call) {
  const Tensor& x = call.tensor(0);
  return {moved(gather(x, axis_of(call, call.integer("axis", 0), x.rank()), call.tensor(1)), call.type(0))};
}

/// Positions in the flattened first axes of x, of indices [..., n] of the axes from `first` on.
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
    if (index.size(i) != x.size(i)) call.refuse("batches of " + index.shape().str() + " and " + x.shape().str() + " differ");
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

/// What joins an update to what is there; empty: it replaces it.
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

/// k as an attribute before version 10.
Values largest(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = axis_of(call, call.integer("axis", -1), x.rank());
  const std::int64_t k = call.version() < 10 ? call.integer("k") : call.known_int(1);
  const bool most = call.version() < 11 || call.integer("largest", 1) != 0;
  // Sorted is one of the orders that sorted = 0 leaves open.
  call.without_effect("sorted");
  if (k < 0 || k > x.size(axis)) call.refuse("k " + std::to_string(k) + " lies outside of 0.." + std::to_string(x.size(axis)));
  const auto best = topk(x, k, {.axis = axis, .largest = most});
  return {moved(best.values, call.type(0)), {best.indices, ElementType::i64}};
}

Values nonzero_of(const Call& call) {
  if (!call.known(0)) call.refuse("the shape of its result depends on data");
  const Tensor& x = call.tensor(0);
  return {{contiguous(transpose(nonzero(reshape(x, x.rank() ? x.shape() : Shape{1})), 0, 1)), ElementType::i64}};
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

/// The rows of a matrix [n, m], of which equal ones are found by their numbers.
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

constexpr Operation kOperations[] = {
    {.name = "Gather", .lower = gathered, .static_inputs = 2},
    {.name = "GatherElements", .lower = gathered_elements, .static_inputs = 2},
    {.name = "GatherND", .lower = gathered_slices, .static_inputs = 2},
    {.name = "Scatter", .lower = scattered_elements, .static_inputs = 2},
    {.name = "ScatterElements", .lower = scattered_elements, .static_inputs = 2},
    {.name = "ScatterND", .lower = scattered_slices, .static_inputs = 2},
    {.name = "TopK", .lower = largest, .static_inputs = 2},
    {.name = "NonZero", .lower = nonzero_of},
    {.name = "Compress", .lower = compressed, .static_inputs = 2},
    {.name = "Unique", .lower = distinct},
};

}  // namespace

Operations indexing_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
