/// Layers for tokens and their positions: bags of embeddings, positional encodings.
#include "ferrite/nn/layers/tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/detail/padding_token.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite::nn {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

std::string text(std::int64_t n) { return std::to_string(n); }

// ---- positions -------------------------------------------------------------------------------------------

/// The positions of a call's steps in their sequences, i64 [T] or [B, T], and of the step after the last one,
/// [1, B, 1], undefined without a carry.
struct Places {
  Tensor at, next;
};

Places places_of(const Layer& layer, const Tensor& x, const Context& context) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  const Tensor& resets = context.reset_mask;
  if (!context.carry && !resets.defined()) return {arange(T), {}};
  // The step of this call, maybe negative, at which the sequence began.
  Tensor start = context.carry ? -reshape(context.carry->states_of(layer, B)[0], {B, 1}) : zeros({B, 1}, Dtype::i64);
  if (resets.defined()) {
    if (resets.dtype() != Dtype::boolean || resets.shape() != Shape{B, T})
      throw ShapeError(layer.kind() + ": expects a reset mask bool[" + text(B) + ", " + text(T) + "], got " +
                       resets.spec().str());
    start = cummax(where(resets, arange(T), start), 1).values;
  }
  Places places{arange(T) - start, {}};
  if (!context.carry) return places;
  const Tensor last = context.lengths.defined()
                          ? detail::checked_lengths("positions: a length of", context.lengths, B, T) - 1
                          : full({B}, T - 1, Dtype::i64);
  places.next = reshape(gather(places.at, 1, reshape(last, {B, 1})) + 1, {1, B, 1});
  return places;
}

void check_sequence(const Layer& layer, const Tensor& x, std::int64_t features) {
  if (x.rank() != 3 || x.shape()[2] != features)
    throw ShapeError(layer.kind() + ": expects [B, T, " + text(features) + "], got " + x.shape().str());
  if (x.shape()[1] == 0) throw ShapeError(layer.kind() + ": the sequence has no steps: " + x.shape().str());
}

std::vector<StepState> steps_made(const StepRows& in) {
  return {{.name = "steps", .shape = {in.batch}, .dtype = Dtype::i64}};
}

/// Returns `added(x, positions)` and updates the carry.
template <class F>
Tensor with_positions(const Layer& layer, const Tensor& x, const Context& context, const F& added) {
  const Places places = places_of(layer, x, context);
  Tensor y = added(x, places.at);
  if (context.carry) context.carry->states_of(layer, x.shape()[0])[0].assign(places.next);
  return y;
}

}  // namespace

SinusoidalPositions::SinusoidalPositions(const SinusoidalPositionsOptions& o, const Init& init)
    : LayerOf(o, init), dtype_(init.dtype) {
  if (o.features < 1) throw ValueError("sinusoidal_positions: there must be features, got " + text(o.features));
  if (!(o.base > 0) || !std::isfinite(o.base))
    throw ValueError("sinusoidal_positions: the base must be positive, got " + Scalar(o.base).str());
  carries("steps", 1, 1, Dtype::i64);
}

std::unique_ptr<SinusoidalPositions> SinusoidalPositions::another(const Init& init) const {
  Init own = init;
  own.dtype = dtype_;
  return std::make_unique<SinusoidalPositions>(options(), own);
}

Tensor SinusoidalPositions::added(const Tensor& x, const Tensor& positions) const {
  const std::int64_t D = options().features, pairs = (D + 1) / 2;
  std::vector<double> by_pair;
  for (std::int64_t i = 0; i < pairs; ++i)
    by_pair.push_back(std::pow(options().base, -2 * static_cast<double>(i) / static_cast<double>(D)));
  const Tensor angles = unsqueeze(cast(positions, Dtype::f64), -1) * Tensor::from(by_pair, {pairs});
  Shape shape = angles.shape();
  shape[-1] = 2 * pairs;
  const Tensor both = reshape(stack({sin(angles), cos(angles)}, -1), shape);
  return x + cast(slice(both, -1, 0, D), x.dtype());
}

Tensor SinusoidalPositions::forward(const Tensor& x, const Context& context) const {
  check_sequence(*this, x, options().features);
  if (!is_float(x.dtype())) throw DtypeError("sinusoidal_positions: expects floats, got " + x.spec().str());
  return with_positions(*this, x, context, [&](const Tensor& t, const Tensor& at) { return added(t, at); });
}

std::vector<StepState> SinusoidalPositions::states(const StepRows& in) const { return steps_made(in); }

StepResult SinusoidalPositions::step(const Tensor& x, const Tensors& states) const {
  return {added(x, states[0]), {states[0] + 1}};
}

LearnedPositions::LearnedPositions(const LearnedPositionsOptions& o, const Init& init) : LayerOf(o, init) {
  if (o.features < 1 || o.capacity < 1)
    throw ValueError("learned_positions: sizes must be positive, got " + text(o.capacity) + " steps of " +
                     text(o.features) + " features");
  weight = parameter("weight", {o.capacity, o.features}, init::normal(0, 0.02), init);
  carries("steps", 1, 1, Dtype::i64);
}

Tensor LearnedPositions::added(const Tensor& x, const Tensor& positions) const {
  if (x.dtype() != weight.dtype())
    throw DtypeError("learned_positions: the weights are " + std::string(name_of(weight.dtype())) + ", got " +
                     x.spec().str() + "; cast the input");
  Shape shape = positions.shape();
  shape.push_back(options().features);
  return x + reshape(index_select(weight, 0, reshape(positions, {-1}), {"learned_positions: step"}), shape);
}

Tensor LearnedPositions::forward(const Tensor& x, const Context& context) const {
  check_sequence(*this, x, options().features);
  return with_positions(*this, x, context, [&](const Tensor& t, const Tensor& at) { return added(t, at); });
}

std::vector<StepState> LearnedPositions::states(const StepRows& in) const { return steps_made(in); }

StepResult LearnedPositions::step(const Tensor& x, const Tensors& states) const {
  return {added(x, states[0]), {states[0] + 1}};
}

// ---- bags ------------------------------------------------------------------------------------------------

EmbeddingBag::EmbeddingBag(const EmbeddingBagOptions& o, const Init& init) : LayerOf(o, init) {
  if (o.vocabulary < 1 || o.features < 1)
    throw ValueError("embedding_bag: sizes must be positive, got " + text(o.vocabulary) + " and " + text(o.features));
  weight = parameter("weight", {o.vocabulary, o.features},
                     detail::rows_of_normal("embedding_bag", o.vocabulary, o.padding_idx), init);
}

std::string EmbeddingBag::summary() const {
  std::string s = LayerOf::summary();
  if (options().mode != BagMode::mean)
    s.insert(s.size() - 1, options().mode == BagMode::sum ? ", mode=sum" : ", mode=max");
  return s;
}

EmbeddingBag::Rows EmbeddingBag::rows(const Tensor& tokens, const Tensor& weights) const {
  if (!is_integer(tokens.dtype()))
    throw DtypeError("embedding_bag: tokens must be i64 or i32, got " + tokens.spec().str());
  if (weights.defined()) {
    if (options().mode != BagMode::sum) throw ValueError("embedding_bag: only sums have weights of their tokens");
    if (weights.shape() != tokens.shape() || weights.dtype() != weight.dtype())
      throw ShapeError("embedding_bag: expects weights " + Spec{tokens.shape(), weight.dtype()}.str() + ", got " +
                       weights.spec().str());
  }
  Shape shape = tokens.shape();
  shape.push_back(options().features);
  Rows r{reshape(index_select(weight, 0, reshape(tokens, {-1}), {"embedding_bag: token"}), shape), {}};
  if (weights.defined()) r.values = r.values * unsqueeze(weights, -1);
  if (options().padding_idx)
    r.counted = !eq(unsqueeze(tokens, -1), detail::token_of(*options().padding_idx, options().vocabulary));
  return r;
}

namespace {

void check_bags(const Tensor& tokens) {
  if (tokens.rank() != 2) throw ShapeError("embedding_bag: expects tokens [B, N], got " + tokens.shape().str());
}

/// Joins values [B, N, D], of which `counted` [B, N, 1] says which count.
Tensor joined(BagMode mode, const Tensor& values, const Tensor& counted) {
  const std::int64_t B = values.shape()[0], N = values.shape()[1], D = values.shape()[2];
  if (N == 0) return zeros({B, D}, values.dtype());
  const Tensor all = counted.defined() ? where(counted, values, mode == BagMode::max ? kLowest : 0.0) : values;
  if (mode == BagMode::sum) return sum(all, {1});
  if (!counted.defined()) return mode == BagMode::mean ? mean(all, {1}) : amax(all, {1});
  const Tensor count = sum(cast(counted, values.dtype()), {1});  // [B, 1]
  if (mode == BagMode::mean) return sum(all, {1}) / maximum(count, 1);
  return where(gt(count, 0), amax(all, {1}), 0);
}

}  // namespace

Tensor EmbeddingBag::forward(const Tensor& tokens, const Context& context) const {
  check_bags(tokens);
  Rows r = rows(tokens, {});
  if (context.lengths.defined()) {
    const std::int64_t B = tokens.shape()[0], N = tokens.shape()[1];
    const Tensor lengths = detail::checked_lengths("embedding_bag: a length of", context.lengths, B, N);
    const Tensor inside = lt(reshape(arange(N), {N, 1}), reshape(lengths, {B, 1, 1}));
    r.counted = r.counted.defined() ? r.counted && inside : inside;
  }
  return joined(options().mode, r.values, r.counted);
}

Tensor EmbeddingBag::weighted(const Tensor& tokens, const Tensor& weights) const {
  return inside([&] {
    check_bags(tokens);
    const Rows r = rows(tokens, weights);
    return joined(options().mode, r.values, r.counted);
  });
}

Tensor EmbeddingBag::bags(const Tensor& tokens, const Tensor& given, const Tensor& weights) const {
  return inside([&] {
    const std::int64_t M = tokens.numel(), D = options().features, last = options().include_last_offset ? 1 : 0;
    if (tokens.rank() != 1 || given.rank() != 1 || given.dtype() != Dtype::i64 || given.numel() < 1 + last)
      throw ShapeError("embedding_bag: expects tokens [M] and offsets i64 of " + text(1 + last) + " or more, got " +
                       tokens.spec().str() + " and " + given.spec().str());
    const std::int64_t B = given.numel() - last;
    const Tensor ends = last ? slice(given, 0, 1) : concat({slice(given, 0, 1), full({1}, M, Dtype::i64)}, 0);
    (void)checked(slice(given, 0, 0, 1), 0, 0, "embedding_bag: the first offset");
    (void)checked(ends - slice(given, 0, 0, B), 0, M, "embedding_bag: the size of a bag");
    (void)checked(slice(ends, 0, B - 1), M, M, "embedding_bag: the last offset");
    const Tensor bag = searchsorted(ends, arange(M), {.right = true});
    const Rows r = rows(tokens, weights);
    const Dtype dtype = weight.dtype();
    const Tensor ones_of = r.counted.defined() ? cast(r.counted, dtype) : ones({M, 1}, dtype);
    const Tensor count = index_add(zeros({B, 1}, dtype), 0, bag, ones_of);
    if (options().mode != BagMode::max) {
      const Tensor all = r.counted.defined() ? where(r.counted, r.values, 0) : r.values;
      const Tensor total = index_add(zeros({B, D}, dtype), 0, bag, all);
      return options().mode == BagMode::sum ? total : total / maximum(count, 1);
    }
    const Tensor all = r.counted.defined() ? where(r.counted, r.values, kLowest) : r.values;
    const Tensor most = scatter_reduce(full({B, D}, kLowest, dtype), 0, expand(unsqueeze(bag, 1), {M, D}), all,
                                       ScatterReduction::amax, false);
    return where(gt(count, 0), most, 0);
  });
}

template class LayerOf<EmbeddingBag, EmbeddingBagOptions>;
template class LayerOf<SinusoidalPositions, SinusoidalPositionsOptions>;
template class LayerOf<LearnedPositions, LearnedPositionsOptions>;

// One step of learned positions for streams: each row adds the row of the table for its current step.

namespace {

template <class T>
class LearnedPositionsStep final : public Step {
 public:
  LearnedPositionsStep(const Parameter& weight, std::int64_t batch)
      : weight_(weight), batch_(batch), steps_(static_cast<std::size_t>(batch)) {
    LearnedPositionsStep::refresh();
  }

  StepRows result() const override { return {batch_, table_.shape()[1], dtype_of<T>}; }
  void run(Inputs x, void* y) override { add(nullptr, x, y); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    add(rows[0], x, y);
    return rows[0];
  }
  std::int64_t most_at_once() const override { return detail::kAnyNumber; }
  std::int64_t sure(std::int64_t n, Inputs) const override {
    return std::min(n, table_.shape()[0] - *std::max_element(steps_.begin(), steps_.end()));
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const std::int64_t bytes = detail::bytes_of(result());
    for (std::int64_t t = 0; t < n; ++t, LearnedPositionsStep::commit_rows(nullptr)) {
      const void* const from = static_cast<const std::byte*>(x[0]) + t * bytes;
      add(nullptr, &from, static_cast<std::byte*>(y) + t * bytes);
    }
  }
  void commit() override { LearnedPositionsStep::commit_rows(nullptr); }
  void commit_rows(Rows rows) override {
    for (std::int64_t b = 0; b < batch_; ++b) step(b) += takes(rows, b) ? 1 : 0;
  }
  void refresh() override { table_ = contiguous(weight_.peek()); }
  void states(const StateVisitor& see) override {
    see({.name = "steps",
         .spec = {{batch_}, Dtype::i64},
         .first = reinterpret_cast<std::byte*>(steps_.data()),
         .most = table_.shape()[0]});
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<LearnedPositionsStep>(*this); }

 private:
  void add(Rows rows, Inputs x, void* y) {
    const std::int64_t D = table_.shape()[1];
    for (std::int64_t b = 0; b < batch_; ++b)
      if (takes(rows, b) && step(b) >= table_.shape()[0]) throw_beyond(step(b));
    const auto* from = static_cast<const T*>(x[0]);
    auto* to = static_cast<T*>(y);
    for (std::int64_t b = 0; b < batch_; ++b, from += D, to += D) {
      if (!takes(rows, b)) continue;
      const T* const at = table_.data<T>() + step(b) * D;
      for (std::int64_t i = 0; i < D; ++i) to[i] = from[i] + at[i];
    }
  }
  static bool takes(Rows rows, std::int64_t row) { return !rows || rows[row]; }
  std::int64_t& step(std::int64_t row) { return steps_[static_cast<std::size_t>(row)]; }
  /// Throws the same error as the whole sequence.
  [[noreturn]] void throw_beyond(std::int64_t step) const {
    throw ShapeError("learned_positions: step " + std::to_string(step) + " lies outside 0.." +
                     std::to_string(table_.shape()[0] - 1));
  }

  Parameter weight_;
  std::int64_t batch_;
  std::vector<std::int64_t> steps_;  ///< steps of each row since it began
  Tensor table_;                     ///< immutable: the snapshot needs no copy
};

}  // namespace

std::size_t LearnedPositions::add_steps(StepGraph& graph, std::size_t x) const {
  const StepRows in = graph.rows(x);
  if (in.dtype == Dtype::f64)
    return graph.add(*this, std::make_unique<LearnedPositionsStep<double>>(weight, in.batch), {x});
  return graph.add(*this, std::make_unique<LearnedPositionsStep<float>>(weight, in.batch), {x});
}

}  // namespace ferrite::nn
